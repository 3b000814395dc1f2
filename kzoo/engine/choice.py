"""Which engine translates: whether CTranslate2 can, and finds the same translations as Keras."""

import warnings
from typing import get_args

from kzoo.decoding.search_settings import LENGTHS, Exponent, SearchSettings, output_limit
from kzoo.engine import Engine, import_ctranslate2
from kzoo.engine.vocabulary import pieces_of
from kzoo.errors import UserError
from kzoo.hub.preset import Preset
from kzoo.transformer_weights import ACTIVATIONS

# The default maximum output length of the shortest sentences.
SHORTEST_LIMIT = output_limit(SearchSettings(), LENGTHS[0], LENGTHS[-1])
POSITIONS = ("bias", "learned", "none", "pope", "rope", "sine")  # a user's own encodings may be anything
TOKENIZERS = ("SubwordTokenizer", "MarianTokenizer", "LanguageTokenizer")
MOST_LAYERS = 1000
LARGEST_TABLE = 10**8  # numbers


def chosen_engine(
    engine: Engine, preset: Preset, search: SearchSettings, needs: dict[str, object] | None = None
) -> str:
    """Return the engine to use. `"auto"` chooses CTranslate2 where it gives the same translations.

    Args:
        engine: the requested engine.
        preset: the preset.
        search: the search settings.
        needs: by name, the values of options that only Keras supports.

    Raises:
        UserError: CTranslate2 is requested but does not support this, or cannot be imported; an unknown
            engine.
    """
    if engine not in get_args(Engine):
        raise UserError(f"engine must be one of {', '.join(get_args(Engine))}, not {engine!r}")
    if engine == "keras" or (engine == "auto" and differing_settings(search)):
        return "keras"
    if only_keras := [name for name, value in (needs or {}).items() if value]:
        reason = f"CTranslate2 is not used with {' or '.join(only_keras)}"
    else:
        reason = why_not(preset, search)
    if not reason:
        try:
            import_ctranslate2()  # last: it takes time
        except UserError as error:
            reason = str(error)
            if engine == "auto":
                warnings.warn(f"{reason}; Keras translates instead, more slowly", stacklevel=2)
    if reason and engine == "ctranslate2":
        raise UserError(f"{reason}; or leave engine (--engine) out to use Keras")
    return "keras" if reason else "ctranslate2"


def differing_settings(search: SearchSettings) -> list[str]:
    """Return the settings with which CTranslate2's beam search finds other hypotheses than Keras's."""
    differ = {
        # CTranslate2 does not score the end symbol of a sentence that it cuts, so cut sentences win.
        f"max_length={search.max_length}": search.max_length and search.max_length < SHORTEST_LIMIT,
        "min_length": search.min_length,
        "no_repeat_ngram": search.no_repeat_ngram,
        "length_penalty=0": search.length_penalty == Exponent(0),
    }
    return [name for name, given in differ.items() if given]


def why_not(preset: Preset | None = None, search: SearchSettings | None = None) -> str | None:
    """Return why CTranslate2 cannot hold a preset, or search with some settings; `None` if it can."""
    try:
        reason = preset and (_other_kind(preset) or _other_counts(preset))
    except UserError as error:  # a damaged preset
        reason = str(error)
    except (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        reason = f"{preset} is damaged: {error!r}"
    return reason or (search and _other_search(search))


def check_supported(preset: Preset | None = None, search: SearchSettings | None = None):
    """Raise `UserError` for what `why_not` names."""
    if reason := why_not(preset, search):
        raise UserError(reason)


def _other_kind(preset: Preset) -> str | None:
    """Return which part of a preset's model CTranslate2's format has not, if any."""
    kind, config = preset.backbone["class_name"], preset.backbone["config"]
    if kind != "TransformerBackbone" or config["image_shape"] is not None:
        return f"CTranslate2's format holds Transformers that read text only, not this {kind}"
    options, width = config["position_options"], config["width"]
    refused = {
        "position_encoding": config["position_encoding"] not in POSITIONS,
        "source_embedding": config["source_embedding"] != "lookup",
        "activation": config["activation"] not in ACTIVATIONS,
        # From an untrusted file: the conversion would fill the memory.
        "num_layers": config["num_layers"] > MOST_LAYERS,
        "decoder_layers": (config.get("decoder_layers") or 0) > MOST_LAYERS,
        "max_length": config["max_length"] * width > LARGEST_TABLE,
        "position_options": options.get("per_head")
        or options.get("first_order", 0) * width > LARGEST_TABLE
        or config["position_encoding"] == "rope"
        and options.keys() - {"max_wavelength"},
    }
    if name := next((name for name, found in refused.items() if found), None):
        return f"CTranslate2's Transformer has no {name}={config[name]!r}"
    tokenizers = (preset.object(name)["class_name"] for name in preset.settings["tokenizers"])
    if other := next((one for one in tokenizers if one not in TOKENIZERS), None):
        return f"CTranslate2 takes plain SentencePiece, not a {other}"
    if (translator := preset.settings["class"]) != "Translator":
        return f"CTranslate2 does what a Translator does; this is a {translator}"
    return None


def _other_counts(preset: Preset) -> str | None:
    """Return that a preset's tokenizers have other numbers of tokens than its model, if so."""
    config = preset.backbone["config"]
    source, target = config["source_vocabulary_size"], config["target_vocabulary_size"]
    sizes = source, target or source
    for side, size, pieces in zip(("source", "target"), sizes, pieces_of(preset), strict=True):
        if size != (count := len(pieces)):
            return f"CTranslate2 needs a piece for each token; here {count} for {size} {side} tokens"
    return None


def _other_search(search: SearchSettings) -> str | None:
    """Return which search setting CTranslate2 has not, if any."""
    if type(search.length_penalty) is not Exponent:  # `GNMT` is a subclass
        return (
            f"CTranslate2 divides log P by length^α, it has no {search.length_penalty}: "
            "give α with --length-penalty, or in the translator's search"
        )
    if search.max_length == 1:
        return "CTranslate2 writes at least one token before the end symbol: set max_length to 2 or more"
    return None
