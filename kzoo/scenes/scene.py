"""Scenes: the records that pictures are drawn from and that each language puts into words.

A scene has one or two entities (people, animals, things), an action, a setting and a time or weather. It
holds more than its sentence says: `Entity.mentions` and `Scene.opening` determine which parts are said.
"""

import re
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import permutations

from kzoo.errors import UserError, nearest

_REALIZERS = {  # imported on first use: a pair of languages needs two of the six lexicons
    "en": "english",
    "de": "german",
    "fr": "french",
    "cs": "czech",
    "id": "indonesian",
    "zh": "chinese",
}
LANGUAGES = tuple(_REALIZERS)

PROFESSIONS = ("teacher", "doctor", "student", "singer", "farmer")
AMBIGUOUS = {  # the two senses of nouns; `sampling` draws in this order
    "bat": ("club", "animal"),
    "mouse": ("device", "animal"),
    "seal": ("stamp", "animal"),
    "trunk": ("box", "tree"),
    "pipe": ("smoking", "tube"),
    "bow": ("weapon", "ribbon"),
    "crane": ("machine", "bird"),
}
SENSES = AMBIGUOUS | dict.fromkeys(PROFESSIONS, ("male", "female"))
OTHER_SENSE = {
    (kind, sense): other for kind, senses in SENSES.items() for sense, other in permutations(senses)
}
_OTHER_KIND = {"man": "woman", "woman": "man", "boy": "girl", "girl": "boy"}
_SEX = {"man": "male", "boy": "male", "woman": "female", "girl": "female"}


@dataclass(frozen=True)
class Entity:
    """One to three people, animals or things of a kind, and how they look.

    Args:
        kind: the English noun: "man", "dog", "ball", "bat" …
        sense: what an ambiguous noun means here ("club" or "animal" for "bat"); for a profession, "male"
            or "female"; empty for every other kind.
        count: 1 to 3.
        size: "small", "big", "young" or "old".
        colour: of the clothing of people, of the fur of animals, of a thing itself.
        clothing: what people wear; empty for animals and things.
        side: "left" or "right": its half of the picture.
        mentions: which of "size" and "colour" the sentence says ("colour" of people: with the clothing).
        pronoun: whether the sentence says only "he" or "she".
    """

    kind: str
    sense: str = ""
    count: int = 1
    size: str = ""
    colour: str = ""
    clothing: str = ""
    side: str = "left"
    mentions: tuple[str, ...] = ()
    pronoun: bool = False

    @property
    def key(self) -> str:
        """The key in the lexicons: "dog", "bat/club"."""
        return f"{self.kind}/{self.sense}" if self.sense else self.kind

    @property
    def sex(self) -> str:
        """The sex: "male", "female", or empty if the kind does not tell."""
        return _SEX.get(self.kind, self.sense if self.kind in PROFESSIONS else "")

    @property
    def said_size(self) -> str:
        """The size if the sentence mentions it, else empty."""
        return self.size if "size" in self.mentions else ""

    @property
    def said_colour(self) -> str:
        """The colour if the sentence mentions it, else empty."""
        return self.colour if "colour" in self.mentions else ""


@dataclass(frozen=True)
class AmbiguousWord:
    """A word of a source sentence whose translation depends on the picture, not on the text.

    Args:
        word: the source word, as in the source sentence.
        sense: what it means in this scene.
        right: forms, one of which must occur in the translation.
        wrong: forms of the other sense, none of which may occur.
        language: the target language. Forms are whole words, in any case of letters; in Chinese, which
            has no spaces, parts of the sentence.
    """

    word: str
    sense: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    language: str

    def is_right(self, translation: str) -> bool:
        """Return whether a translation has the right sense: a right form and no wrong one.

        Args:
            translation: a sentence in the target language.

        Example:
            >>> AmbiguousWord("bat", "club", ("Schläger",), ("Fledermaus",), "de").is_right("Ein Schläger.")
            True
        """
        right, wrong = (_first_form(forms, translation, self.language) for forms in (self.right, self.wrong))
        return right is not None and wrong is None


def _first_form(forms: tuple[str, ...], sentence: str, language: str) -> str | None:
    # Chinese has no word boundaries; the 他 (he) in 吉他 (guitar) is not a word.
    before, after = ("(?<!吉)", "") if language == "zh" else (r"\b", r"\b")
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    any_form = "|".join(map(re.escape, longest_first))
    found = re.search(f"{before}(?:{any_form}){after}", sentence, re.IGNORECASE)
    return found.group() if found else None


