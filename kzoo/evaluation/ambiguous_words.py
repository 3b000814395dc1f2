"""Whether translations get those words right that only the picture tells how to translate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kzoo.errors import UserError
from kzoo.scenes import Scene, scenes


@dataclass(frozen=True)
class AmbiguousScores:
    """How many ambiguous words were translated in the sense that the picture shows.

    Args:
        words: how many there are.
        right: number with a form of the right sense in the translation, and none of the other sense.
        other: number with the other sense; the rest were translated in some other way.
    """

    words: int
    right: int
    other: int

    @property
    def accuracy(self) -> float:
        """The share of right words, in percent."""
        return 100 * self.right / self.words


def score_ambiguous_words(
    scenes: Sequence[Scene], translations: Sequence[str], source: str, target: str
) -> AmbiguousScores:
    """Count the ambiguous words of scenes that were translated as the pictures show.

    Nothing in the text tells the senses of a word apart; always taking the one that is more frequent in the
    training set gets 59.6 % of the words right from English to German, 50.6 % from Indonesian to Chinese.

    Args:
        scenes: what was translated.
        translations: one for each scene.
        source: language translated from.
        target: language translated to.

    Raises:
        UserError: the numbers differ, or no word is ambiguous between these languages.

    Example:

    >>> from kzoo.scenes import scenes
    >>> references = [scene.sentence("de") for scene in scenes("test")]
    >>> score_ambiguous_words(scenes("test"), references, "en", "de").accuracy
    100.0
    """
    if len(scenes) != len(translations):
        raise UserError(
            f"{len(scenes):,} scenes but {len(translations):,} translations: one for each is needed"
        )
    words = [
        (word, translation)
        for scene, translation in zip(scenes, translations, strict=True)
        for word in scene.ambiguous(source, target)
    ]
    if not words:
        raise UserError(f"no word of these {len(scenes):,} scenes is ambiguous from {source} to {target}")
    right = sum(word.is_right(translation) for word, translation in words)
    other = sum(
        replace(word, right=word.wrong, wrong=word.right).is_right(translation) for word, translation in words
    )
    return AmbiguousScores(len(words), right, other)


def score_scenes(
    translations: Mapping[str, Sequence[str]], source: str, target: str
) -> dict[str, AmbiguousScores]:
    """Return the scores of translations of Scenes' splits; none where no word is ambiguous.

    Args:
        translations: of each split's sentences, by the split's name.
        source: language translated from.
        target: language translated to.
    """
    if not any(one.ambiguous(source, target) for one in scenes("test")):
        return {}
    return {
        split: score_ambiguous_words(scenes(split), translated, source, target)
        for split, translated in translations.items()
    }
