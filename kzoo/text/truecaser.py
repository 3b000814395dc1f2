"""Moses's truecasing: words as they are written within sentences, also where a sentence begins."""

from collections.abc import Iterable, Sequence

from sacremoses import MosesTruecaser

from kzoo.errors import UserError


class Truecaser:
    """Writes the first word of a sentence, and words never seen as they stand, in their most frequent form.

    Args:
        forms: for each word its forms, the most frequent first, as `learn_forms` returns them.

    Raises:
        UserError: they are something else.

    Example:

    >>> Truecaser(learn_forms(["He saw the man ."]))("The Man saw Anna .")
    'the man saw Anna .'

    Reference:
        Lita et al. 2003, "tRuEcasIng". https://aclanthology.org/P03-1020
    """

    def __init__(self, forms: Sequence[Sequence[str]]):
        if not all(words and all(isinstance(word, str) for word in words) for words in forms):
            raise UserError("a truecaser's forms are lists of words, a list for each word: learn them again")
        self.forms = forms
        self._moses = MosesTruecaser()
        self._moses.model = {
            "best": {words[0].lower(): words[0] for words in forms},
            "known": {word for words in forms for word in words},
        }

    def __call__(self, tokens: str) -> str:
        """Return a sentence truecased; its tokens stand between spaces, as Moses's tokenizer leaves them."""
        # sacremoses has Moses's rule for known forms, but leaves it out by default.
        return self._moses.truecase(tokens, return_str=True, use_known=True)


def learn_forms(sentences: Iterable[str]) -> list[list[str]]:
    """Return the forms of each word, the most frequent first; of equally frequent ones the first seen.

    First words of sentences do not count: they are capitalized whatever they are.

    Args:
        sentences: the text, its tokens between spaces.
    """
    casing = MosesTruecaser().train([sentence.split() for sentence in sentences])["casing"]
    return [[form for form, _ in counts.most_common()] for counts in casing.values()]
