"""`kzoo …`: reads arguments, calls one function, prints what it returns."""

import errno
import math
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kzoo.errors import LostWorker, UserError
from kzoo.files import check_writable, whole_file

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A Keras 3 model zoo for machine translation.",
)
features = typer.Typer(no_args_is_help=True, help="Features of pictures, for models that read images.")
app.add_typer(features, name="features")
plots = typer.Typer(no_args_is_help=True, help="Draw the papers' pictures.")
app.add_typer(plots, name="plot")

Preset = Annotated[
    str, typer.Argument(help="A trained preset: a name on the shelf, a folder, hf://… or kaggle://….")
]
Beam = Annotated[int, typer.Option("--beam", min=1, help="Hypotheses that are followed; 1 is greedy.")]
Penalty = Annotated[float, typer.Option(help="α: scores are log P / length^α.")]
From = Annotated[str | None, typer.Option("--from", help="Language of the text; for multilingual presets.")]
To = Annotated[str | None, typer.Option("--to", help="Language wanted; for multilingual presets.")]
Truncate = Annotated[bool, typer.Option(help="Cut sentences that the model cannot read whole.")]
GNMTPenalty = Annotated[float | None, typer.Option("--gnmt", help="α of GNMT's penalty, in its place.")]


def main(application: typer.Typer | None = None):
    """Run the command line: what the user got wrong is one line and exit status 1.

    Args:
        application: another one than `kzoo`'s, for scripts around the package.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        (application or app)()
    except LostWorker as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    except UserError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "no disk space left" if full else error.strerror or str(error)
        sys.exit(f"error: {what}{f': {error.filename}' if error.filename else ''}")


def numbers(text: str) -> list[int]:
    """Return the numbers of an option such as `--seeds 1,2,3`."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise UserError(f"not numbers with commas between them, such as 1,2,3: {text!r}") from None


@app.command("list")
def list_command(pattern: Annotated[str, typer.Argument(help='As "pope*".')] = "*"):
    """List the zoo's presets: trained ones with their scores, and those to be trained."""
    from rich.console import Console

    from kzoo.presets.shelf import shelf_table

    Console().print(shelf_table(pattern))


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe, such as training/pope_multi30k.toml.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="KEY=VALUE, such as epochs=3.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The run; runs/RECIPE by default.")
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            help="one, mirrored, multi_worker, data_parallel or model_parallel; by default all there is."
        ),
    ] = "",
):
    """Train a recipe's model, or go on with a run that was stopped."""
    from kzoo.training.recipe import read_recipe

    values = read_recipe(recipe, overrides or [])
    opened = _start_backend(strategy)
    from kzoo.training.train import train as train_recipe

    folder = output or Path("runs") / recipe.stem
    train_recipe(values, folder, strategy=opened)
    print(f"trained: {folder / 'preset'}")


@app.command()
def bundle(
    recipes: Annotated[
        list[str], typer.Argument(help="Recipes, each followed by what it changes, as KEY=VALUE.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder; the bundle has 60 MB at most.")],
    python: Annotated[str, typer.Option(help="The machine's: 3.11 or 3.12.")] = "3.12",
    wheels: Annotated[
        Path | None, typer.Option(help="Folder with wheels, taken before any is downloaded.")
    ] = None,
):
    """Pack recipes for a GPU machine without internet: code, packages, corpora and run.sh."""
    from kzoo.bundle import bundle as pack

    total = pack(recipes, output, python, wheels)
    print(f"{output}: {total / 1e6:.1f} MB; on the machine that has JAX: bash {output.name}/run.sh")


