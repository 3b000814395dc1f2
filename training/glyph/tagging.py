"""Training a tagger on a translator's character vectors, and its F1, as in the glyph paper's Table 6."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import keras
import numpy as np

from kzoo.data.batch_shapes import differing_first_two
from kzoo.errors import UserError
from kzoo.layers import GlyphEmbedding
from kzoo.models import Adagrad, CharacterTagger, Translator
from kzoo.models.segments import Segment, segments_to_tags
from kzoo.models.tagger import padded_length
from kzoo.text import CharacterTokenizer, render_glyphs
from kzoo.text.glyphs import why_not_drawn
from kzoo.text.vocabulary import SPECIAL
from training.glyph.treebanks import text_of

Sentence = Sequence[Segment]


def tagger_from(
    translator: Translator,
    sentences: Sequence[Sentence],
    adapted: bool = True,
    seed: int = 1,
) -> CharacterTagger:
    """Return an untrained tagger that starts with a translator's character vectors.

    Its characters are the translator's, followed by those that only `sentences` have. For the latter, a
    lookup embedding has random vectors, and a glyph encoder computes vectors from their pictures.

    Args:
        translator: a translator whose source tokens are characters.
        sentences: lists of (word, tag): the training text, whose tags become the tagger's.
        adapted: whether training also updates the layer that computes the vectors; `False` freezes it.
        seed: int. Seed of the initial weights and dropout.

    Raises:
        UserError: a glyph encoder has to draw characters, but its bitmaps are not of the default font.
    """
    keras.utils.set_random_seed(seed)
    texts, tags = zip(*(segments_to_tags(sentence) for sentence in sentences), strict=True)
    known = translator.source_tokenizer.get_vocabulary()[len(SPECIAL) :]
    tokenizer = CharacterTokenizer(list(dict.fromkeys([*known, *sorted(set("".join(texts)))])))
    source = translator.backbone.source_embedding
    if isinstance(source, GlyphEmbedding):
        embedding = _glyphs(source, tokenizer.get_vocabulary())
    else:
        embedding = _lookup(source, tokenizer.vocabulary_size())
    embedding.trainable = adapted
    return CharacterTagger(embedding, sorted({tag for row in tags for tag in row}), tokenizer)


def _glyphs(source: GlyphEmbedding, characters: list[str]) -> GlyphEmbedding:
    encoder = type(source.encoder).from_config(source.encoder.get_config())
    glyphs = keras.ops.convert_to_numpy(source.glyphs)
    known, new = characters[: len(glyphs)], characters[len(glyphs) :]
    if new:
        if reason := why_not_drawn(known, glyphs):
            raise UserError(
                f"the translator lacks {len(new):,} characters, such as {new[0]}, and {reason}: "
                "train it with the default font, or with these characters in its vocabulary"
            )
        glyphs = np.concatenate([glyphs, render_glyphs(new)])
    embedding = GlyphEmbedding(glyphs, encoder, dtype=encoder.dtype_policy)
    embedding.build()
    encoder.set_weights(source.encoder.get_weights())
    return embedding


def _lookup(source: keras.layers.Embedding, size: int) -> keras.layers.Embedding:
    # A clone, because the translator's initializer has a seed already.
    embedding = keras.layers.Embedding(size, source.output_dim, source.embeddings_initializer.clone())
    embedding.build()
    new = embedding.embeddings[source.input_dim :]
    embedding.embeddings.assign(keras.ops.concatenate([source.embeddings, new]))
    return embedding


def train_tagger(
    tagger: CharacterTagger,
    sentences: Sequence[Sentence],
    validation: Sequence[Sentence],
    epochs: int = 50,
    batch_size: int = 32,
    seed: int = 1,
    verbose: str | int = "auto",
) -> list[float]:
    """Train a tagger with the paper's Adagrad, `pytorch_adagrad(0.1)`, and keep the best epoch's weights.

    Args:
        tagger: the tagger.
        sentences: lists of (word, tag).
        validation: the same; the accuracy of their characters' tags chooses the epoch.
        epochs: int.
        batch_size: int. Sentences per batch.
        seed: int. Seed of the order of batches.
        verbose: as in `keras.Model.fit`.

    Returns:
        The validation accuracy of each epoch, from 0 to 1.

    Raises:
        UserError: the validation sentences have a tag that the tagger lacks.

    Reference:
        Broscheit et al. 2018, Section 4.3.
    """
    tagger.arrays(validation)  # raises now if the tagger lacks a tag
    tagger.compile(pytorch_adagrad(0.1))
    best = keras.callbacks.EarlyStopping(
        "val_accuracy", mode="max", patience=epochs, restore_best_weights=True
    )
    history = tagger.fit(
        TaggedBatches(tagger, sentences, batch_size, seed),
        validation_data=TaggedBatches(tagger, validation, batch_size),
        epochs=epochs,
        shuffle=False,
        callbacks=[best],
        verbose=verbose,
    )
    return history.history["val_accuracy"]


def pytorch_adagrad(rate: float) -> Adagrad:
    """Return PyTorch's Adagrad, where a weight's first step has the size `rate` for any gradient.

        G ← G + g²,   w ← w − rate · g / (√G + 1e-10),   G = 0 at first

    By default, Keras starts with G = 0.1, so that the first step of a gradient of 0.01 is 0.03 · rate. Keras
    has ε inside the root: 1e-20 there equals 1e-10 outside if G is 0.
    """
    return Adagrad(rate, initial_accumulator_value=0.0, epsilon=1e-20)


class TaggedBatches(keras.utils.PyDataset):
    """Batches of sentences of similar length, with the same number of rows, in a new order every epoch.

    Args:
        tagger: the tagger, with the ids of characters and tags.
        sentences: lists of (word, tag).
        batch_size: int. Rows per batch; the last rows of the longest batch may be empty.
        seed: int. Seed of the orders; `None`: always shortest first.

    Returns (a batch):
        Character ids and tag ids, `(B, L)` each.
    """

    def __init__(
        self, tagger: CharacterTagger, sentences: Sequence[Sentence], batch_size: int, seed: int | None = None
    ):
        super().__init__()
        self.tagger, self.batch_size, self.seed, self.epoch = tagger, batch_size, seed, -1
        self.sentences = sorted(sentences, key=lambda sentence: len(text_of(sentence)))
        self.on_epoch_end()

    def on_epoch_end(self):
        self.epoch += 1
        order = np.arange(len(self))
        if self.seed is not None:
            order = np.random.default_rng([self.seed, self.epoch]).permutation(order)
        self._order = differing_first_two(order.tolist(), self._shape)

    def _shape(self, batch: int) -> tuple[int, int]:
        longest = self.sentences[: (batch + 1) * self.batch_size][-1]
        return self.batch_size, padded_length(len(text_of(longest)))

    def __len__(self) -> int:
        return -(-len(self.sentences) // self.batch_size)

    def __getitem__(self, index: int):
        first = self._order[index] * self.batch_size
        rows = self.sentences[first : first + self.batch_size]
        ids, tags = self.tagger.arrays(rows)
        empty = ((0, self.batch_size - len(rows)), (0, 0))
        return np.pad(ids, empty), np.pad(tags, empty)


@dataclass(frozen=True)
class TaggingScores:
    """Scores of tagged segments, in percent.

    Args:
        sentences: number of sentences.
        precision: share of correct segments among those found.
        recall: share of correct segments among the true ones.
        f1: harmonic mean of both; 0 if no segment is correct.
    """

    sentences: int
    precision: float
    recall: float
    f1: float


def score_tagging(predicted: Sequence[Sentence], true: Sequence[Sentence]) -> TaggingScores:
    """Score tagged segments. A segment is correct if its first and last character and its tag are.

    Args:
        predicted: a list of (segment, tag) for each sentence.
        true: the same, with the same characters.

    Raises:
        UserError: the numbers of sentences or the characters of a sentence differ.

    Example:

    >>> score_tagging([[("学生", "NOUN"), ("来", "NOUN")]], [[("学生", "NOUN"), ("来", "VERB")]]).f1
    50.0
    """
    if len(predicted) != len(true):
        raise UserError(f"{len(predicted)} tagged sentences but {len(true)} true ones")
    correct = found = existing = 0
    for number, pair in enumerate(zip(predicted, true, strict=True), 1):
        texts = [text_of(sentence) for sentence in pair]
        if texts[0] != texts[1]:
            raise UserError(f"sentence {number} is tagged as {texts[0]!r}, but its text is {texts[1]!r}")
        spans, expected = map(_spans, pair)
        correct += len(spans & expected)
        found += len(spans)
        existing += len(expected)
    precision, recall = (100 * correct / total if total else 0.0 for total in (found, existing))
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return TaggingScores(len(true), precision, recall, f1)


def _spans(sentence: Sentence) -> set[tuple[int, int, str]]:
    ends = itertools.accumulate(len(segment) for segment, _ in sentence)
    return {(end - len(segment), end, tag) for end, (segment, tag) in zip(ends, sentence, strict=True)}
