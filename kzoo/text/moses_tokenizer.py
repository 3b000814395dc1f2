"""Subwords of text normalized and tokenized by Moses's rules, lowercased or truecased."""

import functools
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import keras
import sacremoses

from kzoo.errors import UserError
from kzoo.text.languages import (
    BETWEEN_CHINESE,
    CHINESE_MARKS,
    has_two_kinds_of_i,
    is_chinese,
    is_chinese_or_japanese,
    lower_case,
    main_code,
)
from kzoo.text.preparation import prepare
from kzoo.text.texts import checked_texts
from kzoo.text.tokenizers import SubwordTokenizer

DETRUECASER = sacremoses.MosesDetruecaser()
# Moses writes spaces around Chinese and Japanese punctuation and quotes, and around marks within words of
# Hebrew and Catalan.
AROUND_MARKS = re.compile(f" *([{CHINESE_MARKS}“”‘’…—·•]) *")
WITHIN_WORDS = re.compile(r"(?<=\w) ([־׳״]|(?<=[lL] )·(?= [lL])) (?=\w)")
BEFORE_MARKS = re.compile(" +([؟،؛۔।॥։።፣፤፥])")  # punctuation that Moses does not join to the word before it
FORMS_FILE = "truecaser.json"


@keras.saving.register_keras_serializable("kzoo")
class MosesSubwordTokenizer(SubwordTokenizer):
    """SentencePiece subwords of lowercased Moses tokens; detokenizes to plain lowercase text.

    Args:
        proto: as for `SubwordTokenizer`; trained on the output of `normalize`.
        language: language code, which selects the punctuation rules.
        **kwargs: other arguments of `SubwordTokenizer`.

    Call arguments:
        inputs: list of `str`.

    Returns:
        A list of lists of int, without start and end.

    Example:

    >>> text = [moses_text("A man, a dog.", "en")] * 20
    >>> tokenizer = MosesSubwordTokenizer(train_subwords(text, vocabulary_size=20), language="en")
    >>> tokenizer.detokenize(tokenizer(["A dog, a man."]))
    ['a dog, a man.']

    Reference:
        Koehn et al. 2007, "Moses: Open Source Toolkit for Statistical Machine Translation".
        https://aclanthology.org/P07-2045
    """

    lowercases = True

    def __init__(self, proto=None, language: str = "en", **kwargs):
        super().__init__(proto, **kwargs)
        self.language = language

    def normalize(self, text: str) -> str:
        return moses_text(text, self.language)

    def tokenize(self, inputs):
        return super().tokenize([self.normalize(text) for text in checked_texts(inputs)])

    def detokenize(self, inputs):
        return [self.plain(tokens) for tokens in super().detokenize(inputs)]

    def plain(self, tokens: str) -> str:
        """Return a normalized sentence as plain text: the inverse of `normalize`."""
        text = _tools(self.language)[2].detokenize(tokens.split(), unescape=False)
        if not is_chinese_or_japanese(self.language):
            return WITHIN_WORDS.sub(r"\1", BEFORE_MARKS.sub(r"\1", text))
        # Moses also puts spaces between the characters that it does not know, those from U+30000 on.
        return BETWEEN_CHINESE.sub("", AROUND_MARKS.sub(r"\1", text))

    def get_config(self):
        return {**super().get_config(), "language": self.language}


