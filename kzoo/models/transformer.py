"""The Transformer encoder and decoder, with a choice of position encodings."""

from collections.abc import Sequence
from typing import Literal

import keras
from keras import ops
from keras_hub.layers import PositionEmbedding

from kzoo.layers import (
    Dropout,
    PerHeadPoPE,
    PictureEncoder,
    PoPEEmbedding,
    RelativePositionBias,
    RoPEEmbedding,
    SinePositions,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from kzoo.layers.dense import ReversibleEmbedding
from kzoo.layers.output_bias import OutputBias
from kzoo.models.backbones import (
    BY_INPUTS,
    BY_OUTPUTS,
    EMBEDDINGS,
    MODEL,
    TranslationBackbone,
    glyph_embedding,
    token_inputs,
)
from kzoo.models.losses import LabelSmoothedCrossEntropy
from kzoo.models.optimizers import Adam, NoamSchedule
from kzoo.sizes import check_choice, check_heads


@keras.saving.register_keras_serializable("kzoo")
class TransformerBackbone(TranslationBackbone):
    """Transformer encoder and decoder with tied embeddings.

    Inputs are `{"source": (B, S), "target": (B, T)}`, int32 token ids with 0 for padding; the target begins
    with the start symbol. The output is the logits `(B, T, V)` of each next token. The output projection is
    the target's embedding table (Vaswani et al. 2017, Section 3.4). With an `image_shape` the model has a
    third input, `"image"`, which attends to the tokens in each encoder layer.

    For decoding, `encode`, `start` and `decode_step` implement the contract of `kzoo.decoding`.

    Args:
        source_vocabulary_size: int. Vocabulary size of the source, or of both languages.
        target_vocabulary_size: int. V. `None`, the default: one joint vocabulary and one embedding table.
        position_encoding: `"pope"`, `"sine"` or `"learned"`, added to the embeddings; `"rope"`, which rotates
            the queries and keys of self-attention; `"bias"`, a learned bias on the scores of self-attention,
            shared by the layers of the encoder and by those of the decoder; or `"none"`.
        position_options: dict. Arguments of the position layer, such as `{"normalize": True}` for PoPE. PoPE
            also has `{"per_head": True}`, which adds it to the queries and keys of self-attention instead of
            the embeddings.
        num_layers: int. Number of layers of the encoder, and of the decoder.
        width: int. D.
        num_heads: int. H; must divide `width`.
        feedforward_dim: int. Inner width of the feed-forward networks.
        dropout: float. Rate on embeddings and on each sublayer's output, at least 0 and less than 1.
        norm: `"post"` (Vaswani's) or `"pre"`, where layer normalization is applied.
        source_embedding: `"lookup"`, or `"glyph"`: vectors computed from the source characters' bitmaps;
            requires a `target_vocabulary_size`.
        glyph_options: dict. Arguments of `GlyphCharEncoder`, such as `{"architecture": "fc_2"}`.
        image_shape: ints. Shape of a sentence's image: `(D_img,)`, features of the whole picture;
            `(R, D_img)`, features of R regions; or `(h, w, 3)`, a picture, read by a small convolutional
            network. `None`, the default: text only.
        activation: Keras's name of the feed-forward networks' activation.
        output_bias: bool. Whether the logits have a learned bias.
        decoder_layers: int. Number of layers of the decoder; `None`, the default: `num_layers`.
        max_length: int. Maximum sentence length in tokens, with its start or end symbol.
        dtype, name, trainable: as in `keras.Model`.

    Raises:
        ValueError: an unknown position encoding, source embedding or `norm`, or options that it does not
            take; glyphs without a `target_vocabulary_size`; a size that is not a whole number of at least 1;
            a `num_heads` that does not divide the width, or heads of odd width with rotary positions; a
            dropout outside [0, 1).

    Example:

    >>> model = TransformerBackbone(100, num_layers=1, width=32, num_heads=2, feedforward_dim=64)
    >>> tokens = {"source": np.ones((2, 5), "int32"), "target": np.ones((2, 7), "int32")}
    >>> model(tokens).shape
    (2, 7, 100)

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need". https://arxiv.org/abs/1706.03762
        Ma et al. 2020, "Fusion of Image-text attention for Transformer-based Multimodal Machine Translation".
        https://doi.org/10.1109/IALP48816.2019.9037732
    """

    xla_backends = ("tensorflow", "jax")
    layouts = EMBEDDINGS | {  # with or without images; also as the bridge's encoder
        r".*attention/(query/|key_value/)?kernel": BY_OUTPUTS,
        r".*attention/(query/|key_value/)?bias": (MODEL,),
        r".*attention/output/kernel": BY_INPUTS,
        r".*feedforward/inner/kernel": BY_OUTPUTS,
        r".*feedforward/inner/bias": (MODEL,),
        r".*feedforward/outer/kernel": BY_INPUTS,
    }

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        position_encoding: str = "pope",
        position_options: dict | None = None,
        num_layers: int = 6,
        width: int = 512,
        num_heads: int = 8,
        feedforward_dim: int = 2048,
        dropout: float = 0.1,
        norm: Literal["post", "pre"] = "post",
        source_embedding: Literal["lookup", "glyph"] = "lookup",
        glyph_options: dict | None = None,
        image_shape: Sequence[int] | None = None,
        activation: str = "relu",
        output_bias: bool = False,
        decoder_layers: int | None = None,
        max_length: int = 256,
        dtype: str | keras.DTypePolicy | None = None,
        name: str | None = None,
        trainable: bool = True,
    ):
        position_options, glyph_options = dict(position_options or {}), dict(glyph_options or {})
        self._keep(TransformerBackbone, locals())
        if source_embedding == "glyph" and target_vocabulary_size is None:
            raise ValueError(f"source_embedding={source_embedding!r} needs a target_vocabulary_size")
        check_heads(width, num_heads, position_encoding == "rope")
        check_positions(position_encoding, position_options)
        self.max_length, self.width = max_length, width

        def embedding(size, name):
            initializer = keras.initializers.RandomNormal(stddev=width**-0.5)
            return ReversibleEmbedding(
                size, width, embeddings_initializer=initializer, dtype=dtype, name=name
            )

        def positions(table, name, dtype=dtype, **arguments):
            if make := table.get(position_encoding):
                return make(max_length, **position_options, **arguments, dtype=dtype, name=name)
            return None

        def layers(kind, name, number):
            return [
                kind(
                    num_heads,
                    feedforward_dim,
                    dropout=dropout,
                    norm=norm,
                    rotary=positions(HEAD_POSITIONS, f"{name}_{i}_rotary"),
                    activation=activation,
                    dtype=dtype,
                    name=f"{name}_{i}",
                )
                for i in range(number)
            ]

        def last_norm(name):
            if norm == "pre":
                return keras.layers.LayerNormalization(epsilon=1e-5, dtype=dtype, name=name)
            return None

        # Looked-up vectors are scaled by √D (Section 3.4); vectors from glyphs already have that scale.
        self._source_scale = width**0.5 if source_embedding == "lookup" else 1.0
        joint = target_vocabulary_size is None
        self.target_embedding = embedding(
            source_vocabulary_size if joint else target_vocabulary_size,
            "embedding" if joint else "target_embedding",
        )
        glyphs = glyph_embedding(source_embedding, source_vocabulary_size, width, glyph_options, dtype)
        shared = self.target_embedding if joint else None
        self.source_embedding = glyphs or shared or embedding(source_vocabulary_size, "source_embedding")
        # Always float32: bfloat16 cannot distinguish positions 256 and 257.
        self.source_positions = positions(ADDED_POSITIONS, "source_positions", "float32")
        self.target_positions = positions(ADDED_POSITIONS, "target_positions", "float32")
        self.source_bias = positions(SCORE_POSITIONS, "source_bias", num_heads=num_heads, two_sided=True)
        self.target_bias = positions(SCORE_POSITIONS, "target_bias", num_heads=num_heads, two_sided=False)
        self.source_dropout = Dropout(dropout, dtype=dtype, name="source_dropout")
        self.target_dropout = Dropout(dropout, dtype=dtype, name="target_dropout")
        self.encoder_layers = layers(TransformerEncoderLayer, "encoder_layer", num_layers)
        self.decoder_layers = layers(TransformerDecoderLayer, "decoder_layer", decoder_layers or num_layers)
        self.output_bias = OutputBias(dtype=dtype, name="output_bias") if output_bias else None
        self.encoder_norm = last_norm("encoder_norm")
        self.decoder_norm = last_norm("decoder_norm")

        self.picture_encoder = None
        if image_shape is not None and len(image_shape) == 3:
            self.picture_encoder = PictureEncoder(dtype=dtype, name="picture_encoder")

        inputs = token_inputs("source", "target")
        if image_shape is not None:
            inputs["image"] = keras.Input(tuple(image_shape), name="image")
        logits = self._logits(self._decode(inputs))
        super().__init__(inputs=inputs, outputs=logits, dtype=dtype, name=name, trainable=trainable)

    def _embed_target(self, tokens, positions=None):
        x = self.target_embedding(tokens) * self.width**0.5  # (B, T, D)
        return self.target_dropout(_with_positions(x, self.target_positions, positions))

    def image_attention(self, inputs: dict):
        """Return the picture's attention to the source tokens: each encoder layer's weights `(B, H, R, S)`.

        Args:
            inputs: `{"source": (B, S), "image": (B, …)}`.

        Raises:
            ValueError: the model reads text only.
        """
        if self._settings["image_shape"] is None:
            raise ValueError("a model without an image_shape has no image attention")
        self._encode(inputs, scores := [])
        return scores

    def source_attention(self, inputs: dict):
        """Return the target tokens' attention to the source: each decoder layer's weights `(B, H, T, S)`.

        Args:
            inputs: the model's inputs. Row t of the weights is for predicting the token after target token t.
        """
        self._decode(inputs, scores := [])
        return scores

    def _enter(self, inputs):
        """Return the embedded source `(B, S, D)`, its mask `(B, S)`, and the image's features, or `None`."""
        source, image = inputs["source"], inputs.get("image")
        mask = ops.not_equal(source, 0)
        if self.picture_encoder is not None:
            image = self.picture_encoder(image, present=ops.any(mask, axis=1))  # empty rows are padding
        x = self.embedded_source(inputs) * self._source_scale
        return self.source_dropout(_with_positions(x, self.source_positions)), mask, image

    def _encode(self, inputs, scores: list | None = None):
        """Return the encoder's outputs `(B, S, D)` and mask `(B, S)`; append the attention to `scores`."""
        x, mask, image = self._enter(inputs)
        bias = _bias(self.source_bias, x)
        x = _through(self.encoder_layers, x, scores, image=image, mask=mask, position_bias=bias)
        return (x if self.encoder_norm is None else self.encoder_norm(x)), mask

    def _decode(self, inputs, scores: list | None = None):
        """Return the decoder's outputs `(B, T, D)`; append the attention to the source to `scores`."""
        x = self._embed_target(inputs["target"])
        encoded, mask = self._encode(inputs)
        bias = _bias(self.target_bias, x)
        return _through(self.decoder_layers, x, scores, source=encoded, source_mask=mask, position_bias=bias)

    def _logits(self, x):
        x = x if self.decoder_norm is None else self.decoder_norm(x)
        logits = self.target_embedding(x, reverse=True)
        return logits if self.output_bias is None else self.output_bias(logits)

    def compile_arguments(self) -> dict:
        """Return Vaswani's recipe; that of the image-text paper for a model that reads images."""
        recipe = vaswani_recipe if self._settings["image_shape"] is None else image_text_recipe
        return recipe(self.width)

    def encode(self, inputs: dict) -> dict:
        """Return the memory of the sentences `inputs["source"]` `(B, S)`: each layer's keys and values.

        A model with an `image_shape` takes `inputs["image"]` too.
        """
        encoded, mask = self._encode(inputs)
        return {"mask": mask, "layers": [layer.source_cache(encoded) for layer in self.decoder_layers]}

    def start(self, memory: dict, beam_size: int, max_length: int) -> dict:
        """Return the initial state.

        The cache holds every token of every hypothesis: N = `max_length` · K entries, each written once and
        never moved. Only the ancestry `(B, K, N)`, which marks the entries of a hypothesis's own tokens, is
        reordered with the beam.
        """
        values = memory["layers"][0][1]  # (B, H, S, d)
        B, H, N, d = ops.shape(values)[0], values.shape[1], max_length * beam_size, values.shape[3]
        ancestry = ops.zeros((B, beam_size, N), dtype="bool")
        cache = [
            (ops.zeros((B, H, d, N), values.dtype), ops.zeros((B, H, N, d), values.dtype))
            for _ in self.decoder_layers
        ]
        return {"reorder": {"ancestry": ancestry}, "keep": {"cache": cache}}

    def decode_step(self, tokens, step, memory: dict, state: dict):
        """Return the logits `(B, K, V)` after `tokens` `(B, K)` at position `step`, and the state."""
        beam_size = tokens.shape[1]
        positions = ops.broadcast_to(step, (beam_size,))
        first_entry = step * beam_size
        ancestry = state["reorder"]["ancestry"]
        itself = ops.broadcast_to(
            ops.eye(beam_size, dtype="bool"), (ops.shape(ancestry)[0], beam_size, beam_size)
        )
        ancestry = ops.slice_update(ancestry, (0, 0, first_entry), itself)

        x = self._embed_target(tokens, positions)
        written = ops.arange(ancestry.shape[-1], dtype="int32") // beam_size  # the entries' positions
        bias = _bias(self.target_bias, x, positions=positions, key_positions=written)
        caches = []
        for layer, source_cache, cache in zip(
            self.decoder_layers, memory["layers"], state["keep"]["cache"], strict=True
        ):
            x, cache = layer.decode_step(
                x, source_cache, memory["mask"], cache, first_entry, ancestry[:, None], positions, bias
            )
            caches.append(cache)
        return self._logits(x), {"reorder": {"ancestry": ancestry}, "keep": {"cache": caches}}

    def default_lora_layer_names(self) -> list[str]:
        """Return the layers that `enable_lora` adapts: attention's maps and all dense layers."""
        attention = ["attention", "self_attention", "cross_attention", "query", "key_value", "output"]
        return [*attention, "inner", "outer"]


