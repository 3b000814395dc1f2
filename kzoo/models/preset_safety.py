"""Checks of a preset's JSON: it may name the zoo's classes and their settings, but no code and no paths.

Keras's safe mode refuses pickled functions, but imports what a configuration names. Here the names are
checked first, so that a preset from elsewhere is refused before anything that it names is looked up.
"""

from pathlib import Path

import keras

import kzoo.layers
import kzoo.models
import kzoo.text
from kzoo.errors import UserError

IDENTITY = ("module", "class_name", "registered_name")  # how Keras finds a class
PACKAGES = ("kzoo", "keras_hub")
DATA_TYPE = ("keras", "DTypePolicy", None)  # the only class of Keras itself in presets


def check_object(configuration: dict, path: Path):
    """Refuse the configuration of an object whose class is not the zoo's, and what `check_settings` refuses.

    Args:
        configuration: the contents of a preset's JSON file.
        path: the file, for the error message.

    Raises:
        UserError: it names no class, or anywhere a class that is not the zoo's; nothing is imported or built.
    """
    _check_class(*(configuration.get(key) for key in IDENTITY), path)
    check_settings(configuration, path)


def check_settings(configuration: dict, path: Path):
    """Refuse settings that name a class that is not the zoo's, or a path.

    Args:
        configuration: the contents of a preset's JSON file.
        path: the file, for the error message.

    Raises:
        UserError: the settings name one; nothing is imported or built.
    """
    waiting = [configuration]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if any(key in part for key in IDENTITY):
                _check_class(*(part.get(key) for key in IDENTITY), path)
            waiting.extend(value for key, value in part.items() if key not in IDENTITY)
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, str) and ("/" in part or "\\" in part or part == ".."):
            raise UserError(f"{path} names the path {part!r:.80}: a preset has its files in its own folder")


def _check_class(module, class_name, registered_name, path: Path):
    if (module, class_name, registered_name) == DATA_TYPE:
        return
    named = registered_name if isinstance(registered_name, str) else ""
    package, separator, _ = named.partition(">")
    home = module.split(".")[0] if isinstance(module, str) else None
    if not separator or package not in PACKAGES or home != package:
        named = f"{module}.{class_name}"
        raise UserError(
            f"{path} names the class {named:.80} ({registered_name!r:.80}): a preset may only name "
            f"classes of {' and '.join(PACKAGES)}; it was not loaded"
        )
    if keras.saving.get_registered_object(named) is None:
        _import_all()
    if keras.saving.get_registered_object(named) is None:
        raise UserError(f"{path} names the class {named!r:.80}, which this kzoo does not know: update kzoo")


def _import_all():
    """Import all classes that presets name, which packages otherwise import on first use."""
    for package in (kzoo.layers, kzoo.models, kzoo.text):
        for name in package.__all__:
            getattr(package, name)
