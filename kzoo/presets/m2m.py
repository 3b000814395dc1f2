"""Converts Hugging Face's models of a hundred or more languages to presets: M2M-100, NLLB-200, SMaLL-100."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta
from sentencepiece import SentencePieceProcessor

from kzoo.errors import UserError
from kzoo.files import read_typed
from kzoo.hub.preset import CONFIG_FILE
from kzoo.models.translator import Translator
from kzoo.presets import hugging_face
from kzoo.presets.hugging_face_weights import build
from kzoo.text.tokenizers import LanguageTokenizer
from kzoo.text.vocabulary import SPECIAL

MODEL, VOCABULARY = "sentencepiece.bpe.model", "vocab.json"
TOKENIZER, TOKENS, SMALL_100 = "tokenizer_config.json", "special_tokens_map.json", "tokenization_small100.py"
NEEDED = {"scale_embedding": (True, True), "tie_word_embeddings": (True, True)}
FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]  # a vocabulary's first tokens
FIRST_PIECE = 3  # SentencePiece's unknown, start and end come before
# The languages of M2M-100 and SMaLL-100, in the order of their tokens, which no file of a repository lists.
CODES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr "
    "ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or "
    "pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
M2M_LANGUAGES = CODES.split()
SMALL_LAYERS = 12, 3  # SMaLL-100's, of encoder and decoder; M2M-100's have as many in both


class Config(hugging_face.Config):
    """The entries of `config.json`, whose defaults are M2M-100's."""

    d_model: Annotated[int, Meta(ge=4, le=10**5, multiple_of=2)]
    pad_token_id: hugging_face.Token = 1
    decoder_start_token_id: hugging_face.Token = 2
    eos_token_id: hugging_face.Token = 2
    activation_function: str = "relu"


class Named(msgspec.Struct):
    """A token with its settings."""

    content: str


class Options(msgspec.Struct):
    """The entries of `tokenizer_config.json` and `special_tokens_map.json` that kzoo reads."""

    added_tokens_decoder: dict[str, Named] | None = None
    additional_special_tokens: list[str | Named] | None = None
    extra_special_tokens: list[str | Named] | dict | None = None
    language_codes: str = "m2m100"
    legacy_behaviour: bool | None = None
    tokenizer_class: str | None = None


def read_m2m(folder: str | os.PathLike, name: str | None = None) -> Translator:
    """Convert the M2M-100, NLLB-200 or SMaLL-100 model of a repository to a translator.

    M2M-100 and NLLB-200 read a sentence after its language's token, and write its translation after that of
    the target language. SMaLL-100 reads the target language's token, and writes none.

    Args:
        folder: `config.json`, `sentencepiece.bpe.model`, the weights in `model.safetensors` or
            `pytorch_model.bin`, whole or in shards; `vocab.json` for M2M-100 and SMaLL-100,
            `special_tokens_map.json` or `tokenizer_config.json` with the languages for NLLB-200.
        name: not used.

    Raises:
        UserError: a file is missing, damaged, or of another architecture.

    Reference:
        Fan et al. 2021, "Beyond English-Centric Multilingual Machine Translation".
        https://jmlr.org/papers/v22/20-1307.html
        NLLB Team 2022, "No Language Left Behind". https://arxiv.org/abs/2207.04672
        Mohammadshahi et al. 2022, "SMaLL-100: Introducing Shallow Multilingual Machine Translation Model for
        Low-Resource Languages". https://aclanthology.org/2022.emnlp-main.571
    """
    folder = Path(folder)
    hugging_face.check_files(folder, (CONFIG_FILE, MODEL), "an M2M-100, NLLB-200 or SMaLL-100 model")
    config, settings = hugging_face.read_config(folder, Config, "M2M-100", NEEDED)
    half = config.d_model // 2
    wavelength = 10_000 ** (half / (half - 1))
    settings |= {
        "norm": "pre",
        # fairseq's positions of tokens follow that of padding.
        "position_options": {"first_position": config.pad_token_id + 1, "max_wavelength": wavelength},
    }
    search = hugging_face.search_settings(folder, config)
    proto = hugging_face.sentence_piece_model(folder / MODEL)
    small = _is_small(folder, config)
    if (folder / VOCABULARY).is_file():
        pieces, languages = _m2m_vocabulary(folder, config)
    else:
        pieces, languages = _nllb_vocabulary(folder, proto, config)
    pieces += [f"<unused {token}>" for token in range(len(pieces), config.vocab_size)]
    order, names = hugging_face.order(folder / MODEL, pieces, config)
    sides = {"source": "target" if small else "source", "target": None if small else "target"}
    tokenizers = [
        LanguageTokenizer(
            proto, [*SPECIAL.values(), *names], languages, named, config_file=f"{side}_tokenizer.json"
        )
        for side, named in sides.items()
    ]
    backbone = build(folder, config, settings, [order])
    return Translator(backbone, *tokenizers, search=search)


