"""Moses's form of text, and the subwords made of it."""

import keras

from kzoo.text import MosesSubwordTokenizer, moses_text, train_subwords


def test_moses_text_is_normalized_split_and_lowercased():
    assert (
        moses_text("Don't „see“ it – yes, it's 3.5%…", "en") == "don 't \" see \" it - yes , it 's 3.5 % ..."
    )
    assert moses_text("L'homme n'a pas vu.", "fr") == "l' homme n' a pas vu ."


def test_subwords_come_back_as_plain_lowercase_text():
    sentences = ["L'homme, il n'a pas vu l'école.", "Une école?"]
    text = [moses_text(s, "fr") for s in sentences] * 20
    tokenizer = MosesSubwordTokenizer(train_subwords(text, 60), language="fr")
    assert tokenizer.detokenize(tokenizer(sentences)) == ["l'homme, il n'a pas vu l'école.", "une école ?"]
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(tokenizer))
    again.set_proto(tokenizer.proto)
    assert again(sentences) == tokenizer(sentences)