@dataclass(frozen=True)
class Scene:
    """A synthetic picture, and its caption in six languages.

    Args:
        pattern: the kind of sentence: "doing" (nobody acted on), "pair" (two do the same), "together"
            (one does it with the other), "acting" (the subject acts on the object), "existing" (there is),
            "beside" (there is something next to, behind … something).
        setting: "park", "kitchen" …
        setting_size: "", "small", "big" or "old"; said with the setting if it is not empty.
        time: the time of day or the weather; "day" is never said.
        opening: what the sentence begins with: "time", "side" (where the subject is), or "" (neither).
        subject: who or what comes first in the English sentence.
        action: the key of a verb; empty in "existing" and "beside".
        object: the second person, animal or thing, or None.
        relation: "next to", "in front of" or "behind" in "beside", else empty.

    Example:
        >>> dog = Entity("dog", size="small", colour="brown", mentions=("size", "colour"))
        >>> Scene("doing", "park", "", "day", "", dog, "sleep").sentence("de")
        'Ein kleiner brauner Hund schläft im Park.'
    """

    pattern: str
    setting: str
    setting_size: str
    time: str
    opening: str
    subject: Entity
    action: str = ""
    object: Entity | None = None
    relation: str = ""
    # By language: sampling compares sentences in all languages, and they are needed again.
    _sentences: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def sentence(self, language: str) -> str:
        """Return the caption.

        Args:
            language: one of `LANGUAGES`.

        Returns:
            One sentence, with its full stop.

        Raises:
            UserError: no such language.

        Example:
            >>> Scene("doing", "park", "", "day", "", Entity("cow", count=2), "sleep").sentence("fr")
            'Deux vaches dorment dans le parc.'
        """
        if language not in self._sentences:
            self._sentences[language] = _realizer(language).sentence(self)
        return self._sentences[language]

    def ambiguous(self, source: str, target: str) -> tuple[AmbiguousWord, ...]:
        """Return the words of the source sentence whose translation depends on the picture.

        A word counts if the source sentence is the same, letter for letter, in the scene with its other
        sense, and each sense has a form of its own in its target sentence.

        Args:
            source: the source language.
            target: the target language.

        Returns:
            The words; none for most scenes.

        Raises:
            UserError: no such language.

        Example:
            >>> bat = Entity("bat", sense="animal")
            >>> Scene("existing", "park", "", "day", "", bat).ambiguous("en", "de")[0].right
            ('Fledermaus', 'Fledermäuse', 'Fledermäusen')
        """
        _realizer(source), _realizer(target)  # refuses unknown languages, even without ambiguous words
        places = [place for place in ("subject", "object") if getattr(self, place)]
        return tuple(word for place in places for word in self._ambiguous(place, source, target))

    def _ambiguous(self, place: str, source: str, target: str) -> tuple[AmbiguousWord, ...]:
        entity = getattr(self, place)
        other = _other(entity)
        if other is None:
            return ()
        twin = replace(self, **{place: other})
        if self.sentence(source) != twin.sentence(source) or self.sentence(target) == twin.sentence(target):
            return ()
        here, there = _realizer(target).forms(entity), _realizer(target).forms(other)
        right = tuple(form for form in here if form not in there)
        wrong = tuple(form for form in there if form not in here)
        for own, scene in ((right, self), (wrong, twin)):
            if not own or _first_form(own, scene.sentence(target), target) is None:
                return ()  # Czech "jeřáb": only the bird has a form of its own, or only an ending differs
        word = _first_form(_realizer(source).forms(entity), self.sentence(source), source)
        return (AmbiguousWord(word, entity.sense or entity.sex, right, wrong, target),)


def _other(entity: Entity) -> Entity | None:
    """Return the entity in its other sense, or None if its word has only one."""
    if entity.pronoun:
        return replace(entity, kind=_OTHER_KIND[entity.kind])
    if entity.sense:
        return replace(entity, sense=OTHER_SENSE[entity.kind, entity.sense])
    return None


def _realizer(language: str):
    if language not in _REALIZERS:
        raise UserError(f"scenes have no language {language!r}, {nearest(language, list(LANGUAGES))}")
    return import_module(f"kzoo.scenes.{_REALIZERS[language]}")
