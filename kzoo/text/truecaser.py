"""Moses's truecasing: words at the start of a sentence get the case that they have within sentences."""

from collections.abc import Iterable, Sequence

from sacremoses import MosesTruecaser

from kzoo.errors import UserError


class Truecaser:
    """Writes the first word of a sentence, and words in an unseen form, in their most frequent form.

    Args:
        forms: the forms of each word, the most frequent first, as `learn_forms` returns them.

    Raises:
        UserError: `forms` is something else.

    Example:

    >>> Truecaser(learn_forms(["He saw the man ."]))("The Man saw Anna .")
    'the man saw Anna .'

    Reference:
        Lita et al. 2003, "tRuEcasIng". https://aclanthology.org/P03-1020
    """

    def __init__(self, forms: Sequence[Sequence[str]]):
        if not all(words and all(isinstance(word, str) for word in words) for words in forms):
            raise UserError("a truecaser's forms are lists of words, one list per word: learn them again")
        self.forms = forms
        self._moses = MosesTruecaser()
        self._moses.model = {
            "best": {words[0].lower(): words[0] for words in forms},
            "known": {word for words in forms for word in words},
        }

    def __call__(self, tokens: str) -> str:
        """Return a sentence truecased; its tokens are separated by spaces, as by Moses's tokenizer."""
        # sacremoses has Moses's rule for known forms, but leaves it out by default.
        return self._moses.truecase(tokens, return_str=True, use_known=True)


def learn_forms(sentences: Iterable[str]) -> list[list[str]]:
    """Return the forms of each word, the most frequent first; equally frequent ones in the order seen.

    First words of sentences do not count, because they are always capitalized.

    Args:
        sentences: the text, with its tokens separated by spaces.
    """
    casing = MosesTruecaser().train([sentence.split() for sentence in sentences])["casing"]
    return [[form for form, _ in counts.most_common()] for counts in casing.values()]
