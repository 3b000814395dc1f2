"""Write the reference as Markdown, from the code: layers, presets, packages, commands, the recipe's keys.

Docstrings are Markdown already, but for their sections ("Args:", "Returns:"), which become bold lines and
lists, for examples (">>>"), which become code blocks with imports, and for names and addresses, which become
links.
"""

import ast
import base64
import builtins
import functools
import importlib
import inspect
import json
import re
import shutil
import types
import typing
from pathlib import Path

PACKAGES = (
    "data",
    "documents",
    "text",
    "models",
    "decoding",
    "evaluation",
    "export",
    "hub",
    "serve",
    "training",
)
SECTION = re.compile(r"([A-Z][A-Za-z ]+(?: \([a-z ]+\))?):$")
MODULES = {"keras": "keras", "kzoo": "kzoo", "np": "numpy as np", "uvicorn": "uvicorn"}  # of examples
ADDRESS = re.compile(r"https?://[^\s`]*[^\s`.,;)]")
NAME = re.compile(r"`((?:kzoo\.[a-z.]+)?[A-Za-z_]\w*)`")
ENTRY = re.compile(r"    (\*{0,2}\w[\w, .*]*?(?:\(\))?)(?: \([^)]*\))?: (.*)")


def write(folder: Path):
    """Write all pages into a folder; what was there is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, pages in {"layers": _layers(), "presets": _presets(), "packages": _packages()}.items():
        for page, text in pages.items():
            _write(folder / name / f"{page}.md", text)
    _write(folder / "cli.md", _command_line())
    _write(folder / "recipe.md", _recipe())
    text, pictures = _notebook(folder.parent / "first_translator.ipynb")
    _write(folder / "first_translator.md", text)
    for name, picture in pictures.items():
        (folder / name).write_bytes(picture)


def _write(path: Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@functools.cache
def _addresses() -> dict[str, str]:
    """Return what has a place in the reference: by its name, and by its full name, the full name."""
    from kzoo import layers

    places = {}
    for package in ("layers", *PACKAGES):
        name = f"kzoo.{package}"
        public = layers.__all__ if package == "layers" else _public(name)
        places |= {one: f"{name}.{one}" for one in public}
    return {**places, **{full: full for full in places.values()}}


def _public(package: str) -> list[str]:
    module = importlib.import_module(package)
    return [one for one in getattr(module, "__all__", None) or dir(module) if _has_page(getattr(module, one))]


def _layers() -> dict[str, str]:
    from kzoo import layers

    letters = "[Layers](index.md) explains the letters of shapes."
    pages = {name: f"# {name}\n\n{_described('kzoo.layers', name)}\n\n{letters}\n" for name in layers.__all__}
    return {**pages, "index": _index("Layers", layers.__doc__, {one: getattr(layers, one) for one in pages})}


def _presets() -> dict[str, str]:
    from kzoo import presets
    from kzoo.presets.assembly import transformer

    functions = ("load", "list_presets", "build", "builder")
    builders = [name for name in dir(presets) if _is_builder(getattr(presets, name))]
    pages = {name: f"# {name}\n\n{_described('kzoo.presets', name)}" for name in [*functions, *builders]}
    for name in builders:
        if getattr(presets, name).__module__ in ("kzoo.presets.pope", "kzoo.presets.image_text"):
            pages[name] += "\nIts arguments are those that [all Transformers share](index.md).\n"
    sizes = _markdown(inspect.getdoc(transformer))
    about = f"Functions that build untrained models. The Transformers' share these arguments:\n\n{sizes}"
    return {**pages, "index": _index("Presets", about, {one: getattr(presets, one) for one in pages})}


def _is_builder(found) -> bool:
    return (
        inspect.isfunction(found)
        and inspect.signature(found).return_annotation != inspect._empty
        and any("override" in name for name in inspect.signature(found).parameters)
    )


def _packages() -> dict[str, str]:
    pages = {}
    modules = {name: importlib.import_module(name) for name in (f"kzoo.{package}" for package in PACKAGES)}
    for name, module in modules.items():
        public = {one: getattr(module, one) for one in _public(name)}
        table = _table({f"{{py:obj}}`{one} <{name}.{one}>`": found for one, found in public.items()})
        parts = [_described(name, one) for one in public]
        pages[name] = "\n".join([f"# {name}\n", _markdown(inspect.getdoc(module), name), table, *parts])
    letters = "[Layers](../layers/index.md) explains the letters of shapes."
    about = f"Everything public beside layers and presets. {letters}"
    return {**pages, "index": _index("Packages", about, modules)}


def _has_page(found) -> bool:
    return (inspect.isclass(found) or inspect.isfunction(found)) and found.__module__.startswith("kzoo")


def _index(title: str, about: str, described: dict) -> str:
    table = _table({f"[{name}]({name}.md)": found for name, found in described.items()})
    pages = "\n".join(described)
    return (
        f"# {title}\n\n{_markdown(inspect.cleandoc(about))}{table}```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    )


def _table(described: dict) -> str:
    """Return a table of links, and the first paragraph of what each leads to."""
    rows = (f"| {link} | {_first_paragraph(found)} |\n" for link, found in described.items())
    return f"\n\n| | |\n| --- | --- |\n{''.join(rows)}\n"


def _first_paragraph(found) -> str:
    return _cell((inspect.getdoc(found) or "").split("\n\n")[0])


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
    body = _markdown(inspect.getdoc(found) or "", module)
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


def _markdown(text: str, package: str = "kzoo") -> str:
    """Return a docstring of something in a package, with its sections and examples as Markdown has them."""
    lines, section, entry = [], None, False
    for line in text.splitlines():
        if heading := SECTION.match(line):
            section, entry = heading[1], False
            lines += ["", f"**{section}**", ""]
        elif not section or not line.startswith("    "):
            if line and not line.startswith(">>>") and not _in_example(lines):
                section = None
            lines.append(line)
        elif section == "Reference":
            lines.append(f"  {line[4:]}" if entry else f"- {line[4:]}")
            entry = not ADDRESS.search(line)  # which ends it
        elif not section.startswith(("Returns", "Example")) and (found := ENTRY.match(line)):
            lines.append(f"- `{found[1]}`: {found[2]}")
            entry = True
        elif entry and line.startswith("        "):
            lines.append("  " + line[8:])
        else:
            lines.append(line[4:])
            entry = False
    return _fenced(lines, package)


def _in_example(lines: list[str]) -> bool:
    """Return whether the last lines are an example's, whose output has no indentation."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if line.startswith(">>>"):
            return True
    return False


