"""The glyph paper's tables and Figure 1: translation, also by character frequency, tagging, word similarity.

    python -m training.glyph.tables table4 --size tiny
    python -m training.glyph.tables table5 --size tiny
    python -m training.glyph.tables table6 --size tiny
    python -m training.glyph.tables table7 --size tiny
    python -m training.glyph.tables figure1 --size tiny
    python -m training.glyph.tables pictures --size tiny

Each run is a folder under `--runs`; finished runs are not repeated, stopped ones resume. Prints Markdown
tables with the paper's numbers (`training/glyph/paper.toml`) beside ours, and writes them and the results as
JSON beside the runs. The JSON keeps the results of other calls.

Reproduces Broscheit et al. 2018, Tables 4 to 7 and Figure 1. `--size tiny` translates Tatoeba and tags
Universal Dependencies; `--size base` translates WMT 2017, tags the Chinese Treebank 5.0 (the folder
KZOO_DATA/ctb5) and needs a GPU.
"""

import dataclasses
import math
from pathlib import Path
from statistics import mean
from typing import Annotated

import numpy as np
import typer
from keras import ops

from kzoo.cli import main
from kzoo.cli.options import Overrides
from kzoo.errors import UserError, nearest
from kzoo.evaluation import evaluate, score_translations
from kzoo.evaluation.scores import markdown_table, write_scores
from kzoo.files import write_json
from kzoo.layers.glyph_char_encoder import ARCHITECTURES
from kzoo.presets import load
from kzoo.text import render_glyphs
from kzoo.training import Recipe, make_recipe
from kzoo.training.corpus import recipe_corpus
from training.glyph.character_frequency import frequency_buckets, score_by_frequency
from training.glyph.glyph_plots import (
    activation_magnitudes,
    magnitude_quartiles,
    plot_activations,
    plot_glyphs,
    plot_magnitudes,
    plot_nearest,
    top_activations,
)
from training.glyph.tagging import score_tagging, tagger_from, train_tagger
from training.glyph.treebanks import TREEBANKS, chinese_treebank, text_of, universal_dependencies
from training.glyph.word_similarity import WORD_PAIRS, open_word_pairs, score_word_similarity
from training.paper_tables import (
    Runs,
    Size,
    add_results,
    paper_numbers,
    print_estimate,
    results_in,
    scored_once,
    show_markdown,
    table_recipe,
)

CHOSEN = "EMB,cnn_fc_relu,fc_2,cnn_softmax_fc"
KNOWN = ("EMB", *ARCHITECTURES)
PAPER = paper_numbers(__file__)
VECTORS = ("fixed", "adapted")
TAGGER_MINUTES = 12  # of 50 epochs on one CPU core, on average
BESIDE = "Paper: {}, base size. Ours: {}, {} size."

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
Encoders = Annotated[
    str, typer.Option(help="EMB and architectures, comma-separated; cnn_fc_relu:256 has F = 256.")
]
RUNS = Path("runs/glyph")
# Keys that the encoders set, and the font: characters' vectors are computed from the default font.
FIXED = ("preset", "source_characters", "model.architecture", "model.glyph_options", "model.font")


@app.command()
def table4(
    size: Size = "tiny",
    runs: Runs = RUNS,
    encoders: Encoders = CHOSEN,
    sweep: Annotated[bool, typer.Option(help="All architectures, with all F of Table 4.")] = False,
    overrides: Overrides = None,
):
    """BLEU of each encoder, and the perplexity of its decoder before the decoder saw a source."""
    if sweep:
        encoders = ",".join(name for name in PAPER["table4"] if name not in cited(PAPER["table4"]))
    path, rows = runs / f"table4_{size}.json", []
    print_time(named(encoders), size, runs, overrides)
    for name in named(encoders):
        recipe, folder, (validation, test) = trained(name, size, runs, overrides)
        row, perplexity = {"validation": validation, "test": test}, ""
        if recipe.language_model_epochs:
            row["language_model"] = results_in(folder / "language_model/language_model.json")
            perplexity = f"{row['language_model']['perplexity']:.1f}"
        add_row(path, name, recipe, row)
        scores = validation["bleu"], test["bleu"], test["bleu_lowercased"]
        ours = [f"{score:.1f}" for score in scores]
        rows.append([name, *ours, perplexity, *papers(PAPER["table4"], name)])
    rows += [[name, "", "", "", "", *papers(PAPER["table4"], name)] for name in cited(PAPER["table4"])]
    head = ["encoder", "validation", "test", "test, lowercased", "perplexity", "paper: test"]
    table, signature = markdown_table(head, rows), test["signatures"]["bleu"]
    note = BESIDE.format("WMT 2017 zh–en", recipe.corpus, size)
    decoder = f"The paper's decoder had perplexity {PAPER['decoder_perplexity']} before it saw a source."
    show_markdown(f"{table}\n\n`{signature}`\n\n{note} {decoder}", path)