@keras.saving.register_keras_serializable("kzoo")
class TruecasedSubwordTokenizer(MosesSubwordTokenizer):
    """SentencePiece subwords of truecased Moses tokens; detokenized text begins with a capital.

    Args:
        proto: as for `SubwordTokenizer`; trained on the output of `normalize`.
        language: language code, which selects the punctuation rules.
        forms: the words' forms, as `learn_forms` returns them for the `moses_tokens` of the training text.
            `None` until `load_preset_assets` or a saved model provides them.
        **kwargs: other arguments of `SubwordTokenizer`.

    Call arguments:
        inputs: list of `str`.

    Returns:
        A list of lists of int, without start and end.

    Raises:
        UserError: Turkish or Azerbaijani: Moses's truecasing does not support their dotted and dotless i.

    Example:

    >>> tokenizer = TruecasedSubwordTokenizer(forms=learn_forms(["See a man , a dog in Rome ."]))
    >>> tokenizer.normalize("A man in Rome.")
    'a man in Rome .'
    >>> tokenizer.set_proto(train_subwords(["a man , a dog in Rome ."] * 20, vocabulary_size=30))
    >>> tokenizer.detokenize(tokenizer(["A dog, a man."]))
    ['A dog, a man.']

    Reference:
        Koehn et al. 2007, "Moses: Open Source Toolkit for Statistical Machine Translation".
        https://aclanthology.org/P07-2045
    """

    lowercases = False

    def __init__(
        self, proto=None, language: str = "en", forms: Sequence[Sequence[str]] | None = None, **kwargs
    ):
        if has_two_kinds_of_i(language):
            raise UserError(
                f"Moses's truecasing does not support language {language!r}, with its dotted and dotless i"
            )
        super().__init__(proto, language, **kwargs)
        self.file_assets = [*self.file_assets, FORMS_FILE]
        self._truecaser = Truecaser(forms or ())

    def normalize(self, text: str) -> str:
        return self._truecaser(moses_tokens(text, self.language))

    def plain(self, tokens: str) -> str:
        if main_code(self.language) != "ka":  # Georgian's capitals do not begin sentences
            tokens = DETRUECASER.detruecase(tokens, return_str=True)
        return super().plain(tokens)

    def save_assets(self, dir_path):
        super().save_assets(dir_path)
        text = json.dumps(self._truecaser.forms, ensure_ascii=False)
        (Path(dir_path) / FORMS_FILE).write_text(text, encoding="utf-8")

    def load_assets(self, dir_path):
        super().load_assets(dir_path)
        self._truecaser = Truecaser(json.loads((Path(dir_path) / FORMS_FILE).read_text(encoding="utf-8")))

    def get_config(self):
        return {**super().get_config(), "forms": None}  # an asset, like the subwords


class Truecaser:
    """Writes the first word of a sentence, and words with an unknown form, in their most frequent form.

    Args:
        forms: the forms of each word, the most frequent first, as `learn_forms` returns them.

    Example:

    >>> Truecaser(learn_forms(["He saw the man ."]))("The Man saw Anna .")
    'the man saw Anna .'

    Reference:
        Lita et al. 2003, "tRuEcasIng". https://aclanthology.org/P03-1020
    """

    def __init__(self, forms: Sequence[Sequence[str]]):
        self.forms = forms
        self._moses = sacremoses.MosesTruecaser()
        self._moses.model = {
            "best": {words[0].lower(): words[0] for words in forms},
            "known": {word for words in forms for word in words},
        }

    def __call__(self, tokens: str) -> str:
        """Return a sentence truecased; its tokens are separated by spaces, as by Moses's tokenizer."""
        # `use_known` is Moses's own rule; sacremoses does not apply it by default.
        return self._moses.truecase(tokens, return_str=True, use_known=True)


def learn_forms(sentences: Iterable[str]) -> list[list[str]]:
    """Return the forms of each word, the most frequent first; ties in the order of first occurrence.

    The first word of each sentence is ignored, because it is always capitalized.

    Args:
        sentences: the text, with its tokens separated by spaces.
    """
    moses, casing = sacremoses.MosesTruecaser(), defaultdict(Counter)
    for sentence in sentences:  # `moses.train` would hold all words in memory
        for word, form, weight in moses.learn_truecase_weights(sentence.split()):
            casing[word][form] += weight
    return [[form for form, _ in counts.most_common()] for counts in casing.values()]


def moses_tokens(text: str, language: str) -> str:
    """Return a sentence with its punctuation normalized (except for Chinese) and its tokens separated."""
    normalizer, tokenizer, _ = _tools(language)
    text = unicodedata.normalize("NFC", prepare(text))  # a separate accent would become a token
    normal = text if is_chinese(language) else normalizer.normalize(text)  # which turns “ into "
    return tokenizer.tokenize(normal, return_str=True, escape=False)


def moses_text(text: str, language: str) -> str:
    """Return a sentence with its punctuation normalized and its tokens separated, in lower case."""
    return lower_case(moses_tokens(text, language), language)


@functools.cache
def _tools(language: str):
    code = "zh" if is_chinese(language) else main_code(language)  # sacremoses treats fr-CA as English
    # In a sentence that ends in a number, sacremoses' Czech rules join every number to the word before it.
    # With Slovak, which has no rules, more of Multi30k's Czech sentences survive the round trip.
    detokenized = "sk" if code == "cs" else code
    normalizer, tokenizer = sacremoses.MosesPunctNormalizer(code), sacremoses.MosesTokenizer(code)
    return normalizer, tokenizer, sacremoses.MosesDetokenizer(detokenized)
