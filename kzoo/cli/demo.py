"""`kzoo demo`: from training to translation in about a minute, on built-in data."""

import tempfile

from kzoo.data import open_corpus
from kzoo.evaluation import evaluate, score_table
from kzoo.presets import load
from kzoo.training.recipe import read_recipe
from kzoo.training.run import train

SHELF_PRESET = "pope_small_multi30k_en_de"
SENTENCES = (
    "A young girl in a red dress is riding a bicycle down the street.",
    "Two men are playing guitar in front of a large crowd.",
    "A brown dog is running through the snow with a ball in its mouth.",
)


def demo(sentences: list[str]):
    """Train a small PoPE model on Scenes, print its BLEU, and translate with a trained preset.

    Args:
        sentences: English sentences for the trained preset; if empty, three examples.
    """
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
    sentences = sentences or list(SENTENCES)
    for source, translation in zip(sentences, load(SHELF_PRESET).translate(sentences), strict=True):
        print(f"English:     {source}\ntranslation: {translation}\n")
