"""The glyph paper's tables: translation, also by character frequency, tagging, word similarity, and Figure 1.

    python training/glyph_tables.py table4 --size tiny
    python training/glyph_tables.py table5 --size tiny
    python training/glyph_tables.py table6 --size tiny
    python training/glyph_tables.py table7 --size tiny
    python training/glyph_tables.py figure1 --size tiny

Each run is a folder under `--runs`; finished runs are not repeated, stopped ones resume. Prints Markdown
tables, and writes them and the results as JSON beside the runs; the JSON keeps the results of other calls.

Reproduces Broscheit et al. 2018, Tables 4 to 7 and Figure 1. `--size tiny` translates Tatoeba and tags
Universal Dependencies; `--size base` translates WMT 2017, tags the Chinese Treebank 5.0 (the folder
KZOO_DATA/ctb5) and needs a GPU.
"""

import dataclasses
import json
import os
from pathlib import Path
from statistics import mean
from typing import Annotated, Literal

import numpy as np
import typer
from keras import ops

from kzoo.cli import main
from kzoo.commands.options import Overrides
from kzoo.data.conllu import read_conllu
from kzoo.errors import UserError, nearest
from kzoo.evaluation import (
    evaluate,
    frequency_buckets,
    plot_activations,
    plot_glyphs,
    plot_nearest,
    score_by_frequency,
    score_tagging,
    score_translations,
    top_activations,
)
from kzoo.evaluation.markdown import show_markdown
from kzoo.evaluation.scores import write_scores
from kzoo.evaluation.word_similarity import WORD_PAIRS, open_word_pairs, score_word_similarity
from kzoo.files import write_json
from kzoo.layers.glyph_architectures import ARCHITECTURES
from kzoo.presets import load
from kzoo.text import render_glyphs
from kzoo.text.segment_tags import segments_to_tags
from kzoo.training import Recipe, make_recipe, read_recipe, train
from kzoo.training.recipe_corpus import recipe_corpus
from kzoo.training.run_folder import keep_results
from kzoo.training.tagging import tagger_from, train_tagger

CHOSEN = "EMB,cnn_fc_relu,fc_2,cnn_softmax_fc"
FEATURES = (256, 512, 1024, 2048, 4096)  # F in Table 4
SWEPT = ("cnn_fc_relu", "cnn_softmax_fc")
# Universal Dependencies: the taggers' training text (PUD and HK are traditional), one test in two scripts.
TREEBANKS = "zh_gsdsimp-ud-dev,zh_pud-ud-test,zh_hk-ud-test,zh_cfl-ud-test"
TAGGED_TESTS = {"simplified": "zh_gsdsimp-ud-test", "traditional": "zh_gsd-ud-test"}

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
Size = Annotated[Literal["tiny", "base"], typer.Option()]
Runs = Annotated[Path, typer.Option(help="Folder of the runs.")]
Encoders = Annotated[
    str, typer.Option(help="EMB and architectures, comma-separated; cnn_fc_relu:256 has F = 256.")
]
RUNS = Path("runs/glyph")
# Set by the encoders.
FIXED = ("preset", "source_characters", "model.architecture", "model.glyph_options")


@app.command()
def table4(
    size: Size = "tiny",
    runs: Runs = RUNS,
    encoders: Encoders = CHOSEN,
    sweep: Annotated[bool, typer.Option(help="Every architecture, and every F of Table 4.")] = False,
    overrides: Overrides = None,
):
    """BLEU of every encoder, and the perplexity of its decoder before it saw a source."""
    if sweep:
        swept = [f"{architecture}:{F}" for architecture in SWEPT for F in FEATURES]
        encoders = ",".join(["EMB", "cnn_relu", "fc_1", "fc_2", *swept])
    lines = [
        "| encoder | validation | test | test, lowercased | perplexity |",
        "| --- " + "| ---: " * 4 + "|",
    ]
    path = runs / f"table4_{size}.json"
    for name in named(encoders):
        recipe, folder, (validation, test) = trained(name, size, runs, overrides)
        row, perplexity = {"validation": validation, "test": test}, ""
        if recipe.language_model_epochs:
            row["language_model"] = json.loads((folder / "language_model/language_model.json").read_text())
            perplexity = f"{row['language_model']['perplexity']:.1f}"
        add_row(path, name, recipe, row)
        lines.append(
            f"| {name} | {validation['bleu']:.1f} | {test['bleu']:.1f} | {test['bleu_lowercased']:.1f} "
            f"| {perplexity} |"
        )
    show_markdown("\n".join([*lines, "", f"`{test['signatures']['bleu']}`"]), path)


