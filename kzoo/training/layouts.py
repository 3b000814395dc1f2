"""How `model_parallel` splits each family's weights among devices."""

import keras

from kzoo.errors import UserError

# Axes of the weights whose paths match: `MODEL` is the axis that is split; all others are whole on every
# device. A projection to an inner width is split by its outputs and the projection back by its inputs, so
# that the activations between them stay split (Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053,
# Section 3). Vocabularies have any size: their tables and output projections are split along the model's
# width. So are recurrent kernels, whose outputs are several gates side by side.
MODEL = "model"
BY_OUTPUTS, BY_INPUTS = (None, MODEL), (MODEL, None)
LAYOUTS = {
    # All families.
    r"(.*_)?embedding/(embeddings|table)": BY_OUTPUTS,
    # Transformer, with or without images; also as the bridge's encoder.
    r".*attention/(query/|key_value/)?kernel": BY_OUTPUTS,
    r".*attention/(query/|key_value/)?bias": (MODEL,),
    r".*attention/output/kernel": BY_INPUTS,
    r".*feedforward/inner/kernel": BY_OUTPUTS,
    r".*feedforward/inner/bias": (MODEL,),
    r".*feedforward/outer/kernel": BY_INPUTS,
    # Glyphs.
    r".*glyph_encoder/features/kernel": BY_OUTPUTS,
    r".*glyph_encoder/output/kernel": BY_INPUTS,
    # Recurrent encoders and decoders.
    r".*(lstm_cell|gru_cell|cell_\d+)/(recurrent_)?kernel": BY_INPUTS,
    r"decoder(_\d+)?/(keys|combine)/kernel": BY_OUTPUTS,
    r"initial_[hc]_\d+/kernel": BY_OUTPUTS,
    r"(outputs_by_language/)?output(_\d+)?/kernel": BY_INPUTS,
    # The attention bridge, and its convolutional encoder.
    r"bridge/hidden/kernel": BY_OUTPUTS,
    r"bridge/heads/kernel": BY_INPUTS,
    r"encoders/encoder_\d+/enter/kernel": BY_OUTPUTS,
    r"encoders/encoder_\d+/convolution_\d+/kernel": (None, None, MODEL),
}


def model_parallel(devices: list[str]) -> "SplitModel":
    """Return the distribution in which each of the devices holds its part of the big weights."""
    mesh = keras.distribution.DeviceMesh((1, len(devices)), ("batch", MODEL), devices)
    layouts = keras.distribution.LayoutMap(mesh)
    for pattern, axes in LAYOUTS.items():
        layouts[pattern] = axes
    return SplitModel(layout_map=layouts, batch_dim_name="batch", auto_shard_dataset=False)


class SplitModel(keras.distribution.ModelParallel):
    """`ModelParallel` whose error names the weight that cannot be divided among the devices."""

    def get_variable_layout(self, variable):
        layout = super().get_variable_layout(variable)
        devices = self.device_mesh.shape[-1]
        for size, axis in zip(variable.shape, layout.axes, strict=True):
            if axis == MODEL and size % devices:
                raise UserError(
                    f"model_parallel cannot split {variable.path} {tuple(variable.shape)} over {devices} "
                    f"devices: {size} is not divisible by {devices}; use data_parallel, or other widths"
                )
        return layout