def _m2m_vocabulary(folder: Path, config: Config) -> tuple[list[str], dict[str, str]]:
    """Return the pieces in the order of their ids, and each language's token."""
    if (codes := _options(folder, TOKENIZER).language_codes) != "m2m100":
        raise UserError(f"{folder}: language_codes in {TOKENIZER} is {codes!r:.80}; kzoo knows m2m100's")
    path, most = folder / VOCABULARY, config.vocab_size - len(M2M_LANGUAGES)
    pieces = hugging_face.read_vocabulary(path, len(FAIRSEQ), most)
    languages = {code: f"__{code}__" for code in M2M_LANGUAGES}
    if twice := sorted(set(pieces) & {*languages.values()}):
        raise UserError(f"{path} has a piece {twice[0]}, which names a language")
    return [*pieces, *languages.values()], languages


def _nllb_vocabulary(folder: Path, proto: bytes, config: Config) -> tuple[list[str], dict[str, str]]:
    """Return the pieces in the order of their ids, and each language's token."""
    processor = SentencePieceProcessor(model_proto=proto)
    pieces = processor.id_to_piece(list(range(FIRST_PIECE, processor.vocab_size())))
    codes = _nllb_codes(folder)
    found = [*FAIRSEQ, *pieces, *codes, "<mask>"]
    if len(set(found)) < len(found):
        raise UserError(f"{folder}: {MODEL} has a piece that names a language or a special token")
    if len(found) > config.vocab_size:
        raise UserError(
            f"{folder}: {MODEL} and {len(codes)} languages need {len(found):,} tokens, but the model has "
            f"{config.vocab_size:,}"
        )
    for token, named in (_options(folder, TOKENIZER).added_tokens_decoder or {}).items():
        if named.content in found and token != str(found.index(named.content)):
            raise UserError(
                f"{folder}: {TOKENIZER} gives {named.content!r:.80} the id {token:.80}, not "
                f"{found.index(named.content)}, as NLLB-200's order does"
            )
    return found, dict(zip(codes, codes, strict=True))


def _nllb_codes(folder: Path) -> list[str]:
    """Return the languages' codes in the order of their tokens."""
    if _options(folder, TOKENIZER).legacy_behaviour:
        raise UserError(f"{folder}: {TOKENIZER} has legacy_behaviour, which puts the language at the end")
    for file in (TOKENS, TOKENIZER):
        options = _options(folder, file)
        for listed in (options.additional_special_tokens, options.extra_special_tokens):
            names = [token if isinstance(token, str) else token.content for token in listed or ()]
            codes = [code for code in names if code not in (*FAIRSEQ, "<mask>")]
            if f"__{M2M_LANGUAGES[0]}__" in codes:
                raise UserError(
                    f"{folder} has M2M-100's languages, but no {VOCABULARY}: {hugging_face.COPY_IT}"
                )
            if codes:
                return codes
    raise UserError(f"{folder}: neither {TOKENS} nor {TOKENIZER} lists the languages' codes")


def _is_small(folder: Path, config: Config) -> bool:
    """Return whether a model is SMaLL-100's, which brings a tokenizer of its own; its code is not read."""
    named = _options(folder, TOKENIZER).tokenizer_class == "SMALL100Tokenizer"
    if named or (folder / SMALL_100).is_file():
        return True
    if (folder / VOCABULARY).is_file() and (config.encoder_layers, config.decoder_layers) == SMALL_LAYERS:
        raise UserError(
            f"{folder} has the layers of SMaLL-100, but no {SMALL_100}, without which it is read as M2M-100: "
            f"{hugging_face.COPY_IT}"
        )
    return False


def _options(folder: Path, file: str) -> Options:
    path = folder / file
    return read_typed(path, Options) if path.is_file() else Options()
