"""Tokenizers and image decoders inside a TensorFlow graph.

They let a SavedModel take and return text, and take the bytes of image files.
"""

import hashlib

import tensorflow as tf
import tensorflow_text

from kzoo.errors import UserError
from kzoo.text import CharacterTokenizer, LanguageTokenizer, MarianTokenizer, SubwordTokenizer
from kzoo.text.pieces import SPACE
from kzoo.text.preparation import REMOVED
from kzoo.text.vocabulary import SPECIAL, UNKNOWN

# The characters that end a line for `str.splitlines`.
LINE_ENDS = "[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+"

SPACES = r"[\s\x1f\p{Z}]"  # for `str.strip`, beside the line ends

ORIENTATION = 0x0112  # EXIF's tag
# The tag's values by the operations that they require: transpose; then reverse the rows, the columns or both.
TRANSPOSED, ROWS_REVERSED, COLUMNS_REVERSED = (5, 6, 7, 8), (3, 4, 7, 8), (2, 3, 6, 7)


class GraphSubwords(tf.Module):
    """SentencePiece."""

    def __init__(self, tokenizer: SubwordTokenizer):
        super().__init__()
        self.pieces = sentence_piece(tokenizer.proto)

    def tokenize(self, text):
        """Return the token ids `(B, None)` of texts `(B,)`, ragged."""
        return self.pieces.tokenize(lines(text))

    def detokenize(self, tokens):
        """Return the texts `(B,)` of ragged token ids."""
        return self.pieces.detokenize(tokens)


def sentence_piece(proto: bytes, **options) -> tensorflow_text.SentencepieceTokenizer:
    """Return SentencePiece for a graph, with a unique name.

    In a loaded SavedModel, all SentencePiece models with the same name would become the first one.
    """
    name = f"sentencepiece_{hashlib.sha256(proto).hexdigest()[:16]}"
    return tensorflow_text.SentencepieceTokenizer(proto, name=name, **options)


class GraphCharacters(tf.Module):
    """A table of characters."""

    def __init__(self, tokenizer: CharacterTokenizer):
        super().__init__()
        vocabulary = tokenizer.get_vocabulary()
        self.numbers = table(vocabulary, UNKNOWN)
        self.shown = tf.constant(tokenizer.detokenize([[i] for i in range(len(vocabulary))]))

    def tokenize(self, text):
        """Return the character ids `(B, None)` of texts `(B,)`, ragged."""
        text = tf.strings.regex_replace(lines(text), f"^{SPACES}+$", "")
        characters = tf.strings.unicode_split(text, "UTF-8")
        return tf.ragged.map_flat_values(self.numbers.lookup, characters)

    def detokenize(self, tokens):
        """Return the texts `(B,)` of ragged character ids."""
        return tf.strings.reduce_join(tf.gather(self.shown, tokens), axis=-1)


class GraphMarian(tf.Module):
    """SentencePiece and a vocabulary of its pieces, as in Marian's models."""

    def __init__(self, tokenizer: MarianTokenizer):
        super().__init__()
        if tokenizer.normalize_punctuation:
            raise UserError(
                "a SavedModel cannot normalize punctuation: set normalize_punctuation to None first"
            )
        vocabulary = tokenizer.get_vocabulary()
        self.code = f">>{tokenizer.language}<<" if tokenizer.language else ""  # for texts without one
        self.pieces = sentence_piece(tokenizer.proto, out_type=tf.string)
        self.numbers = table(vocabulary, UNKNOWN)
        self.shown = tf.constant([""] * len(SPECIAL) + vocabulary[len(SPECIAL) :])

    def tokenize(self, text):
        """Return the token ids `(B, None)` of texts `(B,)`, ragged."""
        text = lines(text)
        code = tf.strings.regex_replace(text, "^(>>.*?<<).*$|^.*$", r"\1")
        rest = tf.strings.regex_replace(text, "^>>.*?<<", "")
        pieces = self.pieces.tokenize(rest)
        code = tf.where(code == "", self.code, code)
        code = tf.where(pieces.row_lengths() > 0, code, "")
        codes = tf.ragged.boolean_mask(code[:, None], (code != "")[:, None])
        pieces = tf.concat([codes, pieces], axis=1)
        return tf.ragged.map_flat_values(self.numbers.lookup, pieces)

    def detokenize(self, tokens):
        """Return the texts `(B,)` of ragged token ids."""
        joined = self.pieces.detokenize(tf.gather(self.shown, tokens))
        return tf.strings.strip(tf.strings.regex_replace(joined, SPACE, " "))


class GraphLanguagePieces(GraphMarian):
    """The same in models whose vocabulary names languages. The languages' tokens are not put before texts."""

    def __init__(self, tokenizer: LanguageTokenizer):
        super().__init__(tokenizer)
        unseen = {*SPECIAL, *tokenizer.silent}
        shown = ["" if i in unseen else piece for i, piece in enumerate(tokenizer.get_vocabulary())]
        self.shown = tf.constant(shown)

    def tokenize(self, text):
        """Return the token ids `(B, None)` of texts `(B,)`, ragged."""
        return tf.ragged.map_flat_values(self.numbers.lookup, self.pieces.tokenize(lines(text)))


class GraphLanguages(tf.Module):
    """A table of languages."""

    def __init__(self, codes: list[str]):
        super().__init__()
        self.codes = codes
        self.table = table(codes, -1)

    def numbers(self, names):
        """Return the numbers `(B,)` of language codes `(B,)`; unknown codes are errors."""
        found = self.table.lookup(names)
        known = f"unknown language; this model knows {', '.join(self.codes)}"
        with tf.control_dependencies([tf.debugging.assert_non_negative(found, message=known)]):
            return tf.identity(found)


