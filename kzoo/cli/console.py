"""Shared by commands: opening a preset, reading a glossary, starting Keras quietly, progress bars, a line
when stopped, commands to copy.
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from kzoo.cli.compiled_programs import keep_compiled_programs
from kzoo.decoding.search_settings import SearchSettings
from kzoo.engine import Device, Engine
from kzoo.errors import UserError, first_line
from kzoo.hub.preset import Preset
from kzoo.presets import shelf


def chosen_search(preset: Preset, beam_size, length_penalty, gnmt, max_length, **others) -> SearchSettings:
    """Return a preset's search settings, changed by a command's options; `None` keeps a setting."""
    given = {"beam_size": beam_size, "length_penalty": length_penalty, "gnmt": gnmt, "max_length": max_length}
    return preset.search.changed(**given, **others)


def open_translator(
    preset: Preset,
    search: SearchSettings,
    engine: Engine = "keras",
    compute_type: str = "float32",
    device: Device = "auto",
    needs: dict[str, object] | None = None,
    loaded_models=None,
):
    """Return a preset's translator, which runs on CTranslate2 or on Keras. Keras is imported only if used.

    `needs`: as in `chosen_engine`; `loaded_models`: as of a `CTranslate2Translator`.

    Raises:
        UserError: as `chosen_engine`; Keras is chosen, but a compute type or device of CTranslate2's is
            requested.
    """
    from kzoo.engine.choice import chosen_engine

    if chosen_engine(engine, preset, search, needs) == "ctranslate2":
        from kzoo.engine.translator import CTranslate2Translator

        translator = CTranslate2Translator(preset, compute_type, device=device, loaded_models=loaded_models)
    else:
        if compute_type != "float32":
            raise UserError(
                f"--compute-type {compute_type} is for CTranslate2 only, but this runs on Keras: "
                "leave --compute-type out"
            )
        if device != "auto":
            raise UserError(
                f"--device {device} is for CTranslate2 only, but this runs on Keras: leave --device out; "
                "CUDA_VISIBLE_DEVICES=-1 hides GPUs from Keras"
            )
        start_backend()
        translator = shelf.load(preset)
    translator.search = search
    return translator


def read_terms(path: Path) -> dict[str, str]:
    """Return the terms of a glossary in a file, with their translations.

    Raises:
        UserError: the file cannot be read, has another line or no term, or two translations of a term.
    """
    from kzoo.data.text_files import read_lines
    from kzoo.text.glossary import folded

    if path.is_dir():  # also "", which is the current folder
        raise UserError(f"--terms takes a file, but {path} is a folder")
    terms = {}
    for number, line in enumerate(read_lines(path).sentences, 1):
        if not line.strip():
            continue
        term, *translations = map(str.strip, line.split("\t"))
        if not term or len(translations) != 1 or not translations[0]:
            raise UserError(f"{path}, line {number}: give a term, a tab, and its translation")
        if terms.setdefault(folded(term), translations[0]) != translations[0]:
            raise UserError(f"{path}, line {number}: {term!r:.80} has another translation above: remove one")
    if not terms:
        raise UserError(f"{path} has no terms")
    return terms


def start_backend():
    """Import Keras and start its backend. Hides TensorFlow's messages, which no setting silences."""
    import_keras()
    start_devices()


def import_keras():
    """Import Keras and keras-hub. The backend can still join other processes afterwards."""
    import logging

    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    keep_compiled_programs()
    with _started():
        import keras

        if keras.backend.backend() != "tensorflow":
            # Keras, keras-hub and TensorBoard import it if they can: 600 MB and 1.6 seconds for nothing.
            for package in ("tensorflow", "tensorflow_text"):
                sys.modules.setdefault(package, None)
        import keras_hub  # noqa: F401


def start_devices():
    """Let the backend find its devices."""
    import keras

    with _started():
        keras.ops.zeros(())


@contextlib.contextmanager
def _started() -> Iterator[None]:
    """Discard what the block writes to standard error; raise its errors as `UserError`."""
    sys.stderr.flush()
    standard_error = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    except (ImportError, ValueError, RuntimeError, AssertionError) as error:
        # TensorFlow's message begins with a traceback; the reason is its last line.
        reason = [first_line(error), *re.findall(r"^\w+Error: .*", str(error), re.MULTILINE)][-1]
        backend = os.environ.get("KERAS_BACKEND", "tensorflow")
        raise UserError(f"Keras cannot start its backend {backend!r} (KERAS_BACKEND): {reason}") from None
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)


@contextlib.contextmanager
def progress_bar(what: str, total: int | None, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a progress bar if standard error is a terminal; yield the function that advances it by a count."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    # Without a terminal, rich would write an empty line.
    with Progress(console=console, disable=not (shown and console.is_terminal), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


@contextlib.contextmanager
def telling_when_stopped(line: Callable[[], str]) -> Iterator[None]:
    """On SIGTERM or Ctrl-C, print a line to standard error; SIGTERM then exits with status 143."""
    earlier = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    except (SystemExit, KeyboardInterrupt):  # Ctrl-C's, which the command line turns into status 130
        print(f"\n{line()}", file=sys.stderr)
        raise
    finally:
        signal.signal(signal.SIGTERM, earlier)


def command_line() -> str:
    """Return what starts `kzoo` here, for commands to copy; if it is not on the path, its file."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return f"{_typed(Path(sys.executable))} -m kzoo"
    return _typed(program)


def _typed(program: Path) -> str:
    found = shutil.which(program.name)
    return program.name if found and Path(found).samefile(program) else shlex.quote(os.path.relpath(program))