@app.command()
def table5(size: Size = "tiny", runs: Runs = RUNS, encoders: Encoders = CHOSEN, overrides: Overrides = None):
    """BLEU of the test sentences with rare, medium and frequent characters."""
    path, rows = runs / f"table5_{size}.json", []
    print_time(named(encoders), size, runs, overrides)
    for name in named(encoders):
        recipe, folder, _ = trained(name, size, runs, overrides)
        translations = results_in(folder / "translations.json")["test"]
        corpus = recipe_corpus(recipe)
        source, references = corpus.pairs("test", recipe.source, recipe.target)
        buckets = frequency_buckets(source, corpus.sentences("train", recipe.source))
        scores = [
            score_translations("full", translations, references, recipe.target),
            *score_by_frequency(translations, references, buckets, recipe.target),
        ]
        add_row(path, name, recipe, {"scores": [dataclasses.asdict(score) for score in scores]})
        rows.append([name, *(f"{score.bleu:.1f}" for score in scores), *papers(PAPER["table5"], name)])
    buckets = ("full", "low", "mid", "high")
    head = ["encoder", *buckets, *(f"paper: {bucket}" for bucket in buckets)]
    note = BESIDE.format("WMT 2017 zh–en", recipe.corpus, size)
    show_markdown(f"{markdown_table(head, rows)}\n\n{note}", path)


@app.command()
def table6(
    size: Size = "tiny",
    runs: Runs = RUNS,
    encoders: Encoders = CHOSEN,
    epochs: Annotated[int, typer.Option(min=1)] = 50,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs that are averaged.")] = 2,
    treebanks: Annotated[
        str, typer.Option(help="Files of Universal Dependencies to train tiny on, comma-separated.")
    ] = ",".join(TREEBANKS),
    overrides: Overrides = None,
):
    """F1 of joint segmentation and tagging, with fixed or adapted vectors."""
    names, chosen = named(encoders), tuple(treebanks.split(","))
    if size == "base" and chosen != TREEBANKS:
        raise UserError("--treebanks is for --size tiny; base trains on the Chinese Treebank")
    sentences, validation, tests = chinese_treebank() if size == "base" else universal_dependencies(chosen)
    trained_on = f"{len(sentences)} sentences of {treebanks}" if size == "tiny" else "Chinese Treebank 5"
    path, rows = runs / f"table6_{size}.json", []

    def keys_of(name: str, vectors: str) -> list[str]:
        run = f"{name}, {vectors}, {epochs} epochs"
        return [f"{run}, seed {seed}, {trained_on}" for seed in range(1, seeds + 1)]

    taggers = {key: name for name in names for vectors in VECTORS for key in keys_of(name, vectors)}
    known = results_in(path)
    untrained = [
        key
        for key, name in taggers.items()
        if not has_vectors_of(known.get(key), recipe_of(name, size, overrides), path)
    ]
    print_time(names, size, runs, overrides, TAGGER_MINUTES * epochs / 50 * len(untrained))
    for name in names:
        recipe, folder, _ = trained(name, size, runs, overrides)
        for vectors in VECTORS:
            keys = keys_of(name, vectors)
            for seed, key in enumerate(keys, 1):
                if not has_vectors_of(results_in(path).get(key), recipe, path):
                    tagger = tagger_from(load(folder), sentences, adapted=vectors == "adapted", seed=seed)
                    accuracy = train_tagger(tagger, sentences, validation, epochs, seed=seed, verbose=2)
                    scores = {
                        test: dataclasses.asdict(score_tagging(tagger.tag(list(map(text_of, true))), true))
                        for test, true in tests.items()
                    }
                    row = {"tagger": tagger.rates, "accuracy": max(accuracy), **scores}
                    add_row(path, key, recipe, row)
            found = results_in(path)
            ours = [f"{mean(found[key][test]['f1'] for key in keys):.1f}" for test in tests]
            rows.append([name, vectors, *ours, *papers(PAPER["table6"][vectors], name)])
    numbers = PAPER["table6"]["adapted"]
    rows += [[name, "", *("" for _ in tests), *papers(numbers, name)] for name in cited(numbers)]
    head = ["encoder", "vectors", *tests, "paper: CTB 5.0"]
    note = BESIDE.format("Chinese Treebank 5.0", trained_on, size)
    show_markdown(f"{markdown_table(head, rows, left=2)}\n\n{note}", path)