@app.command()
def table5(size: Size = "tiny", runs: Runs = RUNS, encoders: Encoders = CHOSEN, overrides: Overrides = None):
    """BLEU of the test sentences with rare, medium and frequent characters."""
    lines = ["| encoder | full | low | mid | high |", "| --- " + "| ---: " * 4 + "|"]
    path = runs / f"table5_{size}.json"
    for name in named(encoders):
        recipe, folder, _ = trained(name, size, runs, overrides)
        translations = json.loads((folder / "translations.json").read_text())["test"]
        corpus = recipe_corpus(recipe)
        source, references = corpus.pairs("test", recipe.source, recipe.target)
        buckets = frequency_buckets(source, corpus.sentences("train", recipe.source))
        scores = [
            score_translations("full", translations, references, recipe.target),
            *score_by_frequency(translations, references, buckets, recipe.target),
        ]
        row = {"scores": [dataclasses.asdict(score) for score in scores]}
        add_row(path, name, recipe, row)
        lines.append(f"| {name} | " + " | ".join(f"{score.bleu:.1f}" for score in scores) + " |")
    show_markdown("\n".join(lines), path)


@app.command()
def table6(
    size: Size = "tiny",
    runs: Runs = RUNS,
    encoders: Encoders = CHOSEN,
    epochs: Annotated[int, typer.Option(min=1)] = 50,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs averaged in a score.")] = 2,
    treebanks: Annotated[
        str, typer.Option(help="Files of Universal Dependencies to train on, comma-separated; for tiny.")
    ] = TREEBANKS,
    overrides: Overrides = None,
):
    """F1 of joint segmentation and tagging, with fixed or adapted vectors."""
    names = named(encoders)
    sentences, validation, tests = chinese_treebank() if size == "base" else universal_dependencies(treebanks)
    trained_on = f"{len(sentences)} sentences of {treebanks}" if size == "tiny" else "Chinese Treebank 5"
    path = runs / f"table6_{size}.json"
    for name in names:
        recipe, folder, _ = trained(name, size, runs, overrides)
        for way in ("fixed", "adapted"):
            for seed in range(1, seeds + 1):
                key = f"{name}, {way}, {epochs} epochs, seed {seed}, {trained_on}"
                if not has_vectors_of(rows_in(path).get(key), recipe):
                    tagger = tagger_from(load(folder), sentences, adapted=way == "adapted", seed=seed)
                    accuracy = train_tagger(tagger, sentences, validation, epochs, seed=seed, verbose=2)
                    scores = {
                        test: dataclasses.asdict(score_tagging(tagged(tagger, true), true))
                        for test, true in tests.items()
                    }
                    add_row(path, key, recipe, {"accuracy": max(accuracy), **scores})
    results = rows_in(path)
    lines = [f"| encoder | vectors | {' | '.join(tests)} |", "| --- | --- " + "| ---: " * len(tests) + "|"]
    for name in names:
        for way in ("fixed", "adapted"):
            keys = [
                f"{name}, {way}, {epochs} epochs, seed {seed}, {trained_on}" for seed in range(1, seeds + 1)
            ]
            cells = [f"{mean(results[key][test]['f1'] for key in keys):.1f}" for test in tests]
            lines.append(f"| {name} | {way} | {' | '.join(cells)} |")
    show_markdown("\n".join(lines), path)


