"""`kzoo plot`: figures of trained presets and of runs."""

from pathlib import Path
from typing import Annotated

import typer

from kzoo.cli.console import start_backend
from kzoo.cli.options import Preset
from kzoo.cli.pictures import name_in, shown_picture
from kzoo.errors import UserError
from kzoo.files import check_writable

app = typer.Typer(no_args_is_help=True, help="Draw figures of presets and runs.")
Picture = Annotated[Path, typer.Argument(help="PNG, SVG or PDF file.")]


@app.command("curves")
def plot_curves(
    path: Picture,
    histories: Annotated[list[str], typer.Argument(help="Runs or history.csv files, as LABEL=PATH or PATH.")],
    reach: Annotated[
        list[float] | None,
        typer.Option(help="Print the epoch at which validation BLEU reaches this; can be repeated."),
    ] = None,
):
    """Draw loss and validation BLEU of runs by epoch, as in Figure 4 of the PoPE paper."""
    from kzoo.evaluation.plots import plot_learning_curves, reach_table, read_labels

    labelled = read_labels(histories)
    plot_learning_curves(labelled, path)
    if reach:
        print(reach_table(labelled, reach))


@app.command("bridge")
def plot_bridge(
    path: Picture,
    preset: Preset,
    sentences: Annotated[list[str], typer.Argument(help="Sentences, each as LANGUAGE=SENTENCE.")],
):
    """Draw the attention of the bridge's heads to the words of sentences."""
    from kzoo.presets.shelf import load, locate

    texts = [sentence.partition("=") for sentence in sentences]
    for code, separator, text in texts:
        if not (code and separator and text.strip()):
            raise UserError(f"{code!r} is not LANGUAGE=SENTENCE, as in 'de=Ein Hund rennt.'")
    check_writable(path)
    located = locate(preset)
    start_backend()
    from kzoo.evaluation.plots import plot_bridge as plot

    translator = load(located)
    if not translator.embeds:
        raise UserError(f"preset {preset} has no attention bridge")
    plot({f"{code}: {text}": translator.bridge_attention(text, code) for code, _, text in texts}, path)


@app.command("image")
def plot_image(
    path: Picture,
    preset: Preset,
    sentence: Annotated[str, typer.Argument(help="A sentence.")],
    image: Annotated[Path, typer.Argument(help="The sentence's picture.")],
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npy", help="File with the picture's features, for presets that read features."
        ),
    ] = None,
    regions: Annotated[
        bool, typer.Option(help="Show for each word the parts of the picture that attend to it.")
    ] = False,
):
    """Draw the attention of a picture to the words of its sentence."""
    from kzoo.data import open_features
    from kzoo.presets.shelf import load, locate

    check_writable(path)
    found = open_features(features, [name_in(features, image)]) if features else None
    shown = shown_picture(image)
    located = locate(preset)
    start_backend()
    from kzoo.evaluation.plots import plot_image_attention, plot_regions
    from kzoo.images import checked_images

    translator = load(located)
    read = checked_images(translator, found, 1)[0] if features else image
    words, scores = translator.image_attention(sentence, read)
    if regions:
        plot_regions(scores, shown, words, path, translator.image_shape)
    else:
        plot_image_attention(words, scores, path, shown)


@app.command("directions")
def plot_directions(
    path: Picture,
    scores: Annotated[Path, typer.Argument(help="JSON file of kzoo evaluate -o, of a multilingual model.")],
    lowercased: Annotated[bool, typer.Option("--lowercased", help="Draw BLEU of lowercased text.")] = False,
):
    """Draw BLEU by direction, and mark directions that were not trained."""
    from kzoo.evaluation.directions import plot_directions as plot
    from kzoo.evaluation.directions import read_directions

    plot(*read_directions(scores, lowercased), path, lowercased)