@app.command()
def table7(size: Size = "tiny", runs: Runs = RUNS, encoders: Encoders = CHOSEN, overrides: Overrides = None):
    """Spearman's correlation of vectors' cosines with human scores of word similarity, times 100."""
    names, columns = named(encoders), ("seen", "unseen without", "unseen with")
    path, rows = runs / f"table7_{size}.json", []
    sets = {words: open_word_pairs(words) for words in WORD_PAIRS}
    print_time(names, size, runs, overrides)
    for words, pairs in sets.items():
        numbers = PAPER["table7"][words]
        for name in names:
            recipe, folder, _ = trained(name, size, runs, overrides)
            seen = set("".join(recipe_corpus(recipe).sentences("train", recipe.source)))
            needed = sorted({character for pair in pairs for character in pair.first + pair.second})
            scores = score_word_similarity(pairs, character_vectors(load(folder), needed, seen), seen)
            add_row(path, f"{words}, {name}", recipe, dataclasses.asdict(scores))
            found = [scores.seen, scores.unseen_without, scores.unseen_with]
            ours = [f"{column.spearman:.1f} ({column.pairs})" for column in found]
            if name == "EMB":  # a lookup table has no vectors of unseen characters
                ours[-1] = "n/a"
            rows.append([words, name, *ours, *papers(numbers, name, times=100)])
        rows += [[words, name, "", "", "", *papers(numbers, name, times=100)] for name in cited(numbers)]
    head = ["words", "encoder", *columns, *(f"paper: {column}" for column in columns)]
    note = BESIDE.format("vectors of WMT 2017 zh–en", f"vectors of {recipe.corpus}", size)
    show_markdown(f"{markdown_table(head, rows, left=2)}\n\n{note}", path)


@app.command()
def figure1(size: Size = "tiny", runs: Runs = RUNS, overrides: Overrides = None):
    """Draw the three greatest activations of the softmax encoder, and the characters that share a feature."""
    print_time(["cnn_softmax_fc"], size, runs, overrides)
    recipe, folder, _ = trained("cnn_softmax_fc", size, runs, overrides)
    translator = load(folder)
    characters = translator.source_tokenizer.get_vocabulary()
    embedding = translator.backbone.source_embedding
    glyphs = ops.convert_to_numpy(embedding.glyphs)
    activations = ops.convert_to_numpy(embedding.encoder.activations(glyphs))
    training = recipe_corpus(recipe).sentences("train", recipe.source)
    count = min(PAPER["activation_sentences"], len(training))
    chosen = np.random.default_rng(recipe.seed).choice(len(training), count, replace=False)
    sentences = [training[number] for number in chosen]
    magnitudes = activation_magnitudes(sentences, characters, activations)
    plot_magnitudes(magnitudes, runs / f"figure1_{size}.png")
    features = top_activations(sentences, characters, activations)
    plot_activations(features, characters, glyphs, runs / f"features_{size}.png")
    path, found = runs / f"figure1_{size}.json", magnitude_quartiles(magnitudes)
    ranks = dict(zip(("first", "second", "third"), found, strict=True))
    add_row(path, "cnn_softmax_fc", recipe, {"characters": len(magnitudes), **ranks})
    head = ["activation", *(name.replace("_", " ") for name in found[0])]
    rows = [[rank, *(f"{value:.3f}" for value in numbers.values())] for rank, numbers in ranks.items()]
    note = f"{len(magnitudes):,} characters of {count} sentences; the paper's figure has no numbers."
    show_markdown(f"{markdown_table(head, rows)}\n\n{note}", path)


@app.command()
def pictures(size: Size = "tiny", runs: Runs = RUNS, overrides: Overrides = None):
    """Draw a table of glyphs, and the nearest characters of a few."""
    print_time(named(CHOSEN), size, runs, overrides)
    runs_of = {name: trained(name, size, runs, overrides) for name in named(CHOSEN)}
    recipe = runs_of["fc_2"][0]
    seen = sorted(set("".join(recipe_corpus(recipe).sentences("train", recipe.source))))
    vectors = {
        name: np.stack(list(character_vectors(load(folder), seen, set(seen)).values()))
        for name, (_, folder, _) in runs_of.items()
    }
    plot_glyphs(render_glyphs(seen[-800:]), runs / f"glyphs_{size}.png")
    plot_nearest("人们妈河银说", seen, render_glyphs(seen), vectors, runs / f"nearest_{size}.png")
    print(f"pictures in {runs}: glyphs_{size}.png, nearest_{size}.png")


def papers(numbers: dict, name: str, times: int = 1) -> list[str]:
    """Return the cells of a row of `PAPER`: its numbers times `times`, empty where it has none."""
    architecture, _, features = name.partition(":")
    if features and int(features) == ARCHITECTURES[architecture].num_features:
        name = architecture
    rows = {row: value if isinstance(value, list) else [value] for row, value in numbers.items()}
    values = rows.get(name) or [None] * max(map(len, rows.values()))
    digits = 2 if times == 1 else 0
    return ["" if v is None else "n/a" if math.isnan(v) else f"{times * v:.{digits}f}" for v in values]


