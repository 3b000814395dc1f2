"""A small convolutional network for pictures, trained together with the model that uses it."""

import keras
from keras import ops

from kzoo.layers.layer import Layer
from kzoo.layers.normalization import MaskedBatchNormalization


@keras.saving.register_keras_serializable("kzoo")
class PictureEncoder(Layer):
    """Computes features of a picture's regions: 3×3 convolutions of stride 2, batch normalization, ReLU.

    Use it for synthetic pictures such as those of `kzoo.scenes`. For photographs, use the features of a
    network that was pretrained on many photographs.

    Batch normalization keeps the features of different pictures distinct. Early in training, pictures are
    noise to a translator; if few sentences need them, it learns to ignore them. With layer normalization or
    no normalization, all pictures ended up with the same features (standard deviation at most 0.007; with
    batch normalization 0.05 to 0.5).

    Args:
        channels: ints. Channels of each convolution; every convolution halves height and width.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        pictures: `(B, h, w, 3)`, from 0 to 255. With n convolutions, h and w must be multiples of 2^n.
        present: bool `(B,)`. `False` at rows that only pad the batch; the statistics ignore them.
        training: bool. Whether to normalize by the batch's statistics and update the stored ones.

    Returns:
        `(B, R, channels[-1])`: regions in row-major order, R = h·w / 4^n.

    Raises:
        ValueError: pictures of another rank, height or width, or without exactly three colours.

    Example:

    >>> PictureEncoder(channels=(16, 32, 64))(np.zeros((2, 64, 64, 3), "uint8")).shape
    (2, 64, 64)
    """

    def __init__(self, channels: tuple[int, ...] = (16, 32, 64, 128), **kwargs):
        super().__init__(**kwargs)
        self.channels = tuple(channels)

    def build(self, pictures_shape):
        self._regions(pictures_shape)
        self.convolutions, self.norms = [], []
        for number, channels in enumerate(self.channels, 1):
            convolution = keras.layers.Conv2D(
                channels,
                3,
                strides=2,
                padding="same",
                use_bias=False,  # the normalization has a bias
                data_format="channels_last",
                dtype=self.dtype_policy,
                name=f"convolution_{number}",
            )
            convolution.build(pictures_shape)
            pictures_shape = convolution.compute_output_shape(pictures_shape)
            norm = MaskedBatchNormalization(dtype=self.dtype_policy, name=f"norm_{number}")
            norm.build(pictures_shape)
            self.convolutions.append(convolution)
            self.norms.append(norm)

    def call(self, pictures, present=None, training: bool | None = None):
        x = ops.cast(pictures, self.compute_dtype) / 127.5 - 1
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = ops.relu(norm(convolution(x), present=present, training=training))
        return ops.reshape(x, (-1, self._regions(pictures.shape), self.channels[-1]))

    def _regions(self, pictures_shape) -> int:
        if len(pictures_shape) != 4 or None in pictures_shape[1:3] or pictures_shape[3] != 3:
            raise ValueError(
                f"pictures must be (B, h, w, 3) with known height and width, not {tuple(pictures_shape)}"
            )
        height, width = pictures_shape[1:3]
        step = 2 ** len(self.channels)
        if height % step or width % step:
            raise ValueError(f"pictures are {height}×{width}: both must be multiples of {step}")
        return (height // step) * (width // step)

    def compute_mask(self, pictures, mask=None):
        return None  # the mask does not fit the regions' axes

    def compute_output_shape(self, pictures_shape):
        return (pictures_shape[0], self._regions(pictures_shape), self.channels[-1])