@app.command()
def table7(size: Size = "tiny", runs: Runs = RUNS, encoders: Encoders = CHOSEN, overrides: Overrides = None):
    """Spearman's correlation of the vectors' cosines with people's scores of word similarity."""
    names = named(encoders)
    lines = [
        "| words | encoder | seen | unseen without | unseen with |",
        "| --- | --- " + "| ---: " * 3 + "|",
    ]
    path = runs / f"table7_{size}.json"
    sets = {words: open_word_pairs(words) for words in WORD_PAIRS}
    for words, pairs in sets.items():
        for name in names:
            recipe, folder, _ = trained(name, size, runs, overrides)
            seen = set("".join(recipe_corpus(recipe).sentences("train", recipe.source)))
            asked = sorted({character for pair in pairs for character in pair.first + pair.second})
            scores = score_word_similarity(pairs, character_vectors(load(folder), asked, seen), seen)
            add_row(path, f"{words}, {name}", recipe, dataclasses.asdict(scores))
            columns = (scores.seen, scores.unseen_without, scores.unseen_with)
            cells = [f"{column.spearman:.1f} ({column.pairs})" for column in columns]
            lines.append(f"| {words} | {name} | {' | '.join(cells)} |")
    show_markdown("\n".join(lines), path)


@app.command()
def figure1(size: Size = "tiny", runs: Runs = RUNS, overrides: Overrides = None):
    """Draw what the softmax encoder's features represent, the glyph table, and nearest characters."""
    folders = {name: trained(name, size, runs, overrides)[1] for name in named(CHOSEN)}
    translators = {name: load(folder) for name, folder in folders.items()}
    softmax = translators["cnn_softmax_fc"]
    characters = softmax.source_tokenizer.get_vocabulary()
    embedding = softmax.backbone.source_embedding
    glyphs = ops.convert_to_numpy(embedding.glyphs)
    recipe = recipe_of("cnn_softmax_fc", size, overrides)
    training = recipe_corpus(recipe).sentences("train", recipe.source)
    chosen = np.random.default_rng(recipe.seed).choice(len(training), 350, replace=False)
    sentences = [training[number] for number in chosen]
    activations = ops.convert_to_numpy(embedding.encoder.activations(glyphs))
    plot_activations(
        top_activations(sentences, characters, activations), characters, glyphs, runs / f"figure1_{size}.png"
    )
    seen = sorted(set("".join(training)))
    plot_glyphs(render_glyphs(seen[-800:]), runs / f"glyphs_{size}.png")
    numbers = [characters.index(character) for character in seen]
    vectors = {
        name: np.stack(list(character_vectors(translator, seen, set(seen)).values()))
        for name, translator in translators.items()
    }
    plot_nearest("人们妈河银说", seen, glyphs[numbers], vectors, runs / f"nearest_{size}.png")
    print(f"pictures in {runs}: figure1_{size}.png, glyphs_{size}.png, nearest_{size}.png")


def named(encoders: str) -> list[str]:
    """Return the encoders in a comma-separated list of names.

    Raises:
        UserError: an encoder does not exist; raised before anything is trained.
    """
    names = encoders.split(",")
    for name in names:
        architecture, colon, features = name.partition(":")
        if architecture not in (known := ["EMB", *ARCHITECTURES]):
            raise UserError(f"no encoder {name!r}: {nearest(architecture, known)}")
        chosen = architecture != "EMB" and ARCHITECTURES[architecture].num_features is not None
        if colon and not (chosen and features.isdecimal() and int(features) > 0):
            raise UserError(f"{name!r} is not an encoder and its F, as in cnn_fc_relu:256")
    return names


def recipe_of(name: str, size: str, overrides: list[str] | None) -> Recipe:
    """Return the recipe of an encoder: `EMB`, an architecture, or `cnn_fc_relu:256`."""
    suffix = "" if size == "base" else f"_{size}"
    recipe = read_recipe(Path(__file__).parent / f"glyph_zh_en{suffix}.toml", overrides or [], FIXED)
    if name == "EMB":
        return dataclasses.replace(recipe, preset=f"lookup_zh_en{suffix}", source_characters="seen")
    architecture, _, features = name.partition(":")
    options = {"num_features": int(features)} if features else {}
    glyph = (
        {"glyph_options": {"architecture": architecture, **options}} if features else {"architecture": name}
    )
    return dataclasses.replace(recipe, model={**recipe.model, **glyph})


def trained(name: str, size: str, runs: Path, overrides: list[str] | None) -> tuple[Recipe, Path, list[dict]]:
    """Train and score an encoder if it is not yet; return its recipe, its run's folder and its scores."""
    recipe, folder = recipe_of(name, size, overrides), runs / f"{name.replace(':', '_')}_{size}"
    return recipe, folder, scores_of(recipe, folder)


