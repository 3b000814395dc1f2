"""Subword tokenizers against plain sentencepiece, and their way through a file."""

import pytest
import sentencepiece
from message_of import message_of

from kzoo.data import open_corpus
from kzoo.errors import UserError
from kzoo.text import UNKNOWN, CharacterTokenizer, SubwordTokenizer, learn_characters, train_subwords


@pytest.fixture(scope="module")
def sentences():
    return open_corpus("scenes").sentences("val", "de")


@pytest.fixture(scope="module")
def proto(sentences):
    return train_subwords(sentences, 300)


@pytest.mark.parametrize("long", ["a b c d " * 2000, "a b c d " * 9000, "abcd" * 50_000])
def test_a_sentence_of_any_length_is_learned_from(long):
    """SentencePiece by itself leaves out those over 4,192 bytes."""
    tokenizer = SubwordTokenizer(train_subwords([long + "ź", "hello there"], 30))
    assert "ź" in tokenizer.get_vocabulary()


@pytest.mark.parametrize("text", [[], [""], [" ", "\t"], ["\n"]])
def test_no_text_is_named(text):
    assert "text" in message_of(train_subwords, text, 30)


@pytest.mark.parametrize("kind", [SubwordTokenizer, CharacterTokenizer])
def test_a_configuration_has_no_vocabulary(kind, proto):
    tokenizer = kind(proto if kind is SubwordTokenizer else ["我"])
    copy = kind.from_config(tokenizer.get_config())
    with pytest.raises(UserError, match="vocabulary"):
        copy(["我"])


@pytest.mark.parametrize("setting", [{"add_bos": True}, {"add_eos": True}, {"sequence_length": 9}])
def test_special_words_are_added_by_kzoo_alone(setting, proto):
    assert next(iter(setting)) in message_of(SubwordTokenizer, proto, **setting)


def test_special_words_and_size(proto):
    tokenizer = SubwordTokenizer(proto)
    assert tokenizer.vocabulary_size() == 300
    assert tokenizer.get_vocabulary()[:4] == ["<pad>", "<unk>", "<s>", "</s>"]


def test_equals_sentencepiece_and_returns_the_text(proto, sentences):
    tokenizer = SubwordTokenizer(proto)
    words = tokenizer(sentences)
    assert words == sentencepiece.SentencePieceProcessor(model_proto=proto).encode(sentences)
    assert tokenizer.detokenize(words) == sentences


def test_training_is_reproducible(proto, sentences):
    assert train_subwords(sentences, 300) == proto


def test_accents_are_joined_to_their_letters(proto):
    tokenizer = SubwordTokenizer(proto)
    assert tokenizer.detokenize(tokenizer(["Gru\u0308n"])) == ["Gr\u00fcn"]


@pytest.mark.parametrize("text", ["cafe\u0301 noir", "two \u00a0 dogs", "two\u200b dogs"])
def test_accents_spaces_and_what_is_not_seen_do_not_keep_text_as_it_is(text):
    tokenizer = SubwordTokenizer(train_subwords([text, "two dogs are running fast"] * 9, 40))
    assert tokenizer(["e\u0301"]) == tokenizer(["\u00e9"])
    assert tokenizer(["two\u00a0dogs"]) == tokenizer(["two dogs"])


def test_full_width_marks_stay_in_chinese():
    chinese = open_corpus("scenes").sentences("val", "zh") + ["你好，世界！（真的？）"]
    tokenizer = SubwordTokenizer(train_subwords(chinese, 500))
    assert tokenizer.detokenize(tokenizer(chinese)) == chinese


@pytest.mark.parametrize(
    "sentence",
    [
        "ผู้ชายดื่มน้ำ",  # NFKC takes SARA AM apart
        "او می\u200cخواهد",  # the joiner would become a space
        "ㅋㅋㅋ 네",  # letters of their own, not parts of syllables
        "Wait … 5½ €",
    ],
)
def test_what_nfkc_would_replace_stays(sentence):
    tokenizer = SubwordTokenizer(train_subwords([sentence, "two dogs are running fast"] * 9, 40))
    assert tokenizer.detokenize(tokenizer([sentence])) == [sentence]


def test_a_stray_full_width_mark_does_not_change_what_other_text_becomes(sentences):
    tokenizer = SubwordTokenizer(train_subwords([*list(sentences) * 3, "Ein Mann läuft！"], 300))
    assert tokenizer.detokenize(tokenizer(["Gru\u0308n"])) == tokenizer.detokenize(tokenizer(["Gr\u00fcn"]))
    assert tokenizer(["two\u00a0dogs"]) == tokenizer(["two dogs"])


def test_a_nul_is_named():
    assert "sentence 2" in message_of(train_subwords, ["two dogs", "a\0b"] * 9, 20)


LINE_ENDS = [chr(code) for code in range(0x2100) if len(f"a{chr(code)}b".splitlines()) == 2]
CHINESE = ["你好，世界！（真的？）", "两只 狗。"]


@pytest.fixture(scope="module")
def tokenizers(proto):
    learned = [f"{sentence}\r\r\n" for sentence in CHINESE * 9]
    return {
        "as it is": SubwordTokenizer(train_subwords(learned, 28)),
        "characters": CharacterTokenizer(learn_characters(learned)),
        "nfkc": SubwordTokenizer(proto),
    }


@pytest.mark.parametrize("kind", ["as it is", "characters", "nfkc"])
@pytest.mark.parametrize("end", [*LINE_ENDS, "\r\r\n", "\n\n"])
def test_what_ends_a_line_is_never_a_word(end, kind, tokenizers):
    tokenizer = tokenizers[kind]
    one, other = ("Ein Hund", "rennt.") if kind == "nfkc" else CHINESE
    assert tokenizer([one + end, end + one + end, f"{one}{end}{other}", end]) == tokenizer(
        [one, one, f"{one} {other}", ""]
    )
    assert UNKNOWN not in tokenizer([f"{one}{end}{other}"])[0]


def test_too_large_a_vocabulary_is_named(sentences):
    for size in (90_000, 10**20):
        assert f"vocabulary_size={size}" in message_of(train_subwords, sentences, size)
    assert "26 characters" in message_of(train_subwords, ["abcdefghijklmnopqrstu"], 20)


def test_foreign_special_words_are_refused(sentences, tmp_path):
    prefix = str(tmp_path / "foreign")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_prefix=prefix,
        model_type="bpe",
        vocab_size=300,
        minloglevel=2,
    )
    with pytest.raises(UserError, match="kzoo.text.train_subwords"):
        SubwordTokenizer((tmp_path / "foreign.model").read_bytes())


def test_a_text_too_short_for_the_vocabulary_names_the_size_that_it_allows():
    message = message_of(train_subwords, ["a b c d", "the dog"], 8000)
    assert message.endswith("it is too short, set vocabulary_size to 27 or less")
