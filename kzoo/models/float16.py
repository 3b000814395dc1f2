"""Whether weights fit into float16, in which presets and some exports hold them."""

from collections.abc import Iterable

import keras
import numpy as np

from kzoo.errors import UserError

LARGEST = float(np.finfo("float16").max)


def check_float16(weights: Iterable[keras.Variable]):
    """Refuse float32 weights with a number that would become infinite in float16.

    Raises:
        UserError: names the first one.
    """
    for weight in weights:
        if weight.dtype != "float32":
            continue
        values = np.abs(keras.ops.convert_to_numpy(weight))
        largest = values.max(where=np.isfinite(values), initial=0)
        if largest > LARGEST:
            raise UserError(
                f"weight {weight.path} has a number of size {largest:,.0f}, but float16 ends at "
                f"{LARGEST:,.0f}: use an earlier checkpoint or retrain with a lower rate or a clip_norm; "
                'translator.save("FILE.keras") and exports in float32 keep it as it is'
            )
