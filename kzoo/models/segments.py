"""Tagged words as tagged characters, and back."""

from collections.abc import Iterable, Sequence

from kzoo.errors import UserError

Segment = tuple[str, str]  # a word and its tag


def segments_to_tags(segments: Iterable[Segment]) -> tuple[str, list[str]]:
    """Return the characters of tagged words, and their tags: `B-` for a word's first character, else `I-`.

    Raises:
        UserError: a word is empty or has no tag.

    Example:

    >>> segments_to_tags([("学生", "NOUN"), ("来", "VERB")])
    ('学生来', ['B-NOUN', 'I-NOUN', 'B-VERB'])
    """
    characters, tags = [], []
    for segment in segments:
        if isinstance(segment, str):  # Python would unpack a word of two characters
            raise UserError(f"give each word with its tag, such as ('来', 'VERB'), not {segment!r:.80}")
        word, tag = segment
        if not word:
            raise UserError(f"a word with the tag {tag} is empty")
        characters.append(word)
        tags += [f"B-{tag}"] + [f"I-{tag}"] * (len(word) - 1)
    return "".join(characters), tags


def tags_to_segments(characters: Sequence[str], tags: Sequence[str]) -> list[Segment]:
    """Return the tagged words: the inverse of `segments_to_tags`.

    An `I-` tag after another tag, or at the beginning, begins a new word, as in CoNLL's evaluation.

    Example:

    >>> tags_to_segments("学生来", ["I-NOUN", "I-NOUN", "I-VERB"])
    [('学生', 'NOUN'), ('来', 'VERB')]
    """
    segments = []
    for character, tag in zip(characters, tags, strict=True):
        place, _, name = tag.partition("-")
        if place == "I" and segments and segments[-1][1] == name:
            segments[-1] = (segments[-1][0] + character, name)
        else:
            segments.append((character, name))
    return segments