def _fenced(lines: list[str], package: str) -> str:
    """Return lines with each example, from its ">>>" to the next empty line, as a code block."""
    text, example = [], False
    code = "\n".join(line.strip()[4:] for line in lines if line.strip().startswith((">>>", "...")))
    imports = [f">>> {line}" for line in _imports(code, package)]
    for line in [*lines, ""]:
        starts = line.lstrip().startswith(">>>")
        if starts and not example:
            text += ["", "```pycon", *imports]
            example, imports = True, []
        elif example and not line.strip():
            text.append("```")
            example = False
        text.append(line.strip() if example else line if line.startswith("    ") else _linked(line))
    return "\n".join(text)


def _imports(code: str, package: str) -> list[str]:
    """Return the imports of what an example of a package uses and does not define."""
    nodes = list(ast.walk(ast.parse(code)))
    defined = {one.asname or one.name for node in nodes if hasattr(node, "names") for one in node.names}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    defined |= {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(dir(builtins))
    used = sorted({node.id for node in names} - defined)
    lines = [f"import {MODULES[name]}" for name in used if name in MODULES]
    by_package = {}
    for name in used:
        if name not in MODULES:
            own = hasattr(importlib.import_module(package), name)
            by_package.setdefault(package if own else _addresses()[name].rpartition(".")[0], []).append(name)
    return [*lines, *(f"from {one} import {', '.join(names)}" for one, names in sorted(by_package.items()))]


def _linked(line: str) -> str:
    """Return a line with links for the addresses and for the classes and full names of the reference."""

    def link(name):
        place = _addresses().get(name[1]) if "." in name[1] or name[1][0].isupper() else None
        return f"{{py:obj}}`{name[1]} <{place}>`" if place else name[0]

    return NAME.sub(link, ADDRESS.sub(lambda address: f"<{address[0]}>", line))


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
    hints = typing.get_type_hints(inspect.unwrap(command.callback))
    usage = " ".join([name, *(_argument(one) for one in arguments), "[OPTIONS]"])
    lines = [f"## {name}\n", inspect.cleandoc(command.help or ""), "", f"    {usage}", ""]
    lines += ["| | |", "| --- | --- |"]
    lines += [f"| `{_argument(one)}` | {_cell(one.help)} |" for one in arguments]
    lines += [
        f"| {_option(one)} | {_cell(one.help)}{_choices(hints[one.name])}{_default(one)} |" for one in options
    ]
    return [*lines, ""]


def _argument(one) -> str:
    name = (one.metavar or one.name).strip("[]{}.").upper()
    name = f"{name} …" if one.nargs == -1 else name
    return name if one.required else f"[{name}]"


def _option(one) -> str:
    return ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])


def _choices(kind) -> str:
    """Return the values that an option may have, if they are few."""
    if typing.get_origin(kind) is typing.Literal:
        return f" One of {', '.join(f'`{value}`' for value in typing.get_args(kind))}."
    return "".join(map(_choices, typing.get_args(kind)))


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
        "| key | meaning | type | default |",
        "| --- | --- | --- | --- |",
    ]
    types = typing.get_type_hints(importlib.import_module("kzoo.training.recipe").Recipe, include_extras=True)
    for name, key in KEYS.items():
        required = key.default is dataclasses.MISSING and key.default_factory is dataclasses.MISSING
        made = key.default_factory() if key.default_factory is not dataclasses.MISSING else key.default
        default = "required" if required else "" if made in ("", None, [], {}) else f"`{json.dumps(made)}`"
        mark = " ↻" if key.metadata["may_differ"] else ""
        meaning = _cell(key.metadata["text"])
        lines.append(f"| `{name}`{mark} | {meaning} | {_type(types[name])} | {default} |")
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


def _notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook's text, code and what it printed; and the pictures that it drew, by name."""
    blocks, pictures = [], {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        code = cell["cell_type"] == "code"
        blocks.append(f"```python\n{text}\n```" if code else text.replace("](", "](../"))
        outputs = cell.get("outputs", [])
        printed = "".join("".join(output.get("text", "")) for output in outputs)
        if printed:
            blocks.append(f"```text\n{printed.rstrip()}\n```")
        for drawn in (output.get("data", {}).get("image/png") for output in outputs):
            if drawn:
                name = f"{path.stem}_{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(drawn)
                blocks.append(f"![What the code draws]({name})")
    return "\n\n".join(blocks) + "\n", pictures
