"""How well inline elements and glossaries come through: the figures of docs/tools.md.

    pip install eflomal  # a statistical word aligner (Östling and Tiedemann 2016), which needs a C compiler
    KZOO_DATA=FOLDER python benchmarks/documents.py

Multi30k's test_2016_flickr. The aligner learns from the training text, the references and the translations.
"""

import argparse
import html
import itertools
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import sacrebleu
from eflomal import Aligner

from kzoo.data import open_corpus
from kzoo.documents import translate_document
from kzoo.documents.placeholders import keeping
from kzoo.documents.translating import next_step, translate_texts
from kzoo.engine.translator import CTranslate2Translator
from kzoo.presets import locate
from kzoo.text.glossary import ENDING

SPLIT = "test_2016_flickr"
WORD = re.compile(r"\w+")
CAPTIONS, LONGEST = 300, 3  # with an element each, of up to so many words
SPLITS, PLACED = ("test_2016_flickr", "test_2017_flickr", "test_2018_flickr"), 200  # most with a placeholder
PLACEHOLDERS = ("{0}", "%s", "{{name}}", "https://example.com/a?b=1")
# What a placeholder replaces in a caption and in its reference; the rest is group 1.
REPLACED = {
    "a number": (r"(?:Two|Three|Four|Five) (.*)", r"(?:Zwei|Drei|Vier|Fünf) (.*)"),
    "who it is": (
        r"A (?:man|woman|boy|girl|dog) (.*)",
        r"Ein (?:Mann|Junge|Mädchen|Hund) (.*)|Eine Frau (.*)",
    ),
    "the last words": (r"(.*) (?:a|the) \w+\.", r"(.*) (?:ein|eine[mnrs]?|de[mnrs]|das|die) [A-ZÄÖÜ]\w+\."),
}
COMMON, ALIKE = 3, 4 / 5  # a term's least occurrences, and the share that references translate alike


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--preset", default="pope_small_multi30k_en_de")
    options = parser.parse_args()
    translator = CTranslate2Translator(locate(options.preset))
    corpus = open_corpus("multi30k")
    english, german = corpus.pairs(SPLIT, "en", "de")
    usual = translator.translate(english, split_sentences=True)
    trained = list(zip(*corpus.pairs("train", "en", "de"), strict=True))
    pairs = [*zip(english, usual, strict=True), *zip(english, german, strict=True)]
    links = aligned([*pairs, *trained])
    elements(translator, english, german, usual, links)
    placeholders(
        translator, [pair for split in SPLITS for pair in zip(*corpus.pairs(split, "en", "de"), strict=True)]
    )
    glossaries(translator, english, german, usual, links[len(english) : len(pairs)])


def bleu(translations: list[str], references: list[str]) -> float:
    return sacrebleu.corpus_bleu(translations, [references]).score