GRAPH_TOKENIZERS = {
    SubwordTokenizer: GraphSubwords,
    MarianTokenizer: GraphMarian,
    LanguageTokenizer: GraphLanguagePieces,
    CharacterTokenizer: GraphCharacters,
}


def graph_tokenizer(tokenizer) -> tf.Module:
    """Return a tokenizer for the graph, with `tokenize` and `detokenize`.

    Args:
        tokenizer: `SubwordTokenizer`, `MarianTokenizer`, `LanguageTokenizer` or `CharacterTokenizer`.

    Raises:
        UserError: another kind of tokenizer, such as one that runs Moses's rules in Python.
    """
    if type(tokenizer) not in GRAPH_TOKENIZERS:
        raise UserError(
            f"a {type(tokenizer).__name__} cannot be put into a SavedModel: only "
            f"{' and '.join(kind.__name__ for kind in GRAPH_TOKENIZERS)} run in TensorFlow's graph"
        )
    return GRAPH_TOKENIZERS[type(tokenizer)](tokenizer)


def lines(text):
    """Return texts `(B,)` in valid UTF-8, prepared like `kzoo.text.preparation.prepare`."""
    # SentencePiece would read invalid bytes as pieces other than U+FFFD.
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    without = tf.strings.regex_replace(text, f"^{LINE_ENDS}|{LINE_ENDS}$", "")
    text = tf.strings.regex_replace(without, LINE_ENDS, " ")
    for pattern, replacement in REMOVED:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text


def table(keys: list[str], unknown: int) -> tf.lookup.StaticHashTable:
    """Return a table from keys to their numbers; other keys have the number `unknown`."""
    pairs = tf.lookup.KeyValueTensorInitializer(keys, tf.range(len(keys), dtype=tf.int32))
    return tf.lookup.StaticHashTable(pairs, default_value=unknown)


def decode_pictures(encoded, size: tuple[int, int]):
    """Return pictures like `kzoo.images.read_picture`, float32 `(B, h, w, 3)`.

    Scaled pixels may differ by 1 of 255. JPEG and PNG files are rotated according to their EXIF data.

    Args:
        encoded: strings `(B,)`, each the bytes of a JPEG, PNG, GIF or BMP file.
        size: h and w; pictures are scaled to it.
    """

    def jpeg(content):
        pixels = tf.io.decode_jpeg(content, channels=3, dct_method="INTEGER_ACCURATE")  # as in Pillow
        return turned(pixels, orientation(content, b"Exif\0\0"))

    def other(content):
        pixels = tf.io.decode_image(content, channels=3, expand_animations=False)
        return turned(tf.ensure_shape(pixels, (None, None, 3)), orientation(content, b"eXIf"))

    def decode(content):
        pixels = tf.cond(tf.io.is_jpeg(content), lambda: jpeg(content), lambda: other(content))
        scaled = tf.image.resize(tf.cast(pixels, tf.float32), size, antialias=True)
        return tf.round(scaled)

    return tf.map_fn(decode, encoded, fn_output_signature=tf.TensorSpec((*size, 3), tf.float32))


def orientation(content, mark: bytes):
    """Return the EXIF orientation of an image file, int32, 1 to 8; 1 (upright) if it has none.

    Args:
        content: string, the bytes of the file.
        mark: the bytes before EXIF data in files of this kind.

    Reference:
        CIPA DC-008, "Exchangeable image file format for digital still cameras: Exif", Section 4.6.
    """
    # Without the mark, this is the beginning of the file, which is not EXIF data.
    data = tf.strings.substr(tf.strings.split(content, mark, maxsplit=1)[-1], 0, 65536)
    little = tf.equal(tf.strings.substr(data, 0, 4), b"II*\0")
    valid = little | tf.equal(tf.strings.substr(data, 0, 4), b"MM\0*")
    octets = tf.cast(tf.io.decode_raw(data, tf.uint8), tf.int64)
    octets = tf.pad(octets, [[0, 10]])  # so that indices into short files are valid

    def number(octets, place, size: int):
        """Return numbers `(…)` from `size` octets of the last axis, from `place` on, in the file's order."""
        digits = octets[..., place : place + size]
        weights = tf.constant([256**i for i in range(size)], tf.int64)
        return tf.reduce_sum(tf.where(little, digits, digits[..., ::-1]) * weights, axis=-1)

    # The first directory: its number of entries, then 12 octets each: tag, type, count and value.
    first = tf.minimum(number(octets, 4, 4), tf.size(octets, tf.int64) - 2)
    entries = octets[first + 2 :][: 12 * number(octets, first, 2)]
    entries = tf.reshape(entries[: tf.size(entries) // 12 * 12], (-1, 12))
    found = number(entries[number(entries, 0, 2) == ORIENTATION], 8, 2)
    value = tf.concat([found, [1]], axis=0)[0]
    return tf.where(valid & (value >= 1) & (value <= 8), tf.cast(value, tf.int32), 1)


def turned(pixels, orientation):
    """Return pixels `(h, w, 3)` upright, like `PIL.ImageOps.exif_transpose`."""

    def one_of(values):
        return tf.reduce_any(tf.equal(orientation, values))

    pixels = tf.cond(one_of(TRANSPOSED), lambda: tf.transpose(pixels, (1, 0, 2)), lambda: pixels)
    pixels = tf.cond(one_of(ROWS_REVERSED), lambda: pixels[::-1], lambda: pixels)
    return tf.cond(one_of(COLUMNS_REVERSED), lambda: pixels[:, ::-1], lambda: pixels)
