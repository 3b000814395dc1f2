"""The zoo's models: backbones assembled from layers, and the translator that puts text around them.

Imported whole, so that Keras knows every class that a saved model may name.
"""

from kzoo.models.label_smoothed_cross_entropy import LabelSmoothedCrossEntropy
from kzoo.models.noam_schedule import NoamSchedule
from kzoo.models.transformer_backbone import TransformerBackbone
from kzoo.models.translator import Hypothesis, Translator

__all__ = [
    "Hypothesis",
    "LabelSmoothedCrossEntropy",
    "NoamSchedule",
    "TransformerBackbone",
    "Translator",
]
