"""The zoo's models: backbones assembled from layers, and the translator that adds tokenizers to them.

All modules are imported together, so that Keras knows every class that a saved model may name.
"""

from kzoo.models.attention_bridge_backbone import AttentionBridgeBackbone
from kzoo.models.character_tagger import CharacterTagger
from kzoo.models.consistent_cross_entropy import ConsistentCrossEntropy
from kzoo.models.label_smoothed_cross_entropy import LabelSmoothedCrossEntropy
from kzoo.models.multilingual_translator import MultilingualTranslator
from kzoo.models.noam_schedule import NoamSchedule
from kzoo.models.optimizers import SGD, Adam
from kzoo.models.recurrent_backbone import RecurrentBackbone
from kzoo.models.sentence_cross_entropy import SentenceCrossEntropy
from kzoo.models.texts_and_tokens import Hypothesis
from kzoo.models.transformer_backbone import TransformerBackbone
from kzoo.models.translator import Translator
from kzoo.text import (  # noqa: F401, a translator is saved with its tokenizers
    CharacterTokenizer,
    MosesSubwordTokenizer,
    SubwordTokenizer,
    TruecasedSubwordTokenizer,
)

__all__ = [
    "SGD",
    "Adam",
    "AttentionBridgeBackbone",
    "CharacterTagger",
    "ConsistentCrossEntropy",
    "Hypothesis",
    "LabelSmoothedCrossEntropy",
    "MultilingualTranslator",
    "NoamSchedule",
    "RecurrentBackbone",
    "SentenceCrossEntropy",
    "TransformerBackbone",
    "Translator",
]
