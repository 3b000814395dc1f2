"""A small convolutional network that reads pictures, trained together with what uses it."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("kzoo")
class PictureEncoder(keras.layers.Layer):
    """Pictures as features of their regions: 3×3 convolutions of stride 2, each with ReLU.

    For made-up pictures such as those of Scenes. Photographs want features of a network that was trained on
    many of them.

    Args:
        channels: ints. Of each convolution; every one halves height and width.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        pictures: `(B, h, w, 3)`, from 0 to 255. Height and width are multiples of 2 to the number of
            convolutions.

    Returns:
        `(B, R, channels[-1])`: regions row by row, R = h·w / 4 to the number of convolutions.

    Raises:
        ValueError: pictures of another height or width.

    Example:

    >>> PictureEncoder(channels=(16, 32, 64))(np.zeros((2, 64, 64, 3), "uint8")).shape
    (2, 64, 64)
    """

    def __init__(self, channels: tuple[int, ...] = (32, 64, 128), **kwargs):
        super().__init__(**kwargs)
        self.channels = tuple(channels)

    def build(self, pictures_shape):
        self._regions(pictures_shape)
        self.convolutions = []
        for number, channels in enumerate(self.channels, 1):
            convolution = keras.layers.Conv2D(
                channels,
                3,
                strides=2,
                padding="same",
                activation="relu",
                data_format="channels_last",
                dtype=self.dtype_policy,
                name=f"convolution_{number}",
            )
            convolution.build(pictures_shape)
            pictures_shape = convolution.compute_output_shape(pictures_shape)
            self.convolutions.append(convolution)

    def call(self, pictures):
        x = ops.cast(pictures, self.compute_dtype) / 127.5 - 1
        for convolution in self.convolutions:
            x = convolution(x)
        return ops.reshape(x, (-1, self._regions(pictures.shape), self.channels[-1]))

    def _regions(self, pictures_shape) -> int:
        height, width = pictures_shape[1:3]
        step = 2 ** len(self.channels)
        if height % step or width % step:
            raise ValueError(f"pictures are {height}×{width}: both must be multiples of {step}")
        return (height // step) * (width // step)

    def compute_output_shape(self, pictures_shape):
        return (pictures_shape[0], self._regions(pictures_shape), self.channels[-1])

    def get_config(self):
        return {**super().get_config(), "channels": self.channels}
