"""The zoo's models: backbones assembled from layers, and the translator that adds tokenizers to them.

All modules are imported together, so that Keras knows every class that a saved model may name.
"""

from kzoo.models.attention_bridge import AttentionBridgeBackbone
from kzoo.models.losses import ConsistentCrossEntropy, LabelSmoothedCrossEntropy, SentenceCrossEntropy
from kzoo.models.multilingual import MultilingualTranslator
from kzoo.models.optimizers import SGD, Adam, NoamSchedule
from kzoo.models.recurrent import RecurrentBackbone
from kzoo.models.tagger import CharacterTagger
from kzoo.models.transformer import TransformerBackbone
from kzoo.models.translator import Translator
from kzoo.text import (  # noqa: F401, a translator is saved with its tokenizers
    CharacterTokenizer,
    MarianTokenizer,
    MosesSubwordTokenizer,
    SubwordTokenizer,
    TruecasedSubwordTokenizer,
)
from kzoo.text.texts import Hypothesis

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