@app.command()
def prepare(
    recipe: Annotated[Path, typer.Argument(help="A recipe with source and target.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="KEY=VALUE, such as seed=3.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to; the recipe's shards by default.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many tokenize; all cores by default.")
    ] = None,
):
    """Tokenize a training text into shards on disk; a recipe that names them trains in little memory."""
    from kzoo.training.recipe import read_recipe

    values = read_recipe(recipe, overrides or [])
    folder = output or values.shards
    if not folder:
        raise UserError("where to? Give -o FOLDER, or shards=FOLDER in the recipe")
    _start_backend()
    from kzoo.training.preparation import prepare as prepare_shards

    shards = prepare_shards(values, folder, processes, _progress)
    print(f"{folder}: {shards.pairs:,} pairs in {len(shards)} shards")


@app.command()
def evaluate(
    preset: Preset,
    corpus: Annotated[str, typer.Option(help="A corpus by name.")] = "multi30k",
    split: Annotated[
        list[str] | None, typer.Option(help="May be given again; all test sets by default.")
    ] = None,
    files: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Your own text and its reference, a sentence a line, in place of a corpus."),
    ] = None,
    source: From = None,
    target: To = None,
    beam_size: Beam = 5,
    length_penalty: Penalty = 1.0,
    gnmt: GNMTPenalty = None,
    truncate: Truncate = False,
    images: Annotated[Path | None, typer.Option(help="Folder with features SPLIT.npy.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the scores.")] = None,
):
    """Translate a corpus's splits, or your own files, and score them with sacreBLEU."""
    from kzoo.data.corpora import open_corpus, open_files
    from kzoo.presets.shelf import direction, load, locate

    if files and split:
        raise UserError("--files and --split exclude each other: give one of them")
    data = open_files(test=files) if files else open_corpus(corpus)
    locate(preset)
    if output:
        check_writable(output)
    for name in split or []:
        data.languages_in(name)
    _start_backend()
    translator = direction(load(preset), source, target)
    if files:
        corpus = "files"
        data = open_files(test=files, languages=(translator.source_language, translator.target_language))
    if images:
        data = data.with_images(images)
    source, target = translator.source_language, translator.target_language
    splits = split or [
        name
        for name in data.splits
        if name.startswith("test") and {source, target} <= set(data.languages_in(name))
    ]
    if not splits:
        raise UserError(
            f"corpus {corpus} has no test split in {source} and {target}; it has {', '.join(data.languages)}"
        )
    from kzoo.evaluation.scores import evaluate as evaluate_splits
    from kzoo.evaluation.scores import score_table, write_scores

    total = sum(len(data.sentences(name, source)) for name in splits)
    with _progress("translating", total) as advance:
        scores, _ = evaluate_splits(
            translator,
            data,
            splits,
            source,
            target,
            beam_size,
            _penalty(length_penalty, gnmt),
            truncate,
            advance,
        )
    print(score_table(scores))
    if output:
        penalty = {"length_penalty": length_penalty} if gnmt is None else {"gnmt": gnmt}
        about = {"preset": Path(preset).name, "corpus": corpus, "licence": data.licence}
        if files:
            about["files"] = [str(path) for path in files]
        write_scores(scores, output, **about, beam_size=beam_size, **penalty, truncate=truncate)


@app.command()
def translate(
    preset: Preset,
    text: Annotated[list[str] | None, typer.Argument(help="Sentences; standard input by default.")] = None,
    source: From = None,
    target: To = None,
    file: Annotated[Path | None, typer.Option("--input", "-i", help="A file, a sentence a line.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to; standard output by default.")
    ] = None,
    beam_size: Beam = 5,
    length_penalty: Penalty = 1.0,
    gnmt: GNMTPenalty = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations of each sentence, with their scores.")] = 1,
    truncate: Truncate = False,
    image: Annotated[
        list[Path] | None,
        typer.Option(help="A sentence's picture, for presets that read one; once for each."),
    ] = None,
):
    """Translate a sentence, a file or standard input."""
    from kzoo.data.text_files import decode_lines, read_lines
    from kzoo.presets.shelf import direction, load, locate

    locate(preset)
    if text and file is not None:
        raise UserError("sentences and --input exclude each other: give one of them")
    if n_best > beam_size:
        raise UserError(f"{n_best} best translations need --beam {n_best} at least, not {beam_size}")
    if file is not None:
        sentences = read_lines(file).sentences
    elif text:
        sentences = decode_lines(
            "".join(f"{line}\n" for line in text).encode("utf-8", "surrogateescape"), "the arguments"
        )
    else:
        sentences = decode_lines(sys.stdin.buffer.read(), "standard input")
    if output:
        check_writable(output)
    _start_backend()
    translator = direction(load(preset), source, target)
    if image and getattr(translator, "image_shape", None) is None:
        raise UserError(f"preset {preset} reads text only: leave --image out")
    with _progress("translating", len(sentences), shown=file is not None) as advance:
        results = translator.n_best(
            sentences,
            n_best,
            beam_size,
            _penalty(length_penalty, gnmt),
            truncate=truncate,
            progress=advance,
            **({"images": image} if image else {}),
        )
    if n_best == 1:
        lines = [hypotheses[0].text for hypotheses in results]
    else:
        lines = [
            f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}"
            for number, hypotheses in enumerate(results, 1)
            for hypothesis in hypotheses
        ]
    content = "".join(line + "\n" for line in lines)
    if output is None:
        sys.stdout.write(content)
    else:
        with whole_file(output) as file:
            file.write_text(content, encoding="utf-8")


