"""Lists what is public: names and signatures, commands, recipe keys, routes, presets, registered names.

Accept a change with `python tests/public_names.py > tests/public_names.txt`.
"""

import dataclasses
import inspect
import re

import click
import keras
import typer

import kzoo
from kzoo.cli import app
from kzoo.presets.shelf import BUILDERS
from kzoo.serve import Served
from kzoo.serve.app import operation_routes
from kzoo.serve.page import page_routes
from kzoo.serve.rest import model_routes
from kzoo.training.recipe import Recipe

PACKAGES = ("layers", "models", "presets", "text", "data", "decoding", "evaluation", "training", "hub")
LAZY = ("documents", "export", "serve")  # not imported by `import kzoo`


def listing() -> list[str]:
    """Return one line for each public thing, sorted within its kind."""
    return [*names(), *commands(), *recipe_keys(), *routes(), *presets(), *registered()]


def names() -> list[str]:
    """Return every name that a package exports, with signatures, also of classes' public methods."""
    lines = []
    for package in (*PACKAGES, *LAZY):
        module = getattr(kzoo, package, None) or __import__(f"kzoo.{package}", fromlist=["*"])
        for name in sorted(module.__all__):
            value = getattr(module, name)
            lines.append(f"name kzoo.{package}.{name}{_signature(value)}")
            if inspect.isclass(value):
                lines += [
                    f"name kzoo.{package}.{name}.{method}{_signature(function)}"
                    for method, function in sorted(vars(value).items())
                    if not method.startswith("_") and inspect.isfunction(function)
                ]
    return lines


def _signature(value) -> str:
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return ""
    parameters = inspect.signature(value).parameters.values()
    if inspect.isclass(value) and issubclass(value, keras.layers.Layer):  # 3.11.2 reads Keras's __new__
        parameters = [*inspect.signature(value.__init__).parameters.values()][1:]
    text = ", ".join(str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in parameters)
    return f"({re.sub(' at 0x[0-9a-f]+', '', text)})"


def commands() -> list[str]:
    """Return every command with its arguments and options."""
    return sorted(_commands(typer.main.get_command(app), "kzoo"))


def _commands(command: click.Command, path: str):
    for parameter in command.params:
        if parameter.name != "help":
            yield f"command {path}: {'/'.join(parameter.opts)} = {_default(parameter)}"
    for name, inner in getattr(command, "commands", {}).items():
        yield f"command {path} {name}"
        yield from _commands(inner, f"{path} {name}")


def _default(parameter: click.Parameter):
    return "required" if parameter.required else parameter.default


def recipe_keys() -> list[str]:
    """Return a recipe's keys, with type and default."""
    return sorted(
        f"recipe {field.name}: {_type(field.type)} = {_field_default(field)}"
        for field in dataclasses.fields(Recipe)
    )


def _type(annotation) -> str:
    if isinstance(annotation, type):
        return annotation.__name__
    return re.sub(r"typing\.|msgspec\.", "", str(annotation))


def _field_default(field: dataclasses.Field):
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return "required" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())


def routes() -> list[str]:
    """Return the server's routes, with their methods."""
    small = kzoo.presets.pope_tiny(source_vocabulary_size=8, num_layers=1, width=8, num_heads=1)
    return sorted(
        f"route {' '.join(sorted(route.methods))} {route.path}"
        for make in (page_routes, model_routes, operation_routes)
        for route in make([Served(small, "small")])
    )


def presets() -> list[str]:
    """Return the builders of `kzoo.presets`."""
    return sorted(f"preset {name}" for name in BUILDERS)


def registered() -> list[str]:
    """Return the names under which Keras saves and loads the zoo's classes."""
    return sorted(
        f"registered {name}"
        for name, value in keras.saving.get_custom_objects().items()
        if value.__module__.startswith("kzoo.")
    )


if __name__ == "__main__":
    print("\n".join(listing()))
