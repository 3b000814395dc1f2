"""Write the reference as Markdown, from the code: layers, presets, packages, commands, the recipe's keys.

Docstrings are Markdown already, but for their sections ("Args:", "Returns:"), which become bold lines and
lists, and for examples (">>>"), which become code blocks.
"""

import importlib
import inspect
import json
import re
import shutil
import types
import typing
from pathlib import Path

PACKAGES = ("data", "text", "models", "decoding", "evaluation", "export", "hub", "serve", "training")
SECTION = re.compile(r"([A-Z][A-Za-z ]+):$")
ENTRY = re.compile(r"    (\*{0,2}\w[\w, .*]*?(?:\(\))?)(?: \([^)]*\))?: (.*)")


def write(folder: Path):
    """Write all pages into a folder; what was there is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, pages in {"layers": _layers(), "presets": _presets(), "packages": _packages()}.items():
        for page, text in pages.items():
            _write(folder / name / f"{page}.md", text)
    _write(folder / "cli.md", _command_line())
    _write(folder / "recipe.md", _recipe())
    _write(folder / "first_translator.md", _notebook(folder.parent / "first_translator.ipynb"))


def _write(path: Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _layers() -> dict[str, str]:
    from kzoo import layers

    pages = {name: f"# {name}\n\n{_described('kzoo.layers', name)}" for name in layers.__all__}
    return {**pages, "index": _index("Layers", layers.__doc__, pages)}


def _presets() -> dict[str, str]:
    from kzoo import presets
    from kzoo.presets.pope import transformer

    functions = ("load", "list_presets", "build", "builder")
    builders = [name for name in dir(presets) if _is_builder(getattr(presets, name))]
    pages = {name: f"# {name}\n\n{_described('kzoo.presets', name)}" for name in [*functions, *builders]}
    for name in builders:
        if getattr(presets, name).__module__ in ("kzoo.presets.pope", "kzoo.presets.image_text"):
            pages[name] += "\nIts arguments are those that [all Transformers share](index.md).\n"
    sizes = _markdown(inspect.getdoc(transformer))
    about = f"Functions that build untrained models. The Transformers' share these arguments:\n\n{sizes}"
    return {**pages, "index": _index("Presets", about, pages)}


def _is_builder(found) -> bool:
    return (
        inspect.isfunction(found)
        and inspect.signature(found).return_annotation != inspect._empty
        and any("override" in name for name in inspect.signature(found).parameters)
    )


def _packages() -> dict[str, str]:
    pages = {}
    for package in PACKAGES:
        name = f"kzoo.{package}"
        module = importlib.import_module(name)
        public = getattr(module, "__all__", None) or dir(module)
        parts = [_described(name, one) for one in public if _has_page(getattr(module, one))]
        pages[name] = "\n".join([f"# {name}\n", _markdown(inspect.getdoc(module)), "", *parts])
    return {**pages, "index": _index("Packages", "Everything public beside layers and presets.", pages)}


def _has_page(found) -> bool:
    return (inspect.isclass(found) or inspect.isfunction(found)) and found.__module__.startswith("kzoo")


def _index(title: str, about: str, pages: dict) -> str:
    names = "\n".join(pages)
    return (
        f"# {title}\n\n{_markdown(inspect.cleandoc(about))}\n\n```{{toctree}}\n:maxdepth: 1\n\n{names}\n```\n"
    )


def _described(module: str, name: str) -> str:
    """Return a class's or a function's signature and docstring, a class's public methods too."""
    found = getattr(importlib.import_module(module), name)
    lines = [_directive(found, name, module, "class" if inspect.isclass(found) else "function")]
    if inspect.isclass(found):
        for method, function in vars(found).items():
            own = inspect.isfunction(function) and not method.startswith("_")
            if own and function.__doc__ and method not in ("build", "call", "get_config"):
                lines.append(_directive(function, f"{name}.{method}", module, "method"))
    return "\n".join(lines)


def _directive(found, name: str, module: str, kind: str) -> str:
    signature = re.sub(r"\bkzoo(\.\w+)+\.(\w+)", r"\2", _signature(found, kind)).replace("\n", " ")
    body = _markdown(inspect.getdoc(found) or "")
    return f"::::{{py:{kind}}} {name}{signature}\n:module: {module}\n\n{body}\n::::\n"