class ExportFormat(StrEnum):
    """What a trained preset can be written as."""

    saved_model = "saved_model"
    ctranslate2 = "ctranslate2"


class Precision(StrEnum):
    """The numbers that an exported model's weights are written as."""

    float32 = "float32"
    float16 = "float16"
    int8 = "int8"


@app.command()
def export(
    preset: Preset,
    folder: Annotated[Path, typer.Argument(help="Where to.")],
    to: Annotated[ExportFormat, typer.Option("--format")] = ExportFormat.saved_model,
    beam_size: Annotated[int, typer.Option("--beam", min=1, help="Of a SavedModel.")] = 5,
    length_penalty: Annotated[float, typer.Option(help="α of a SavedModel.")] = 1.0,
    precision: Annotated[Precision, typer.Option(help="Of the weights.")] = Precision.float32,
):
    """Write a preset for other programs: a TensorFlow SavedModel, text to text, or a CTranslate2 model."""
    from kzoo.presets.shelf import load, locate

    locate(preset)
    _start_backend()
    from kzoo.export import export_ctranslate2, export_saved_model

    if to is ExportFormat.saved_model:
        export_saved_model(load(preset), folder, beam_size, _penalty(length_penalty, None), precision.value)
    else:
        export_ctranslate2(load(preset), folder, precision.value)
    print(f"{folder}: written, {to.value}, {precision.value}")


@app.command()
def serve(
    preset: Preset,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8501,
    name: Annotated[
        str | None, typer.Option(help="What clients call the model; the preset's name by default.")
    ] = None,
    version: Annotated[int, typer.Option(min=1, help="Of the model, for clients.")] = 1,
    beam_size: Beam = 5,
    max_batch: Annotated[
        int, typer.Option(min=1, max=64, help="Most sentences of a batch; 1: no batching.")
    ] = 16,
    max_wait: Annotated[
        float, typer.Option(min=0, help="Milliseconds that a sentence waits for others at most.")
    ] = 5.0,
):
    """Serve a preset with TensorFlow Serving's REST interface, and a page to try it."""
    from kzoo.presets.shelf import load, locate
    from kzoo.serve.server import model_name, reserved

    name = name or model_name(preset, locate(preset))
    with reserved(host, port) as listening:
        _start_backend()
        from kzoo.serve import Served
        from kzoo.serve import serve as serve_forever

        served = Served(load(preset), name, version, beam_size, max_batch, max_wait)
        shown = f"[{host}]" if ":" in host else host
        print(f"{name}: http://{shown}:{listening.getsockname()[1]}/, Ctrl-C stops it", flush=True)
        serve_forever(served, listening)


@app.command()
def report(
    path: Annotated[Path, typer.Argument(help="HTML file.")],
    first: Annotated[str, typer.Argument(help="A trained preset, such as one that reads text only.")],
    second: Annotated[str, typer.Argument(help="Another, such as one that reads pictures too.")],
    corpus: Annotated[str, typer.Option(help="A corpus by name.")] = "scenes",
    split: str = "test",
    source: From = None,
    target: To = None,
    number: Annotated[int, typer.Option("-n", min=1, help="Most sentences.")] = 50,
    beam_size: Beam = 5,
    images: Annotated[Path | None, typer.Option(help="Folder with features SPLIT.npy.")] = None,
):
    """Write a page with two presets' translations side by side, where they differ most first."""
    from kzoo.data.corpora import open_corpus
    from kzoo.presets.shelf import direction, load, locate

    data = open_corpus(corpus)
    data.languages_in(split)
    check_writable(path)
    for name in (first, second):
        locate(name)
    _start_backend()
    from kzoo.evaluation.report import cases, write_report

    translators = [direction(load(name), source, target) for name in (first, second)]
    ways = {(translator.source_language, translator.target_language) for translator in translators}
    if len(ways) > 1:
        raise UserError(f"{first} and {second} translate between different languages: {sorted(ways)}")
    sources, references = data.pairs(split, *ways.pop())
    pictures = data.images(split) if data.read_images else None  # features are read, not shown
    if images:
        data = data.with_images(images)
    translations = []
    with _progress("translating", 2 * len(sources)) as advance:
        for translator in translators:
            shown = {"images": data.images(split)} if getattr(translator, "image_shape", None) else {}
            translations.append(translator.translate(sources, beam_size=beam_size, progress=advance, **shown))
    chosen = cases(sources, references, *translations)[:number]
    names = tuple(Path(name).name for name in (first, second))
    write_report(path, f"{names[0]} and {names[1]} on {corpus}, {split}", names, chosen, pictures)