def scores_of(recipe: Recipe, folder: Path) -> list[dict]:
    """Train a translator, then translate and score validation and test; or read its existing scores."""
    path = folder / "scores.json"
    if not keep_results(path, recipe):
        train(recipe, folder)
        scores, translations = evaluate(
            load(folder),
            recipe_corpus(recipe),
            [recipe.validation, "test"],
            recipe.source,
            recipe.target,
            recipe.beam_size,
            recipe.length_penalty,
            recipe.truncate,
        )
        write_json(folder / "translations.json", translations)
        write_scores(scores, path, recipe=dataclasses.asdict(recipe))
    return json.loads(path.read_text())["scores"][:2]


def has_vectors_of(row: dict | None, recipe: Recipe) -> bool:
    """Return whether a tagger's row is there, of this recipe's vectors, which no beam search changes."""
    if row is None:
        return False
    changes = {"beam_size": recipe.beam_size, "length_penalty": recipe.length_penalty}
    return dataclasses.replace(make_recipe(row["recipe"]), **changes) == recipe


def universal_dependencies(treebanks: str):
    """Return training and validation sentences and the tests.

    No text of training or validation is in a test, in the other, or twice. Every tenth sentence is for
    validation, unless it has a tag that training has not.
    """
    folder = data_folder() / "ud_chinese"
    tests = {name: read_conllu(folder / f"{file}.conllu.gz") for name, file in TAGGED_TESTS.items()}
    known = {text_of(sentence) for true in tests.values() for sentence in true}
    fresh = {}
    for file in treebanks.split(","):
        for sentence in read_conllu(folder / f"{file}.conllu.gz"):
            if text_of(sentence) not in known:
                fresh.setdefault(text_of(sentence), sentence)
    fresh = list(fresh.values())
    training = [sentence for number, sentence in enumerate(fresh) if number % 10]
    tags = set().union(*map(tags_of, training))
    return training, [sentence for sentence in fresh[::10] if tags_of(sentence) <= tags], tests


def tags_of(sentence) -> set[str]:
    """Return the tags of a tagged sentence's characters."""
    return set(segments_to_tags(sentence)[1])


def text_of(sentence) -> str:
    """Return a tagged sentence's text."""
    return "".join(word for word, _ in sentence)


def chinese_treebank():
    """Return training and validation sentences and the test, in the split of Jiang et al. 2008."""
    from kzoo.data.ctb5 import read_ctb5

    folder = data_folder() / "ctb5"
    return read_ctb5(folder, "train"), read_ctb5(folder, "dev"), {"test": read_ctb5(folder, "test")}


def data_folder() -> Path:
    """Return the folder that KZOO_DATA names."""
    if not os.environ.get("KZOO_DATA"):
        raise UserError("set KZOO_DATA to the folder that holds the treebanks")
    return Path(os.environ["KZOO_DATA"]).expanduser()


def tagged(tagger, sentences):
    """Return the tagger's words and tags of the characters of tagged sentences."""
    return tagger.tag(list(map(text_of, sentences)))


def character_vectors(translator, characters: list[str], seen: set[str]) -> dict[str, np.ndarray]:
    """Return the vectors of characters: all of them from a glyph encoder, the seen ones from a table."""
    source = translator.backbone.source_embedding
    if hasattr(source, "encoder"):
        return dict(
            zip(characters, ops.convert_to_numpy(source.encoder(render_glyphs(characters))), strict=True)
        )
    known = [character for character in characters if character in seen]
    numbers = [translator.source_tokenizer.token_to_id(character) for character in known]
    return dict(zip(known, ops.convert_to_numpy(source.embeddings)[numbers], strict=True))


def rows_in(path: Path) -> dict[str, dict]:
    """Return the rows of a table, including those of other calls, by name."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def add_row(path: Path, name: str, recipe: Recipe, row: dict):
    """Write a row into a table's file, with its recipe; other rows are kept."""
    write_json(path, {**rows_in(path), name: {"recipe": dataclasses.asdict(recipe), **row}})


if __name__ == "__main__":
    main(app)
