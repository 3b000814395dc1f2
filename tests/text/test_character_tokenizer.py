"""Characters to numbers and back, against plain Python, and the tokenizer's way through files."""

import json
from collections import Counter

import keras
import pytest
from keras_hub.tokenizers import Tokenizer
from message_of import message_of

from kzoo.text import END, PAD, START, UNKNOWN, CharacterTokenizer, learn_characters

SENTENCES = ["我的书在桌子上。", "他的书呢？", "a b 的"]


@pytest.fixture
def tokenizer():
    return CharacterTokenizer(learn_characters(SENTENCES), config_file="source_tokenizer.json")


def test_numbers_and_back(tokenizer):
    numbers = tokenizer(SENTENCES)
    assert tokenizer.detokenize(numbers) == SENTENCES
    assert tokenizer(SENTENCES[0]) == numbers[:1]  # a str is one sentence
    vocabulary = tokenizer.get_vocabulary()
    assert [[vocabulary[i] for i in row] for row in numbers] == [list(sentence) for sentence in SENTENCES]
    assert vocabulary[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert tokenizer.vocabulary_size() == len(vocabulary) == 4 + len(set("".join(SENTENCES)))
    assert tokenizer.id_to_token(tokenizer.token_to_id("书")) == "书"


def test_special_and_unknown_words(tokenizer):
    (numbers,) = tokenizer(["的龘"])
    assert numbers[1] == UNKNOWN
    assert tokenizer.detokenize([[START, *numbers, END, PAD], []]) == ["的\ufffd", ""]
    assert tokenizer(["", " \u3000\n"]) == [[], []]


def test_the_most_frequent_come_first():
    counts = Counter("".join(SENTENCES))
    characters = learn_characters(SENTENCES)
    assert [counts[c] for c in characters] == sorted(counts.values(), reverse=True)
    assert learn_characters(SENTENCES[::-1]) == characters
    assert learn_characters(SENTENCES, 7) == characters[:3]


def test_through_a_preset_folder(tokenizer, tmp_path):
    tokenizer.save_to_preset(str(tmp_path))
    config = json.loads((tmp_path / tokenizer.config_file).read_text())
    again = keras.saving.deserialize_keras_object(config)
    assert isinstance(again, CharacterTokenizer) and isinstance(again, Tokenizer)
    again.load_preset_assets(str(tmp_path))
    assert again.get_vocabulary() == tokenizer.get_vocabulary()
    assert again.config_file == "source_tokenizer.json"
    assert again(SENTENCES) == tokenizer(SENTENCES)


def test_vocabularies_that_cannot_be_are_named():
    for wrong in (["人", "人"], ["人们"], [""], ["<pad>"]):
        assert "characters" in message_of(CharacterTokenizer, wrong)
    assert "empty" in message_of(learn_characters, ["", ""])
    assert "vocabulary_size=4" in message_of(learn_characters, ["人"], 4)
