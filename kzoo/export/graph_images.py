"""Decodes pictures in a TensorFlow graph, so that a SavedModel takes the bytes of image files."""

import tensorflow as tf

ORIENTATION = 0x0112  # EXIF's tag
# The tag's values by what they require: first rows and columns are exchanged, then the rows, the columns or
# both are reversed.
TRANSPOSED, ROWS_REVERSED, COLUMNS_REVERSED = (5, 6, 7, 8), (3, 4, 7, 8), (2, 3, 6, 7)


def decode_pictures(encoded, size: tuple[int, int]):
    """Return pictures like `kzoo.models.images.read_picture`, float32 `(B, h, w, 3)`.

    Scaled pixels may differ from its by one in 255. JPEG and PNG files are turned as their EXIF data says.

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
    # Without the mark, this is the beginning of the file, which is no EXIF data.
    data = tf.strings.substr(tf.strings.split(content, mark, maxsplit=1)[-1], 0, 65536)
    little = tf.equal(tf.strings.substr(data, 0, 4), b"II*\0")
    valid = little | tf.equal(tf.strings.substr(data, 0, 4), b"MM\0*")
    octets = tf.cast(tf.io.decode_raw(data, tf.uint8), tf.int64)
    octets = tf.pad(octets, [[0, 10]])  # so that indices into short files are valid

    def number(octets, place, size: int):
        """Return numbers `(…)` of `size` octets of the last axis, from a place on, in the file's order."""
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
