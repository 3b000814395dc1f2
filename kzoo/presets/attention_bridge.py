"""The multilingual models of the attention bridge paper, and its bilingual baseline."""

from collections.abc import Mapping, Sequence

from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError
from kzoo.models import AttentionBridgeBackbone, MultilingualTranslator
from kzoo.models.backbones import check_names, vocabulary_size_of

Tokenizers = Mapping[str, Tokenizer] | None  # by language

# The authors' toolkit adds the mean penalty once to the −log P of a batch of 64 sentences and divides by 64:
# the penalty's weight is 1/64 of Eq. 3's. Of the penalty's variants (squared or not, with or without biases),
# this one has the best BLEU (training/attention_bridge/RESULTS.md).
PENALTY = {"penalty_weight": 0.015625, "use_bias": True}
# Vázquez et al. 2019, Section 3. The paper does not mention dropout: 0.3 is its toolkit's default.
BASE = {
    **PENALTY,
    "encoder": "lstm",
    "embedding_dim": 512,
    "width": 512,
    "num_decoder_layers": 2,
    "num_heads": 10,
    "hidden_dim": 1024,
    "layer_dropout": 0.3,
    "tied_embeddings": False,
}
# Trains on two CPU cores.
TINY = {
    **PENALTY,
    "encoder": "lstm",
    "embedding_dim": 128,
    "width": 256,
    "num_decoder_layers": 1,
    "num_heads": 10,
    "hidden_dim": 256,
    "dropout": 0.1,
}


def attention_bridge_m2m(
    tokenizers: Tokenizers = None, languages: Sequence[str] = ("en", "de", "fr", "cs"), **overrides
) -> MultilingualTranslator:
    """The many-to-many model of the attention bridge paper (Vázquez et al. 2019, Table 1, "M-2-M").

    The penalty's weight is 1/64, and the bridge's linear maps have biases, as in the authors' toolkit. For
    Eq. 1 and 3 of the paper, pass `penalty_weight=1, use_bias=False`.

    Args:
        tokenizers: `{code: SubwordTokenizer}`. Without them, give `languages` and `vocabulary_size`.
        languages: codes; used only without tokenizers.
        **overrides: arguments of `AttentionBridgeBackbone`; also `vocabulary_size`, 10,000 by default.
    """
    return attention_bridge(tokenizers, languages, **{**BASE, **overrides})


def attention_bridge_bilingual(
    tokenizers: Tokenizers = None, languages: Sequence[str] = ("en", "de"), **overrides
) -> MultilingualTranslator:
    """The bilingual model of the attention bridge paper (Vázquez et al. 2019, Table 1).

    `bridge=False` is the paper's plain baseline. The arguments are those of `attention_bridge_m2m`.
    """
    return attention_bridge(tokenizers, languages, **{**BASE, **overrides})


def attention_bridge_m2m_tiny(
    tokenizers: Tokenizers = None, languages: Sequence[str] = ("en", "de", "fr", "cs"), **overrides
) -> MultilingualTranslator:
    """`attention_bridge_m2m` at a size that two CPU cores can train."""
    return attention_bridge(tokenizers, languages, **{**TINY, **overrides})


def attention_bridge_bilingual_tiny(
    tokenizers: Tokenizers = None, languages: Sequence[str] = ("en", "de"), **overrides
) -> MultilingualTranslator:
    """`attention_bridge_bilingual` at a size that two CPU cores can train."""
    return attention_bridge(tokenizers, languages, **{**TINY, **overrides})


def attention_bridge(
    tokenizers: Tokenizers, languages: Sequence[str], vocabulary_size: int = 10000, **settings
) -> MultilingualTranslator:
    """Build a translator around an attention bridge and compile it with SGD at rate 1 and the loss of Eq. 3.

    Args:
        tokenizers: `{code: SubwordTokenizer}`; `None`: a model for `languages`, without tokenizers.
        languages: codes; used only without tokenizers.
        vocabulary_size: int. Vocabulary size of each language; used only without tokenizers.
        **settings: arguments of `AttentionBridgeBackbone`.

    Raises:
        UserError: `languages` that are a str or name one twice; tokenizers that are not in a dict; an unknown
            setting.
    """
    check_names(settings, attention_bridge, AttentionBridgeBackbone)
    if tokenizers is None:
        if isinstance(languages, str):
            raise UserError(f"languages must be a list, such as ['en', 'de'], not {languages!r}")
        if len(set(languages)) < len(languages):
            raise UserError(f"a language is named twice: {', '.join(languages)}")
        tokenizers = dict.fromkeys(languages)
    elif not isinstance(tokenizers, Mapping):
        raise UserError(
            f"tokenizers must be a dict by language, such as {{'en': tokenizer, …}}, not a "
            f"{type(tokenizers).__name__}; for a model without them give languages=['en', …]"
        )
    sizes = [vocabulary_size_of(tokenizer, vocabulary_size) for tokenizer in tokenizers.values()]
    translator = MultilingualTranslator(AttentionBridgeBackbone(sizes, **settings), tokenizers)
    translator.compile(**translator.backbone.compile_arguments())
    return translator
