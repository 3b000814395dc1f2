"""The tagger of the glyph paper: it segments characters into words and tags them."""

import warnings
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from kzoo.decoding.batched_search import call_lock, padded
from kzoo.errors import UserError
from kzoo.layers import GlyphEmbedding, LinearChainCRF
from kzoo.layers.dense import Dense
from kzoo.layers.normalization import mean_over_replicas
from kzoo.models.backbones import freeze, frozen_layers
from kzoo.models.optimizers import WarnsOfSparseGradients, replicas
from kzoo.models.segments import Segment, segments_to_tags, tags_to_segments
from kzoo.text.glyphs import DrawnRows, UnseenGlyphs
from kzoo.text.preparation import known_forms, prepare
from kzoo.text.reading import UnknownCharactersWarning
from kzoo.text.texts import checked_texts
from kzoo.text.vocabulary import PAD, SHOWN

LENGTH_STEP = 32  # lengths are padded to multiples of this, so that few shapes are compiled


@keras.saving.register_keras_serializable("kzoo")
class CharacterTagger(WarnsOfSparseGradients, keras.Model):
    """Joint segmentation and tagging of characters: a dilated CNN and a conditional random field.

        x ← x + Dropout(ReLU(conv_d(x)))   for the dilations d = 1, 2, 4, …
        potentials = FC(Dropout(x))

    The convolutions have kernel size 3 and the embedding's width; the paper has three of width 512. The paper
    does not say how fast the dilation grows, nor what a residual connection spans: here it spans a
    convolution with its ReLU and dropout.

    The loss is the random field's negative log likelihood, so `compile` needs no `loss`. It is a mean over
    sentences; `fit`'s `sample_weight` has one number per sentence. Give `compile` other metrics of the
    potentials as `weighted_metrics`, which leave padding out. The paper's optimizer is
    `training.glyph.tagging.pytorch_adagrad(0.1)`. To freeze the embedding, set its `trainable` to `False`.

    Args:
        embedding: maps character ids to vectors: `keras.layers.Embedding` or `GlyphEmbedding`.
        tags: the tags of the BI scheme, such as `["B-NOUN", "I-NOUN"]`; a tag's number is its index.
        tokenizer: `CharacterTokenizer` with the embedding's vocabulary.
        num_layers: int. Number of convolutions.
        dropout: float. Rate on each convolution's output.
        output_dropout: float. Rate on the input of the layer that computes the potentials.
        **kwargs: other arguments of `keras.Model`.

    Call arguments:
        inputs: int `(B, L)`. Character ids, 0 for padding at the end. Or, outside training, `{"ids": (B, L),
            "drawn": (B, E, 22, 22)}` with characters that the vocabulary lacks; see `GlyphEmbedding`.
        training: bool. Whether dropout is on.

    Returns:
        `{"potentials": (B, L, K), "tags": int32 (B, L)}`; the tags are the most likely sequence.

    Example:

    >>> tokenizer = CharacterTokenizer(learn_characters(["学生来"]))
    >>> embedding = keras.layers.Embedding(tokenizer.vocabulary_size(), 512)
    >>> tagger = CharacterTagger(embedding, ["B-NOUN", "I-NOUN", "B-VERB"], tokenizer)
    >>> tagger.compile(kzoo.models.Adagrad(0.1))
    >>> ids, tags = tagger.arrays([[("学生", "NOUN"), ("来", "VERB")]])
    >>> history = tagger.fit(ids, tags, epochs=20, verbose=0)
    >>> tagger.tag(["学生来"])
    [[('学生', 'NOUN'), ('来', 'VERB')]]

    Reference:
        Broscheit et al. 2018, "Learning Distributional Token Representations from Visual Features",
        https://aclanthology.org/W18-3025; after Strubell et al. 2017, "Fast and Accurate Entity Recognition
        with Iterated Dilated Convolutions", https://arxiv.org/abs/1702.02098
    """

    def __init__(
        self,
        embedding,
        tags: Sequence[str],
        tokenizer,
        num_layers: int = 3,
        dropout: float = 0.1,
        output_dropout: float = 0.5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.embedding = embedding
        self.sparse_gradients = not isinstance(embedding, GlyphEmbedding)
        self.tag_names = list(tags)
        self.tokenizer = tokenizer
        self._drawer = None  # draws characters that the vocabulary lacks
        self.rates = {"dropout": dropout, "output_dropout": output_dropout}
        width, dtype = embedding.output_dim, self.dtype_policy
        self.dilations = [2**i for i in range(num_layers)]
        # Each convolution is a dense layer over three positions: one, and those a dilation before and after.
        self.convolutions = [Dense(width, "relu", dtype=dtype, name=f"conv_{d}") for d in self.dilations]
        self.dropouts = [keras.layers.Dropout(dropout, dtype=dtype) for _ in self.dilations]
        self.output_dropout = keras.layers.Dropout(output_dropout, dtype=dtype)
        self.potentials = Dense(len(self.tag_names), dtype=dtype, name="potentials")
        self.crf = LinearChainCRF(len(self.tag_names), name="crf")
        self.accuracy = keras.metrics.Mean("accuracy")

        if not embedding.built:
            embedding.build((None, None))
        for convolution in self.convolutions:
            convolution.build((None, 3 * width))
        self.potentials.build((None, width))
        self.built = True

    def call(self, inputs, training=None):
        ids, drawn = inputs, {}
        if isinstance(inputs, dict):
            ids, drawn = inputs["ids"], {"drawn": inputs["drawn"]}
        mask = ops.not_equal(ids, PAD)
        x = self.embedding(ids, training=training, **drawn)
        inside = ops.cast(mask, x.dtype)[..., None]
        for dilation, convolution, dropout in zip(
            self.dilations, self.convolutions, self.dropouts, strict=True
        ):
            x = x * inside  # zeros after the sentence, as before it
            length = ops.shape(x)[1]
            wide = ops.pad(x, ((0, 0), (dilation, dilation), (0, 0)))
            around = [wide[:, i * dilation : i * dilation + length] for i in range(3)]
            x = x + dropout(convolution(ops.concatenate(around, axis=-1)), training=training)
        potentials = self.potentials(self.output_dropout(x, training=training))
        return {"potentials": potentials, "tags": self.crf(potentials, mask=mask)}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        # Read before this replica waits for others: afterwards, they would include the others' penalties.
        penalties = list(self.losses)
        mask = ops.not_equal(x, PAD)
        loss = self.crf.negative_log_likelihood(y_pred["potentials"], y, mask)  # (B,)
        weights = ops.cast(mask[:, 0], "float32")  # 0 for rows that only pad the batch
        if sample_weight is not None:
            weights *= ops.cast(ops.reshape(sample_weight, ops.shape(weights)), "float32")
        mean = ops.divide_no_nan(ops.sum(weights * loss), mean_over_replicas(ops.sum(weights)))
        # As Keras scales its own losses, because it adds up the gradients of all replicas.
        return sum(map(ops.sum, [mean, *penalties])) / replicas()

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        correct = ops.equal(y_pred["tags"], ops.cast(y, "int32"))
        # Flattened, because Keras would average each row first, including padding.
        self.accuracy.update_state(ops.reshape(correct, (-1,)), ops.reshape(ops.not_equal(x, PAD), (-1,)))
        weights = ops.cast(ops.not_equal(x, PAD), "float32")
        if sample_weight is not None:
            weights *= ops.cast(ops.reshape(sample_weight, (-1, 1)), "float32")
        return super().compute_metrics(x, y, y_pred["potentials"], weights)

    def arrays(self, sentences: Sequence[Sequence[Segment]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the character ids and the tag numbers, `(N, L)` each, of sentences of tagged words.

        Raises:
            UserError: a tag that the model does not have, or a word with a line end or an
                invisible character.
        """
        tagged = [segments_to_tags(sentence) for sentence in sentences]
        texts, tags = [text for text, _ in tagged], [row for _, row in tagged]
        for number, text in enumerate(texts, 1):
            if prepare(text) != text:  # the tokenizer would replace it, and move the tags after it
                what = "a line end" if text.splitlines() != [text] else "a character that nobody sees"
                raise UserError(f"a word of sentence {number} has {what}: remove it ({text!r:.80})")
        numbers = {name: number for number, name in enumerate(self.tag_names)}
        for number, tag in ((n, tag) for n, row in enumerate(tags, 1) for tag in row):
            if tag not in numbers:
                raise UserError(f"sentence {number} has the tag {tag}, but the tagger knows {self.tag_names}")
        return _padded(self.tokenizer(texts)), _padded([[numbers[tag] for tag in row] for row in tags])

    def tag(self, texts: Sequence[str], batch_size: int = 32) -> list[list[Segment]]:
        """Return the tagged words of each text, prepared as by `kzoo.text.preparation`.

        A character that the vocabulary lacks is read as a form of it that the vocabulary knows, or from its
        pixels by a `GlyphEmbedding`.

        Warns:
            UnknownCharactersWarning: the vocabulary lacks characters, and neither was possible.
        """
        texts = [prepare(text) for text in checked_texts(texts)]
        forms, drawn = self._forms(set("".join(texts)) - set(self.tokenizer.get_vocabulary()))
        results = [[] for _ in texts]
        order = sorted((i for i in range(len(texts)) if texts[i].strip()), key=lambda i: -len(texts[i]))
        for first in range(0, len(order), batch_size):
            chosen = order[first : first + batch_size]
            # Pad the last batch with empty rows: another shape would have to be compiled.
            rows = [texts[i] for i in chosen] + [""] * (batch_size - len(chosen))
            tokens = self.tokenizer([row.translate(forms) for row in rows], drawn=drawn)
            if max(map(max, filter(None, tokens))) < self.tokenizer.vocabulary_size():
                inputs = _padded(tokens)
            else:
                bitmaps = DrawnRows(tokens, self._drawer)
                inputs = {"ids": _padded(bitmaps.tokens), "drawn": bitmaps[range(len(rows))]}
            with call_lock():
                tags = self.predict_on_batch(inputs)["tags"]
            for i, row in zip(chosen, tags, strict=False):
                names = [self.tag_names[number] for number in row[: len(texts[i])]]
                results[i] = tags_to_segments(texts[i], names)
        return results

    def _forms(self, lacking: set[str]) -> tuple[dict[int, str], str]:
        """Return what to read for characters that the vocabulary lacks, and which of them to draw."""
        forms = {character: known_forms(self.tokenizer, character) for character in sorted(lacking)}
        known = {ord(c): form for c, (form, rest) in forms.items() if not rest and len(form) == 1}
        others = "".join(character for character in forms if ord(character) not in known)
        drawn = ""
        if others and isinstance(self.embedding, GlyphEmbedding):
            if self._drawer is None:
                with call_lock():
                    glyphs = ops.convert_to_numpy(self.embedding.glyphs)
                self._drawer = UnseenGlyphs(self.tokenizer.get_vocabulary(), glyphs)
            drawn = "".join(character for character in others if self._drawer(character) is not None)
        if unknown := "".join(character for character in others if character not in drawn):
            warnings.warn(
                f"the vocabulary lacks {len(unknown):,} characters of the texts ({unknown[:SHOWN]})",
                UnknownCharactersWarning,
                stacklevel=3,
            )
        return known, drawn

    def quantize(self, mode=None, **options):
        """Raise `UserError`: a quantized tagger's file could not be loaded."""
        raise UserError("a CharacterTagger cannot be quantized")

    def get_config(self):
        return {
            **super().get_config(),
            "embedding": keras.saving.serialize_keras_object(self.embedding),
            "tags": self.tag_names,
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "num_layers": len(self.dilations),
            "frozen_layers": frozen_layers(self),
            **self.rates,
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for part in ("embedding", "tokenizer"):
            config[part] = keras.saving.deserialize_keras_object(config[part])
        frozen = config.pop("frozen_layers")
        tagger = cls(**config)
        freeze(tagger, frozen)
        return tagger


def padded_length(characters: int) -> int:
    """Return the padded length of a batch whose longest sentence has `characters` characters."""
    return LENGTH_STEP * max(-(-characters // LENGTH_STEP), 1)


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    return padded(rows, padded_length(max(map(len, rows), default=0)))