@app.command()
def demo(
    text: Annotated[
        list[str] | None, typer.Argument(help="English sentences to translate to German.")
    ] = None,
):
    """Train a small PoPE model on the built-in Scenes set, score it, and try the shelf's preset."""
    _start_backend()
    from kzoo.training.demo import demo as run_demo

    run_demo(text or [])


@features.command("extract")
def extract(
    folder: Annotated[Path, typer.Argument(help="Where the pictures are.")],
    output: Annotated[Path, typer.Option("--output", "-o", help=".npy file; Multi30k's are SPLIT.npy.")],
    names: Annotated[
        Path | None, typer.Option(help="Their file names, a line each, as Multi30k's SPLIT.txt; all, sorted.")
    ] = None,
    model: Annotated[str, typer.Option(help="A network of keras.applications.")] = "vgg19",
    layer: Annotated[str, typer.Option(help="Whose output is taken; block5_pool has 49 regions.")] = "fc7",
    weights: Annotated[str, typer.Option(help="imagenet, a file of weights, or random.")] = "imagenet",
    batch_size: Annotated[int, typer.Option(min=1)] = 16,
    replace_corrupt: Annotated[
        bool, typer.Option(help="Give unreadable pictures the mean feature; an error otherwise.")
    ] = False,
):
    """Write the features of pictures; goes on where it was interrupted."""
    from kzoo.data.corpora import picture_names

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of pictures")
    others = (".npy", ".json", ".part", ".txt")
    listed = (
        picture_names(names)
        if names
        else sorted(path.name for path in folder.iterdir() if path.is_file() and path.suffix not in others)
    )
    _start_backend()
    from kzoo.training.extraction import extract_features

    with _progress("extracting", len(listed)) as advance:
        found = extract_features(
            output, folder, listed, model, layer, weights, batch_size, replace_corrupt, advance
        )
    print(f"{output}: {found.shape}, {found.extractor.model} {found.extractor.layer}")


class Encoding(StrEnum):
    """The encodings that can be drawn."""

    sine = "sine"
    pope = "pope"


Picture = Annotated[Path, typer.Argument(help="PNG, SVG or PDF file.")]
Positions = Annotated[int, typer.Option("--positions", min=4, help="Positions compared.")]
Width = Annotated[int, typer.Option(min=4, help="Features of an encoding.")]


@plots.command("positions")
def plot_positions(
    path: Picture,
    encoding: Encoding = Encoding.pope,
    num_positions: Positions = 512,
    width: Width = 512,
    normalize: Annotated[bool, typer.Option(help="PoPE in orthonormal form, as the small presets.")] = False,
):
    """Encodings, mutual information, correlation: the paper's Figures 1 (sine) and 3 (pope)."""
    from kzoo.evaluation.position_plots import plot_positions as plot

    plot(encoding.value, path, num_positions, width, normalize)


@plots.command("polynomials")
def plot_polynomials(path: Picture):
    """The Legendre polynomials: the paper's Figure 2."""
    from kzoo.evaluation.position_plots import plot_polynomials as plot

    plot(path)


@plots.command("correlation")
def plot_correlation(path: Picture, num_positions: Positions = 512, width: Width = 512):
    """Correlation of positions against their distance, sine and PoPE: the paper's Figure 3."""
    from kzoo.evaluation.position_plots import plot_correlation as plot

    plot(path, num_positions, width)


