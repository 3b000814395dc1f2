"""A run's vocabularies."""

import pytest
from message_of import message_of

from kzoo.data import open_corpus
from kzoo.training import Recipe
from kzoo.training.vocabularies import learned_subwords, print_rare_subwords

THAI = ["ผู้ชายดื่มน้ำ", "เด็กเล่นอยู่ในสวน", "ผู้หญิงอ่านหนังสือ"]


@pytest.mark.parametrize("text", ["lowercased", "truecased"])
def test_moses_s_form_of_a_language_that_it_takes_apart_is_refused(tmp_path, text):
    message = message_of(learned_subwords, tmp_path, "th", {"th": ("th", THAI)}, 40, text)
    assert "'th'" in message and "3 of 3 " in message
    assert not list(tmp_path.iterdir())
    armenian = {"hy": ("hy", ["Ի՞նչ է սա։"])}
    assert "'hy': Moses" in message_of(learned_subwords, tmp_path, "hy", armenian, 40, text)
    (tokenizer,) = learned_subwords(tmp_path, "th", {"th": ("", THAI)}, 40)
    assert tokenizer.detokenize(tokenizer(THAI)) == THAI


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["a man , a dog .", "do n't run !"]),  # in tokens already
        ("fr", ["Où est-il?", "L'homme dort."]),
        ("tr", ["İki adam İstanbul'da yürüyor.", "Işık yanıyor."]),
        ("uk", ["Сім'я п'є чай."]),
        ("hi", ["यह एक घर है।", "क्या यह बाज़ार है?"]),
        ("ur", ["یہ ایک گھر ہے۔"]),
        *((code, open_corpus("scenes").sentences("val", code)) for code in ("cs", "de", "id", "zh")),
    ],
)
def test_moses_s_form_is_for_languages_whose_words_stay_whole(tmp_path, language, sentences):
    filler = ["two dogs are running fast in the snow"] * 9
    size = 60 if len(sentences) < 5 else 600
    sides = {language: (language, [*sentences, *filler])}
    (tokenizer,) = learned_subwords(tmp_path, language, sides, size, "lowercased")
    assert tokenizer.language == language


@pytest.mark.parametrize("copies", [1, 10])
def test_subwords_too_rare_to_be_learned_name_the_key(tmp_path, capsys, copies):
    recipe, scenes = Recipe("pope_tiny", "scenes", "en", "de"), open_corpus("scenes")
    texts = [scenes.sentences("train", code)[:100] * copies for code in ("en", "de")]
    (tokenizer,) = learned_subwords(tmp_path, "joint", {"joint": ("", sum(texts, []))}, 700)
    print_rare_subwords(recipe, [tokenizer] * 2, [tokenizer(text) for text in texts])
    assert ("vocabulary_size" in capsys.readouterr().out) == (copies == 1)


def test_subwords_of_many_rare_characters_cannot_be_fewer(tmp_path, capsys):
    text = ["".join(chr(0x4E00 + (7 * n + i) % 300) for i in range(9)) for n in range(100)]
    (tokenizer,) = learned_subwords(tmp_path, "joint", {"joint": ("", text)}, 320)
    recipe = Recipe("pope_tiny", "scenes", "zh", "en")
    print_rare_subwords(recipe, [tokenizer] * 2, [tokenizer(text)] * 2)
    assert not capsys.readouterr().out
