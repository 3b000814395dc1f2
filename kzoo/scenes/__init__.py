"""The built-in data set "Scenes": synthetic picture captions, parallel in six languages.

`kzoo.data.corpora` reads its sentences; `picture.py` draws the scenes themselves. Nothing is downloaded: a
seeded grammar samples the scenes, and one file per language puts them into words.
"""

from kzoo.scenes.sampling import SPLITS, scenes
from kzoo.scenes.scene import LANGUAGES, AmbiguousWord, Entity, Scene

__all__ = ["LANGUAGES", "SPLITS", "AmbiguousWord", "Entity", "Scene", "scenes"]