def _signature(found, kind: str) -> str:
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return "()"
    parameters = [
        one.replace(annotation=one.empty, default=_shown(one.default))
        for one in signature.parameters.values()
        if not (kind == "method" and one.name in ("self", "cls"))
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


class _Shown:
    """A default value that is written briefly in a signature."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self):
        return self.text


def _shown(default):
    if default is inspect.Parameter.empty:
        return default
    text = repr(default)
    if text.startswith("<") or " object at " in text:
        return _Shown(getattr(default, "__name__", "…"))
    return _Shown(text)


def _markdown(text: str) -> str:
    """Return a docstring with its sections and examples as Markdown has them."""
    lines, section, entry = [], None, False
    for line in text.splitlines():
        if heading := SECTION.match(line):
            section, entry = heading[1], False
            lines += ["", f"**{section}**", ""]
        elif not section or not line.startswith("    "):
            if line and not line.startswith(">>>") and not _in_example(lines):
                section = None
            lines.append(line)
        elif section not in ("Returns", "Reference", "Example") and (found := ENTRY.match(line)):
            lines.append(f"- `{found[1]}`: {found[2]}")
            entry = True
        elif entry and line.startswith("        "):
            lines.append("  " + line[8:])
        else:
            lines.append(line[4:])
            entry = False
    return _fenced(lines)


def _in_example(lines: list[str]) -> bool:
    """Return whether the last lines are an example's, whose output has no indentation."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if line.startswith(">>>"):
            return True
    return False


def _fenced(lines: list[str]) -> str:
    """Return lines with each example, from its ">>>" to the next empty line, as a code block."""
    text, example = [], False
    for line in [*lines, ""]:
        starts = line.lstrip().startswith(">>>")
        if starts and not example:
            text += ["", "```pycon"]
            example = True
        elif example and not line.strip():
            text.append("```")
            example = False
        text.append(line.strip() if example else line)
    return "\n".join(text)


def _command_line() -> str:
    import typer

    from kzoo.cli import app

    lines = ["# The command line\n", "`kzoo COMMAND --help` shows the same.\n"]
    lines += _commands(typer.main.get_command(app), "kzoo")
    return "\n".join(lines)


def _commands(command, name: str) -> list[str]:
    inner = getattr(command, "commands", {})
    if inner:
        return [line for key in inner for line in _commands(inner[key], f"{name} {key}")]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.help]
    usage = " ".join([name, *(_argument(one) for one in arguments), "[OPTIONS]"])
    lines = [f"## {name}\n", inspect.cleandoc(command.help or ""), "", f"    {usage}", ""]
    lines += ["| | |", "| --- | --- |"]
    lines += [f"| `{_argument(one)}` | {_cell(one.help)} |" for one in arguments]
    lines += [f"| {_option(one)} | {_cell(one.help)}{_default(one)} |" for one in options]
    return [*lines, ""]


def _argument(one) -> str:
    name = (one.metavar or one.name).strip("[]{}.").upper()
    name = f"{name} …" if one.nargs == -1 else name
    return name if one.required else f"[{name}]"


def _option(one) -> str:
    return ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])


def _default(one) -> str:
    default = one.default
    if default in (None, False, "", ()) or callable(default) or one.secondary_opts:
        return ""
    return f" Default: `{getattr(default, 'value', default)}`."


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _recipe() -> str:
    import dataclasses

    from kzoo.training.recipe import KEYS

    lines = [
        "# A recipe's keys\n",
        "`kzoo train RECIPE KEY=VALUE` overrides any. A resumed run may change only those marked ↻.\n",
        "| key | type | default | meaning |",
        "| --- | --- | --- | --- |",
    ]
    types = typing.get_type_hints(importlib.import_module("kzoo.training.recipe").Recipe, include_extras=True)
    for name, key in KEYS.items():
        required = key.default is dataclasses.MISSING and key.default_factory is dataclasses.MISSING
        made = key.default_factory() if key.default_factory is not dataclasses.MISSING else key.default
        default = "required" if required else "" if made in ("", None, [], {}) else f"`{json.dumps(made)}`"
        mark = " ↻" if key.metadata["may_differ"] else ""
        meaning = _cell(key.metadata["text"])
        lines.append(f"| `{name}`{mark} | {_type(types[name])} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _type(kind) -> str:
    """Return a key's type in words: `whole number ≥ 1`."""
    words = {int: "whole number", float: "number", str: "text", bool: "true or false", dict: "table"}
    if typing.get_origin(kind) is typing.Annotated:
        inner, meta = typing.get_args(kind)[:2]
        most = None if meta.le == 10**9 else meta.le  # this limit is the counters'
        bounds = {"≥": meta.ge, ">": meta.gt, "<": meta.lt, "≤": most}
        return " ".join(
            [_type(inner), *(f"{sign} {bound}" for sign, bound in bounds.items() if bound is not None)]
        )
    if typing.get_origin(kind) is typing.Literal:
        return ", ".join(f"`{json.dumps(value)}`" for value in typing.get_args(kind))
    if typing.get_origin(kind) is list:
        return f"list of {_type(typing.get_args(kind)[0])}"
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(_type(one) for one in typing.get_args(kind) if one is not type(None))
    return words.get(kind, "any")


def _notebook(path: Path) -> str:
    """Return a notebook's text, its code, and what the code printed."""
    blocks = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        code = cell["cell_type"] == "code"
        blocks.append(f"```python\n{text}\n```" if code else text.replace("](", "](../"))
        printed = "".join("".join(output.get("text", "")) for output in cell.get("outputs", []))
        if printed:
            blocks.append(f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(blocks) + "\n"
