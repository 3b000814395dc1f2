"""`kzoo export` and `kzoo serve`."""

import logging
import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from kzoo.cli import options
from kzoo.cli.console import chosen_search, open_translator, read_terms, start_backend
from kzoo.errors import UserError

app = typer.Typer()


@app.command()
def export(
    preset: options.Preset,
    folder: Annotated[Path, typer.Argument(help="Folder to write; for argos, a file NAME.argosmodel.")],
    to: Annotated[
        Literal["saved_model", "ctranslate2", "argos"] | None,
        typer.Option(
            "--format", help="What to write; by default argos for a NAME.argosmodel, else saved_model."
        ),
    ] = None,
    beam_size: options.Beam = None,
    length_penalty: options.Penalty = None,
    gnmt: options.GNMTPenalty = None,
    max_length: options.MaxLength = None,
    precision: Annotated[
        Literal["float32", "float16", "int8"], typer.Option(help="Precision of the weights.")
    ] = "float32",
):
    """Export a preset as a SavedModel from text to text, a CTranslate2 model, or a package for Argos."""
    from kzoo.presets.shelf import locate

    located = locate(preset)
    if (to or folder.suffix) in ("argos", ".argosmodel"):
        from kzoo.export import export_argos

        given = {"beam": beam_size, "length-penalty": length_penalty, "gnmt": gnmt, "max-length": max_length}
        if name := next((name for name, value in given.items() if value is not None), None):
            raise UserError(f"Argos Translate searches with its own settings: leave --{name} out")
        export_argos(located, folder, precision)
        print(f"{folder}: written, argos, {precision}")
        return
    from kzoo.engine import why_not_searched
    from kzoo.engine.conversion import why_not
    from kzoo.export.early_checks import check_saved_model

    search = chosen_search(located, beam_size, length_penalty, gnmt, max_length)
    if to != "ctranslate2":
        check_saved_model(folder, precision, os.environ.get("KERAS_BACKEND", "tensorflow"))
    elif reason := why_not(located) or why_not_searched(search):
        raise UserError(reason)
    start_backend()
    from kzoo.export import export_ctranslate2, export_saved_model

    translator = open_translator(located, search)
    if to != "ctranslate2":
        print("writing the graph of the beam search: this takes a minute or two", file=sys.stderr)
        export_saved_model(translator, folder, precision=precision)
    else:
        export_ctranslate2(translator, folder, precision)
    print(f"{folder}: written, {to or 'saved_model'}, {precision}, {search}")


