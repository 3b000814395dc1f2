"""`kzoo demo`: from training to translation in about a minute, on built-in data."""

import tempfile
from typing import Annotated

import typer

from kzoo.cli.console import start_backend

SHELF_PRESET = "pope_small_multi30k_en_de"
SENTENCES = (
    "A young girl in a red dress is riding a bicycle down the street.",
    "Two men are playing guitar in front of a large crowd.",
    "A brown dog is running through the snow with a ball in its mouth.",
)

app = typer.Typer()


@app.command()
def demo(
    text: Annotated[
        list[str] | None, typer.Argument(help="English sentences to translate to German.")
    ] = None,
):
    """Train a small PoPE model on the built-in corpus Scenes, score it, and try a trained preset."""
    start_backend()
    from kzoo.data import open_corpus
    from kzoo.evaluation import evaluate, score_table
    from kzoo.presets import load
    from kzoo.presets.shelf import locate
    from kzoo.training.recipe import read_recipe
    from kzoo.training.run import train

    locate(SHELF_PRESET)  # if the shelf is missing, say so before a minute of training
    print("Training a small Transformer with PoPE positions on Scenes, English to German")
    with tempfile.TemporaryDirectory() as folder:
        translator = train(read_recipe("demo_scenes"), folder)

    print("\nIts translations of test sentences")
    corpus = open_corpus("scenes")
    scores, translations = evaluate(translator, corpus, ["test"], "en", "de", beam_size=1)
    english, german = corpus.pairs("test", "en", "de")
    for source, reference, translation in list(zip(english, german, translations["test"], strict=True))[:3]:
        print(f"English:     {source}\nreference:   {reference}\ntranslation: {translation}\n")
    print(score_table(scores))

    print(f"\nTranslations by {SHELF_PRESET}, trained on Multi30k")
    sentences = text or list(SENTENCES)
    for source, translation in zip(sentences, load(SHELF_PRESET).translate(sentences), strict=True):
        print(f"English:     {source}\ntranslation: {translation}\n")
