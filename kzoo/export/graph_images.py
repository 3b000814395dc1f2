"""Encoded pictures as parts of a TensorFlow graph, so that a SavedModel takes the bytes of image files."""


def decode_pictures(encoded, size: tuple[int, int]):
    """Return pictures as `kzoo.models.image_inputs.read_picture` reads them, float32 `(B, h, w, 3)`.

    The pixels of a PNG file of the model's own size are the same; scaling may differ by one in 255.
    TensorFlow does not read EXIF data: a photograph that its camera marks as turned stays as it is.

    Args:
        encoded: strings `(B,)`, each the bytes of a JPEG, PNG, GIF or BMP file.
        size: h and w, to which a picture is scaled.
    """
    import tensorflow as tf

    def decode(content):
        pixels = tf.cond(
            tf.io.is_jpeg(content),
            lambda: tf.io.decode_jpeg(content, channels=3, dct_method="INTEGER_ACCURATE"),  # as Pillow
            lambda: tf.io.decode_image(content, channels=3, expand_animations=False),
        )
        pixels.set_shape((None, None, 3))
        scaled = tf.image.resize(tf.cast(pixels, tf.float32), size, antialias=True)
        return tf.round(scaled)

    return tf.map_fn(decode, encoded, fn_output_signature=tf.TensorSpec((*size, 3), tf.float32))
