"""The zoo's models: backbones assembled from layers, and the translator that puts text around them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "label_smoothed_cross_entropy": ["LabelSmoothedCrossEntropy"],
        "noam_schedule": ["NoamSchedule"],
        "transformer_backbone": ["TransformerBackbone"],
        "translator": ["Translator"],
    },
)
