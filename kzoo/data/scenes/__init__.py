"""The built-in data set "Scenes": made-up picture captions, parallel in six languages.

`kzoo.data.corpora` reads its sentences; what draws pictures reads the scenes themselves. Nothing is
downloaded: a seeded grammar draws the scenes, one file a language puts them into words.
"""

from kzoo.data.scenes.sampling import SPLITS, scenes
from kzoo.data.scenes.scene import LANGUAGES, AmbiguousWord, Entity, Scene

__all__ = ["LANGUAGES", "SPLITS", "AmbiguousWord", "Entity", "Scene", "scenes"]