def _through(layers, x, scores: list | None, **others):
    """Return the outputs of a stack of layers; append each layer's attention to `scores`, if given."""
    for layer in layers:
        if scores is None:
            x = layer(x, **others)
        else:
            x, attended = layer(x, **others, return_attention_scores=True)
            scores.append(attended)
    return x


def _with_positions(x, added, positions=None):
    return x if added is None else x + ops.cast(added(x, positions=positions), x.dtype)


def _bias(bias_layer, x, **positions):
    """Return the bias `(H, L, N)` on the self-attention scores of a stack of layers, or `None`."""
    return None if bias_layer is None else bias_layer(x, **positions)


# Position encodings by name, in one table for each place where they act. The functions take `max_length` and
# the `position_options`, and return a layer or `None`.

# Added to the embeddings; add your own here. The layer is called with the embeddings and, in decoding, with
# `positions`, ints `(K,)`.
ADDED_POSITIONS = {
    "pope": lambda max_length, per_head=False, **options: (
        None if per_head else PoPEEmbedding(max_length, **options)
    ),
    "sine": lambda max_length, **options: SinePositions(**options),
    "learned": lambda max_length, **options: PositionEmbedding(max_length, **options),
}
# Applied to the queries and keys of self-attention, as `MultiHeadAttention(rotary=…)`.
HEAD_POSITIONS = {
    "pope": lambda max_length, per_head=False, **options: (
        PerHeadPoPE(max_length, **options) if per_head else None
    ),
    "rope": lambda max_length, **options: RoPEEmbedding(**options),
}
# Added to the scores of self-attention, as `position_bias` in a call of `MultiHeadAttention`.
SCORE_POSITIONS = {"bias": lambda max_length, **options: RelativePositionBias(**options)}


