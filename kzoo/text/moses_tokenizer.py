"""Subwords of text in Moses's form: punctuation normalized, tokens apart, in lower case."""

import functools

import keras
from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from kzoo.text.tokenizers import SubwordTokenizer


@keras.saving.register_keras_serializable("kzoo")
class MosesSubwordTokenizer(SubwordTokenizer):
    """SentencePiece subwords of lowercased Moses tokens; what it puts together again is plain lowercase text.

    Args:
        proto: as `SubwordTokenizer` takes it; trained on what `moses_text` returns.
        language: code, which decides how punctuation is treated.
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

    def __init__(self, proto=None, language: str = "en", **kwargs):
        super().__init__(proto, **kwargs)
        self.language = language

    def tokenize(self, inputs):
        return super().tokenize([moses_text(text, self.language) for text in inputs])

    def detokenize(self, inputs):
        detokenizer = _tools(self.language)[2]
        return [detokenizer.detokenize(text.split(), unescape=False) for text in super().detokenize(inputs)]

    def get_config(self):
        return {**super().get_config(), "language": self.language}


def moses_text(text: str, language: str) -> str:
    """Return a sentence with its punctuation normalized, its tokens apart, in lower case."""
    normalizer, tokenizer, _ = _tools(language)
    return tokenizer.tokenize(normalizer.normalize(text), return_str=True, escape=False).lower()


@functools.cache
def _tools(language: str):
    return MosesPunctNormalizer(language), MosesTokenizer(language), MosesDetokenizer(language)