@plots.command("curves")
def plot_curves(
    path: Picture,
    histories: Annotated[list[str], typer.Argument(help="Runs or history.csv files, as LABEL=PATH or PATH.")],
    reach: Annotated[
        list[float] | None,
        typer.Option(help="Print the epochs until validation BLEU reaches this; may be given again."),
    ] = None,
):
    """Learning curves of runs: the paper's Figure 4."""
    from kzoo.evaluation.learning_curves import plot_learning_curves, reach_table, read_labels

    labelled = read_labels(histories)
    plot_learning_curves(labelled, path)
    if reach:
        print(reach_table(labelled, reach))


@plots.command("bridge")
def plot_bridge(
    path: Picture,
    preset: Preset,
    sentences: Annotated[list[str], typer.Argument(help="LANGUAGE=SENTENCE each.")],
):
    """The attention bridge's heads over the words of sentences, one a language."""
    from kzoo.presets.shelf import load, locate

    texts = [sentence.partition("=") for sentence in sentences]
    for code, separator, text in texts:
        if not (code and separator and text.strip()):
            raise UserError(f"{code!r} is not LANGUAGE=SENTENCE, as in 'de=Ein Hund rennt.'")
    locate(preset)
    _start_backend()
    from kzoo.evaluation.bridge_plots import plot_bridge as plot

    translator = load(preset)
    if not hasattr(translator, "bridge_attention"):
        raise UserError(f"preset {preset} has no attention bridge")
    plot({f"{code}: {text}": translator.bridge_attention(text, code) for code, _, text in texts}, path)


@plots.command("image")
def plot_image(
    path: Picture,
    preset: Preset,
    sentence: str,
    image: Annotated[Path, typer.Argument(help="The sentence's picture.")],
    regions: Annotated[bool, typer.Option(help="Where in the picture, a word a panel.")] = False,
):
    """What a picture attends to among the words of its sentence."""
    from kzoo.presets.shelf import load, locate

    locate(preset)
    check_writable(path)
    _start_backend()
    from kzoo.evaluation.image_plots import plot_image_attention, plot_regions
    from kzoo.models.image_inputs import read_picture

    translator = load(preset)
    if getattr(translator, "image_shape", None) is None:
        raise UserError(f"preset {preset} reads text only")
    if len(translator.image_shape) != 3:
        raise UserError(f"preset {preset} reads features of pictures, not pictures")
    words, scores = translator.image_attention(sentence, image)
    shown = read_picture(image, translator.image_shape[:2])
    if regions:
        plot_regions(scores, shown, words, path)
    else:
        plot_image_attention(words, scores, path, shown)


@plots.command("directions")
def plot_directions(
    path: Picture,
    scores: Annotated[Path, typer.Argument(help="JSON file with the scores of a multilingual model.")],
):
    """BLEU by direction, those unseen in training marked."""
    from kzoo.evaluation.directions import plot_directions as plot
    from kzoo.evaluation.directions import read_directions

    plot(*read_directions(scores), path)


def _start_backend(strategy: str | None = None):
    """Import Keras without its backend's start-up messages, which TensorFlow has no setting to silence.

    Returns:
        For a run, its strategy, opened: other processes can be joined only before the backend has started.
    """
    import logging

    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    sys.stderr.flush()
    standard_error = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import keras

        opened = None
        if strategy is not None:
            from kzoo.training.strategies import open_strategy

            opened = open_strategy(strategy)
        keras.ops.zeros(())  # looks for devices
        return opened
    except UserError:
        raise
    except (ImportError, ValueError) as error:
        backend = os.environ.get("KERAS_BACKEND", "tensorflow")
        raise UserError(f"Keras cannot start its backend {backend!r} (KERAS_BACKEND): {error}") from None
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)
        os.close(nowhere)


def _penalty(alpha: float, gnmt: float | None):
    from kzoo.decoding.length_penalty import GNMT, Exponent

    if not math.isfinite(alpha if gnmt is None else gnmt):
        raise UserError("the α of a length penalty is a finite number")
    return Exponent(alpha) if gnmt is None else GNMT(gnmt)


class _progress:
    """A progress bar on standard error, as a context that gives the function to advance it."""

    def __init__(self, what: str, total: int | None, shown: bool = True):
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True), disable=not shown, transient=True)
        self.task = self.bar.add_task(what, total=total)

    def __enter__(self):
        self.bar.start()
        return lambda count: self.bar.advance(self.task, count)

    def __exit__(self, *error):
        self.bar.stop()


if __name__ == "__main__":
    main()
