"""The builders: called by name, and their arguments, phrases and sizes without importing Keras."""

import ast
import functools
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kzoo.errors import UserError, nearest
from kzoo.hub.location import BUILDERS
from kzoo.sizes import check_choice, check_dropout, check_heads, check_sizes

if TYPE_CHECKING:
    from kzoo.models import MultilingualTranslator, Translator

HERE = Path(__file__).parent
# What each module's builders call: the function that assembles the translator, and the backbone's class.
PARTS = {
    "attention_bridge": ("attention_bridge", "AttentionBridgeBackbone"),
    "glyph": ("recurrent", "RecurrentBackbone"),
    "image_text": ("transformer", "TransformerBackbone"),
    "pope": ("transformer", "TransformerBackbone"),
}
# The module with the builders of a trained translator, by its backbone's class; see `family`.
FAMILIES = {
    "AttentionBridgeBackbone": "attention_bridge",
    "RecurrentBackbone": "glyph",
    "TransformerBackbone": "pope",
}
# A Transformer's width and number of attention heads, by the size in its builder's name.
WIDTH_AND_HEADS = {"base": (512, 8), "big": (1024, 16), "small": (256, 4), "tiny": (128, 4)}
# The number of weights with the default vocabularies.
PARAMETERS = {
    "attention_bridge_bilingual": 49_642_026,
    "attention_bridge_bilingual_tiny": 10_789_162,
    "attention_bridge_m2m": 98_748_490,
    "attention_bridge_m2m_tiny": 21_509_962,
    "glyph_zh_en": 98_122_498,
    "glyph_zh_en_tiny": 20_491_650,
    "image_text_base": 65_554_432,
    "image_text_tiny": 2_712_944,
    "learned_base": 48_496_640,
    "learned_tiny": 2_415_104,
    "lookup_zh_en": 92_963_485,
    "lookup_zh_en_tiny": 15_727_773,
    "pope_base": 48_234_496,
    "pope_big": 184_549_376,
    "pope_small": 7_320_576,
    "pope_tiny": 2_349_568,
    "rope_base": 48_234_496,
    "rope_small": 7_320_576,
    "rope_tiny": 2_349_568,
    "sine_base": 48_234_496,
    "sine_big": 184_549_376,
    "sine_small": 7_320_576,
    "sine_tiny": 2_349_568,
    "text_only_base": 48_234_496,
    "text_only_tiny": 2_349_568,
}


def build(name: str, *tokenizers, **overrides) -> "Translator | MultilingualTranslator":
    """Return an untrained, compiled translator: the builder `name` called with the other arguments.

    Raises:
        UserError: there is no such builder, or it does not accept an argument.
    """
    build_preset = builder(name)
    try:
        return build_preset(*tokenizers, **overrides)
    except UserError as error:  # the message is clear without the arguments
        raise UserError(f"preset {name}: {error}") from None
    except (TypeError, ValueError) as error:
        raise UserError(f"preset {name} with {overrides}: {error}") from error


def builder(name: str) -> "Callable[..., Translator | MultilingualTranslator]":
    """Return the function that builds the preset `name`.

    Raises:
        UserError: there is no such builder.
    """
    if name not in BUILDERS:
        raise UserError(f"no preset {name!r} can be built; {nearest(name, list(BUILDERS))}")
    return getattr(importlib.import_module(f"kzoo.presets.{BUILDERS[name]}"), name)


def family(backbone: str, config: dict) -> str:
    """Return the module of `kzoo.presets` with the builders of a backbone, by its class and configuration."""
    return "image_text" if config.get("image_shape") else FAMILIES[backbone]


def phrase(builder: str) -> str:
    """Return what a builder builds: the first line of its docstring, without references."""
    line = ast.get_docstring(_definitions()[builder]).splitlines()[0]
    return re.sub(r" \([^)]*\)|`", "", line).rstrip(".")


def check_arguments(builder: str, overrides: Mapping[str, Any]):
    """Raise `UserError` for an argument that a builder and its backbone lack, or an impossible size."""
    assembling, backbone = PARTS[BUILDERS[builder]]
    names = (builder, assembling, backbone)
    known = list(dict.fromkeys(name for part in names for name in _optional(_definitions()[part])))
    for name in overrides:
        if name not in known:
            raise UserError(f"preset {builder}: there is no argument {name!r}; {nearest(name, known)}")
    kinds = {}
    for part in reversed(names):
        given = _definitions()[part].args
        kinds |= {
            arg.arg: ast.unparse(arg.annotation) for arg in given.args + given.kwonlyargs if arg.annotation
        }
    try:
        for name, value in overrides.items():
            kind, optional, _ = kinds.get(name, "").partition(" | None")
            if optional and value is None:
                continue
            if kind == "int" or (kind == "Sequence[int]" and isinstance(value, list)):
                check_sizes(name, value)
            elif kind.startswith("Literal["):
                check_choice(name, value, ast.literal_eval(kind.removeprefix("Literal")))
            elif name.endswith("dropout"):
                check_dropout(name, value)
        if backbone == "TransformerBackbone":
            if "position_encoding" in overrides:
                check_choice("position_encoding", overrides["position_encoding"], position_encodings())
            width, num_heads = WIDTH_AND_HEADS[builder.rpartition("_")[2]]
            rotary = overrides.get("position_encoding", builder.partition("_")[0]) == "rope"
            check_heads(overrides.get("width", width), overrides.get("num_heads", num_heads), rotary)
    except ValueError as error:
        raise UserError(f"preset {builder}: {error}") from None


def reads_glyphs(builder: str, overrides: dict) -> bool:
    """Return whether a builder's model reads the glyphs of its source."""
    by_default = "glyph" if builder.startswith("glyph_") else "lookup"
    return overrides.get("source_embedding", by_default) == "glyph"


def reads_pictures(builder: str, overrides: dict) -> bool:
    """Return whether a builder's model reads a picture beside its source."""
    return builder.startswith("image_text_") or "image_shape" in overrides


def position_encodings() -> list[str]:
    """Return the names of the position encodings, also of those that were added if the model is imported."""
    if transformer := sys.modules.get("kzoo.models.transformer"):
        return transformer.position_encodings()
    tree = ast.parse((HERE.parent / "models" / "transformer.py").read_text("utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    tables = [node.value for node in assigned if node.targets[0].id.endswith("_POSITIONS")]
    return list(dict.fromkeys([*(key.value for table in tables for key in table.keys), "none"]))


@functools.cache
def _definitions() -> dict[str, ast.FunctionDef]:
    """Return the builders and what they call, and the backbones' constructors by their class."""
    found = {}
    for module in {*BUILDERS.values(), "assembly"}:
        tree = ast.parse((HERE / f"{module}.py").read_text("utf-8"))
        found |= {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    backbones = {backbone for _, backbone in PARTS.values()}
    for path in (HERE.parent / "models").glob("*.py"):
        text = path.read_text("utf-8")
        if not any(f"class {backbone}(" in text for backbone in backbones):
            continue
        for kind in ast.parse(text).body:
            if isinstance(kind, ast.ClassDef) and kind.name in backbones:
                methods = {node.name: node for node in kind.body if isinstance(node, ast.FunctionDef)}
                found[kind.name] = methods["__init__"]
    return found


def _optional(function: ast.FunctionDef) -> list[str]:
    """Return the arguments of a function that have defaults."""
    given = function.args
    named = given.args[len(given.args) - len(given.defaults) :]
    named += [name for name, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default]
    return [name.arg for name in named]
