"""A tokenizer whose tokens are words."""

from kzoo.text.pieces import LanguageNames


class WordTokens(LanguageNames):
    """Gives each word a token, and keeps the texts.

    Args:
        token_of: function of a word.
    """

    def __init__(self, token_of=str):
        self.token_of, self.texts = token_of, []

    def __call__(self, texts):
        self.texts += texts
        return [[self.token_of(word) for word in text.split()] for text in texts]
