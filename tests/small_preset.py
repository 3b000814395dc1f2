"""The small files of a preset, without weights: for what reads those alone."""

import json
from pathlib import Path

from kzoo.hub import Preset, seal


def small_preset(folder, metadata=None, settings=None, search=None, **notes) -> Preset:
    """Write a preset that CTranslate2 does not hold; `notes` are the contents of its other JSON files."""
    files = {
        "metadata": metadata or {},
        "config": {"class_name": "RecurrentBackbone", "config": {}},
        "translator": {
            "class": "Translator",
            "tokenizers": [],
            "source_language": "en",
            "target_language": "de",
            **(settings or {}),
        },
        "search": search or {"beam_size": 5, "length_penalty": 1.0},
        **notes,
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (Path(folder) / f"{name}.json").write_text(json.dumps(content))
    seal(folder)
    return Preset(Path(folder))