def position_encodings() -> list[str]:
    """Return the names of the position encodings."""
    return list(dict.fromkeys([*ADDED_POSITIONS, *HEAD_POSITIONS, *SCORE_POSITIONS, "none"]))


def check_positions(encoding: str, options: dict):
    """Raise `ValueError` for a position encoding that is unknown or does not take the options."""
    check_choice("position_encoding", encoding, position_encodings())
    if encoding == "none" and options:
        raise ValueError(f"position_encoding='none' takes no position_options, not {options!r}")


def vaswani_recipe(
    width: int, warmup_steps: int = 4000, beta_2: float = 0.98, label_smoothing: float = 0.1
) -> dict:
    """Return Adam on Noam's schedule, and label smoothing (Vaswani et al. 2017, Sections 5.3 and 5.4).

    Args:
        width: int. D, which scales the rate.
        warmup_steps: int. Steps until the rate's peak.
        beta_2: float. Adam's β₂.
        label_smoothing: float. At least 0 and less than 1.

    Returns:
        Arguments of `compile`.
    """
    schedule = NoamSchedule(width, warmup_steps)
    return {
        "optimizer": Adam(schedule, beta_1=0.9, beta_2=beta_2, epsilon=1e-9),
        "loss": LabelSmoothedCrossEntropy(label_smoothing),
    }


def image_text_recipe(width: int) -> dict:
    """Return Adam (0.9, 0.997, 1e-9) with 16,000 warm-up steps, and the plain log-likelihood (Eq. 4).

    The paper's "initial rate 0.01" with Noam's schedule is ambiguous. This is Vaswani's schedule, whose peak
    is 3.5e-4 at D = 512.
    """
    return vaswani_recipe(width, warmup_steps=16000, beta_2=0.997, label_smoothing=0.0)