def cited(numbers: dict) -> list[str]:
    """Return the names of the rows in a table of `PAPER` that are systems of other papers."""
    return [row for row in numbers if row.partition(":")[0] not in KNOWN]


def named(encoders: str) -> list[str]:
    """Return the names in a comma-separated list of encoders.

    Raises:
        UserError: an encoder does not exist; raised before anything is trained.
    """
    names = encoders.split(",")
    for name in names:
        architecture, colon, features = name.partition(":")
        if architecture not in KNOWN:
            raise UserError(f"no encoder {name!r}: {nearest(architecture, KNOWN)}")
        chosen = architecture != "EMB" and ARCHITECTURES[architecture].num_features is not None
        if colon and not (chosen and features.isdecimal() and int(features) > 0):
            raise UserError(f"{name!r} is not an encoder and its F, as in cnn_fc_relu:256")
    return names


def print_time(names: list[str], size: str, runs: Path, overrides: list[str] | None, more: float = 0.0):
    """Print about how long the encoders that are not trained yet will take; `more`: minutes of other work."""
    planned = [(recipe_of(name, size, overrides), folder_of(name, size, runs)) for name in names]
    print_estimate(recipe_name(size), planned, more)


def recipe_name(size: str) -> str:
    """Return the name of the recipe of a size."""
    return "glyph_zh_en" if size == "base" else f"glyph_zh_en_{size}"


def folder_of(name: str, size: str, runs: Path) -> Path:
    """Return the folder of an encoder's run."""
    return runs / f"{name.replace(':', '_')}_{size}"


def recipe_of(name: str, size: str, overrides: list[str] | None) -> Recipe:
    """Return the recipe of an encoder: `EMB`, an architecture, or `cnn_fc_relu:256`."""
    recipe = table_recipe(recipe_name(size), overrides or [], FIXED)
    if name == "EMB":
        preset = recipe.preset.replace("glyph", "lookup")
        return dataclasses.replace(recipe, preset=preset, source_characters="seen")
    architecture, _, features = name.partition(":")
    glyph = {"architecture": architecture}
    if features:
        glyph = {"glyph_options": {**glyph, "num_features": int(features)}}
    return dataclasses.replace(recipe, model={**recipe.model, **glyph})


def trained(name: str, size: str, runs: Path, overrides: list[str] | None) -> tuple[Recipe, Path, list[dict]]:
    """Train and score an encoder, or read its scores; return its recipe, its run's folder and its scores."""
    recipe, folder = recipe_of(name, size, overrides), folder_of(name, size, runs)
    return recipe, folder, scores_of(recipe, folder)


def scores_of(recipe: Recipe, folder: Path) -> list[dict]:
    """Train a translator and score it on the validation and the test set, or read its scores."""

    def score(translator, path: Path):
        splits, languages = [recipe.validation, "test"], (recipe.source, recipe.target)
        corpus = recipe_corpus(recipe)
        scores, translations = evaluate(translator, corpus, splits, *languages, truncate=recipe.truncate)
        write_json(folder / "translations.json", translations)
        write_scores(scores, path, recipe=dataclasses.asdict(recipe))

    return scored_once(recipe, folder, score)[:2]


def has_vectors_of(row: dict | None, recipe: Recipe, path: Path) -> bool:
    """Return whether a row has a tagger's scores with this recipe's vectors. Search settings may differ.

    `path` is the row's file, for the message if its recipe is not valid.
    """
    if row is None:
        return False
    changes = {"beam_size": recipe.beam_size, "length_penalty": recipe.length_penalty}
    return dataclasses.replace(make_recipe(row["recipe"], str(path)), **changes) == recipe


def character_vectors(translator, characters: list[str], seen: set[str]) -> dict[str, np.ndarray]:
    """Return vectors of characters. A glyph encoder has them for all, a lookup table for the seen ones."""
    source = translator.backbone.source_embedding
    if hasattr(source, "encoder"):
        vectors = ops.convert_to_numpy(source.encoder(render_glyphs(characters)))
        return dict(zip(characters, vectors, strict=True))
    known = [character for character in characters if character in seen]
    numbers = [translator.source_tokenizer.token_to_id(character) for character in known]
    return dict(zip(known, ops.convert_to_numpy(source.embeddings)[numbers], strict=True))


def add_row(path: Path, name: str, recipe: Recipe, row: dict):
    """Add a row and its recipe to a table's file."""
    add_results(path, **{name: {"recipe": dataclasses.asdict(recipe), **row}})


if __name__ == "__main__":
    main(app)