@app.command()
def serve(
    presets: options.Presets,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free one.")] = 8501,
    name: Annotated[
        list[str] | None,
        typer.Option(help="The model's name for clients, by default the preset's; once for each preset."),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(min=1, help="The models' version for clients; by default their folders' number, or 1."),
    ] = None,
    beam_size: options.Beam = None,
    length_penalty: options.Penalty = None,
    gnmt: options.GNMTPenalty = None,
    max_length: options.MaxLength = None,
    max_batch: Annotated[
        int, typer.Option(min=1, max=64, help="Maximum sentences per batch; 1: no batching.")
    ] = 16,
    max_wait: Annotated[
        float,
        typer.Option(min=0, max=3_600_000, help="Maximum milliseconds that a sentence waits for others."),
    ] = 0.0,
    keep: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Minutes without a request after which a model leaves the memory until the next; "
            "by default, it stays. For CTranslate2.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Maximum memory of the weights of all models together, such as 500M or 4G: others leave it "
            "when a model is loaded; by default, there is no limit. For CTranslate2.",
        ),
    ] = None,
    terms: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[FROM-TO=]FILE.tsv",
            help="A glossary, as for translate, that all translations keep to; of several directions, "
            "name one, as in en-de=terms.tsv. Can be repeated.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another host name to accept, such as a proxy's; can be repeated."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="A site whose pages may use this server, such as https://site.example; can be repeated.",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The SHA-256 of each key that clients may send, one a line."),
    ] = None,
    engine: options.EngineOption = "auto",
    compute_type: options.ComputeType = "float32",
    device: options.DeviceOption = "auto",
):
    """Serve presets with TensorFlow Serving's REST interface, LibreTranslate's, and a page to try them."""
    from kzoo.hub.location import newest_version
    from kzoo.presets.shelf import locate
    from kzoo.serve.startup import check_model_name, end_on_sigterm, reserved

    end_on_sigterm()  # also while the model loads
    for allowed in allow_host or ():
        if not re.fullmatch(r"[\w.-]+", allowed, re.ASCII):  # browsers send other letters as xn--…
            raise UserError(
                "--allow-host takes a host's name in ASCII, such as translate.example or "
                f"xn--bcher-kva.example, not {allowed!r}"
            )
    for origin in allow_origin or ():
        if not re.fullmatch(r"https?://[a-z0-9.-]+(:\d+)?|https?://\[[0-9a-f:]+\](:\d+)?", origin):
            raise UserError(
                "--allow-origin takes a site's scheme, name and port, as a browser sends them: "
                f"https://site.example or http://localhost:3000, not {origin!r}"
            )
        if re.fullmatch("https:.*:443|http:.*:80", origin):
            raise UserError(
                f"--allow-origin {origin}: browsers leave the usual port out: {origin.rpartition(':')[0]}"
            )
    newest = list(map(newest_version, presets))  # first: a version that comes meanwhile is found again
    located = [locate(preset) for preset in presets]
    names = name or [preset.name for preset in located]
    if len(names) != len(located):
        raise UserError(f"{len(located)} presets have {len(names)} names: give --name once for each")
    if repeated := next((one for number, one in enumerate(names) if one in names[:number]), None):
        raise UserError(f"two models are named {repeated!r}: give --name once for each preset")
    for one in names:
        check_model_name(one)
    search_of = partial(
        chosen_search,
        beam_size=beam_size,
        length_penalty=length_penalty,
        gnmt=gnmt,
        max_length=max_length,
    )
    searches, bound = list(map(search_of, located)), None if memory is None else _bytes(memory)
    tables = list(map(_terms, terms or ()))
    with reserved(host, port) as listening:
        from kzoo.engine.loaded_models import LoadedModels
        from kzoo.serve import Keys
        from kzoo.serve.glossaries import Terms, check_terms, glossaries_of
        from kzoo.serve.searches import EngineSearch

        accepted, loaded_models = keys and Keys.read(keys), LoadedModels(bound)
        tables = [Terms(*table) for table in tables]
        leave = keep is not None or bound is not None

        def opened(preset, search):
            translator = open_translator(
                preset, search, engine, compute_type, device, loaded_models=loaded_models
            )
            if leave and translator.engine != "keras":  # find errors now: the first request may load it again
                tested = EngineSearch(translator, search, 1, start_backend)
                for key, rows in tested.usual():
                    tested.search(key, rows)
                if len(located) > 1:
                    translator.unload_if_idle(0)
            return translator

        translators = []
        for one, preset, search in zip(names, located, searches, strict=True):
            print(f"loading {one} …", file=sys.stderr, flush=True)
            translators.append(opened(preset, search))
        check_terms(tables, translators)
        on_keras = [
            one
            for one, translator in zip(names, translators, strict=True)
            if leave and translator.engine == "keras"
        ]
        if on_keras == names:
            raise UserError(f"{', '.join(names)}: Keras cannot unload a model: leave --keep and --memory out")
        if on_keras:
            print(f"{', '.join(on_keras)}: Keras cannot unload a model, so it stays", file=sys.stderr)
        from kzoo.serve import Served
        from kzoo.serve import serve as serve_forever
        from kzoo.serve.metrics import Metrics
        from kzoo.serve.server import LOG_FORMAT
        from kzoo.serve.versions import NewVersions

        # To a copy of standard error, whose original `start_backend` takes away while Keras is loaded.
        logging.basicConfig(format=LOG_FORMAT, stream=os.fdopen(os.dup(2), "w", buffering=1))
        metrics = Metrics(", ".join(dict.fromkeys(translator.engine for translator in translators)))

        def made(translator, one: str, number: int, preset) -> Served:
            return Served(
                translator,
                one,
                number,
                max_batch,
                max_wait,
                preset=preset,
                start_keras=start_backend,
                metrics=metrics,
                keep=None if translator.engine == "keras" else keep,
                glossaries=glossaries_of(translator, tables),
            )

        served = [
            made(translator, one, version or number or 1, preset)
            for translator, one, number, preset in zip(translators, names, newest, located, strict=True)
        ]
        del translators  # only `served` holds the models: a replaced one leaves the memory
        watched = {
            one: Path(preset)
            for one, preset, number in zip(names, presets, newest, strict=True)
            if number and not version
        }

        def load(one: str, number: int) -> Served:
            preset = locate(watched[one] / str(number))
            preset.check()
            return made(opened(preset, search_of(preset)), one, number, preset)

        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        listening.listen()  # so that clients that read the line can connect
        lines = [
            f"{model.name}: {address}, {model.engine}, {search}, Ctrl-C stops it"
            for model, search in zip(served, searches, strict=True)
        ]
        print(*lines, sep="\n", flush=True)
        new_versions = NewVersions(watched, load) if watched else None
        serve_forever(served, listening, allow_host or (), allow_origin or (), accepted, new_versions)


def _bytes(size: str) -> int:
    """Return the bytes of a size such as 500M or 4G."""
    if not (found := re.fullmatch(r"(\d+(?:\.\d+)?)([MG])", size.strip(), re.I | re.ASCII)):
        raise UserError(f"--memory takes megabytes or gigabytes, such as 500M or 4G, not {size!r}")
    return int(float(found[1]) * {"M": 2**20, "G": 2**30}[found[2].upper()])


def _terms(given: str) -> tuple[str, dict[str, str]]:
    """Return the direction that --terms names, if any, and the terms in its file."""
    whole = "=" not in given or Path(given).exists()
    direction, path = ("", given) if whole else given.split("=", 1)
    return direction, read_terms(Path(path))
