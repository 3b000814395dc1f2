"""The zoo's models: backbones assembled from layers, and the translator that adds tokenizers to them.

Importing the package imports all modules, so Keras knows every class that a saved model may name.
"""

from kzoo.models.attention_bridge import AttentionBridgeBackbone as AttentionBridgeBackbone
from kzoo.models.losses import ConsistentCrossEntropy as ConsistentCrossEntropy
from kzoo.models.losses import LabelSmoothedCrossEntropy as LabelSmoothedCrossEntropy
from kzoo.models.losses import SentenceCrossEntropy as SentenceCrossEntropy
from kzoo.models.multilingual import MultilingualTranslator as MultilingualTranslator
from kzoo.models.optimizers import SGD as SGD
from kzoo.models.optimizers import Adagrad as Adagrad
from kzoo.models.optimizers import Adam as Adam
from kzoo.models.optimizers import NoamSchedule as NoamSchedule
from kzoo.models.recurrent import RecurrentBackbone as RecurrentBackbone
from kzoo.models.tagger import CharacterTagger as CharacterTagger
from kzoo.models.transformer import TransformerBackbone as TransformerBackbone
from kzoo.models.translator import Translator as Translator
from kzoo.text import characters, moses_tokenizer, tokenizers  # noqa: F401, in translators' files
from kzoo.text.hypotheses import Hypothesis as Hypothesis

__all__ = sorted(name for name, value in globals().items() if isinstance(value, type))