def aligned(pairs: list[tuple[str, str]]) -> list[dict[int, int]]:
    """Return which words of a sentence translate which of the other: those aligned in both directions."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("source", "target", "forward", "backward")]
        for side, path in enumerate(paths[:2]):
            lines = (" ".join(WORD.findall(pair[side].lower())) or "-" for pair in pairs)
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        with open(paths[0], encoding="utf-8") as source, open(paths[1], encoding="utf-8") as target:
            Aligner().align(
                source, target, links_filename_fwd=str(paths[2]), links_filename_rev=str(paths[3])
            )
        both = zip(*(path.read_text().splitlines() for path in paths[2:]), strict=True)
        found = [set(forward.split()) & set(backward.split()) for forward, backward in both]
    return [dict(map(int, link.split("-")) for link in links) for links in found]


def elements(translator, english, german, usual, links):
    """Print what becomes of captions with an element, in a page of HTML."""
    draw, page, chosen = random.Random(1), [], []
    for text in english[:CAPTIONS]:
        words = list(WORD.finditer(text))
        first = draw.randrange(len(words))
        last = min(first + draw.randrange(LONGEST), len(words) - 1)
        begin, end = words[first].start(), words[last].end()
        before, within, after = (html.escape(part) for part in (text[:begin], text[begin:end], text[end:]))
        page.append(f"<p>{before}<b>{within}</b>{after}</p>")
        chosen.append(range(first, last + 1))
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder) / "in.html", Path(folder) / "out.html"
        path.write_text("\n".join(page), "utf-8")
        translate_document(path, output, translator)
        found = re.findall("<p>(.*?)</p>", output.read_text("utf-8"), re.DOTALL)
    plain = [html.unescape(re.sub("</?b>", "", text)) for text in found]
    same = sum(map(str.__eq__, plain, usual))
    sure = right = 0
    for text, is_usual, words, known in zip(
        found, map(str.__eq__, plain, usual), chosen, links, strict=False
    ):
        before, within, _ = (len(WORD.findall(html.unescape(part))) for part in re.split("</?b>", text))
        expected = sorted(known[word] for word in words if word in known)
        together = expected and expected[-1] - expected[0] + 1 == len(words)
        if len(expected) == len(words) and together and is_usual:
            sure += 1
            right += expected == list(range(before, before + within))
    scores = [bleu(some[:CAPTIONS], german[:CAPTIONS]) for some in (plain, usual)]
    print(f"{CAPTIONS} captions with an element: {same} translations are those without,", end=" ")
    print("{:.1f} BLEU, without elements {:.1f};".format(*scores), end=" ")
    print(f"of {sure} elements of which it is sure, {right} stand where the aligner has their words")


def placeholders(translator, pairs):
    """Print what becomes of captions in which a placeholder stands for a part."""

    def translate(texts: list[str]) -> list[str]:
        return translator.translate(texts, split_sentences=False)

    print("| stands for | captions | translated whole | BLEU, chrF2 | words around it by themselves |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, patterns in REPLACED.items():
        rows = []
        for pair in pairs:
            found = [re.fullmatch(pattern, text) for pattern, text in zip(patterns, pair, strict=True)]
            if all(found) and len(rows) < PLACED:
                rests = (next(filter(None, one.groups())) for one in found)
                one = PLACEHOLDERS[len(rows) % len(PLACEHOLDERS)]
                rows.append(
                    [f"{rest} {one}." if name == "the last words" else f"{one} {rest}" for rest in rests]
                    + [one]
                )
        texts, references, used = zip(*rows, strict=True)
        apart = []
        new = translate_texts(list(texts), translate, translator, ("en", "de"), apart)
        scores = []
        for some in (new, by_themselves(translate, texts)):
            # As one word, or the marks in it would count.
            sides = [
                [text.replace(one, "Platzhalter") for text, one in zip(side, used, strict=True)]
                for side in (some, references)
            ]
            scores.append(f"{bleu(*sides):.1f}, {sacrebleu.corpus_chrf(sides[0], [sides[1]]).score:.1f}")
        print(f"| {name} | {len(rows)} | {1 - len(apart) / len(rows):.0%} | {' | '.join(scores)} |")


def by_themselves(translate, texts: Sequence[str]) -> list[str]:
    """Return translations as if the model had lost all placeholders, and the numbers for them."""
    steps = keeping(list(texts), [])
    _, asked = next(steps)
    for _ in range(3):  # the sentences, and those with numbers, twice
        _, asked = steps.send(["-"] * len(asked))
    _, found = next_step(steps, translate(asked))
    return found


def glossaries(translator, english, german, usual, links):
    """Print what becomes of terms from the references: nouns, which German writes in capitals."""
    sides = [
        (WORD.findall(text.lower()), WORD.findall(other)) for text, other in zip(english, german, strict=True)
    ]
    nouns = {word for _, words in sides for word in words[1:] if word[0].isupper()}
    own, counts = [], defaultdict(Counter)
    for (left, right), known in zip(sides, links, strict=True):
        own.append({left[one]: right[other] for one, other in known.items() if right[other] in nouns})
        for one, other in known.items():
            counts[left[one]][right[other]] += 1
    common = {}
    for term, found in counts.items():
        ((best, count),) = found.most_common(1)
        if best in nouns and count >= max(COMMON, ALIKE * found.total()):
            common[term] = best
    print("| terms | occurrences | kept without | with | in the same form | BLEU | without |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, terms in ((f"{len(common)} for all", [common] * len(english)), ("of each sentence", own)):
        new = [
            translator.translate([text], terms=some, split_sentences=True)[0] if some else best
            for text, some, best in zip(english, terms, usual, strict=True)
        ]
        inflected = rf"\w{{0,{ENDING}}}"
        count, *shares = (
            sum(kept(*row) for row in zip(english, terms, some, itertools.repeat(ending)))
            for some, ending in (
                (itertools.repeat(None), ""),
                (usual, inflected),
                (new, inflected),
                (new, ""),
            )
        )
        percent = " | ".join(f"{share / count:.0%}" for share in shares)
        print(f"| {name} | {count:,} | {percent} | {bleu(new, german):.1f} | {bleu(usual, german):.1f} |")


def kept(text: str, terms: dict[str, str], translation: str | None, ending: str) -> int:
    """Return how many of a text's terms a translation has, with some ending; without translation, all."""
    wanted = Counter(terms[word] for word in WORD.findall(text.lower()) if word in terms)
    if translation is None:
        return wanted.total()
    return sum(
        min(count, len(re.findall(rf"(?<!\w){re.escape(term)}{ending}(?!\w)", translation, re.IGNORECASE)))
        for term, count in wanted.items()
    )


if __name__ == "__main__":
    main()
