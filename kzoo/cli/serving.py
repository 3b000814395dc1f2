"""`kzoo serve`."""

import logging
import math
import os
import re
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kzoo.cli import options
from kzoo.cli.console import chosen_search, open_translator, read_terms
from kzoo.errors import UserError

app = typer.Typer()


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
    from kzoo.presets.shelf import locate
    from kzoo.serve.startup import check_hosts, check_origins, end_on_sigterm, model_names, reserved

    end_on_sigterm()  # also while the model loads
    check_hosts(allow_host or ())
    check_origins(allow_origin or ())
    if keep is not None and not 0.1 <= keep < math.inf:
        raise UserError(f"--keep takes minutes, 0.1 or more, not {keep:g}")
    bound, tables = None if memory is None else _bytes(memory), list(map(_terms, terms or ()))
    with reserved(host, port) as listening:
        from kzoo.cli.models_to_serve import ModelsToServe, NamedPreset
        from kzoo.cli.server_glossaries import Terms
        from kzoo.engine.loaded_models import LoadedModels
        from kzoo.serve import Keys
        from kzoo.serve import serve as serve_forever
        from kzoo.serve.server import LOG_FORMAT, startup_lines

        accepted = keys and Keys.read(keys)  # before presets are downloaded
        located = [locate(preset) for preset in presets]
        names = model_names(name, [preset.name for preset in located])
        search_of = partial(
            chosen_search,
            beam_size=beam_size,
            length_penalty=length_penalty,
            gnmt=gnmt,
            max_length=max_length,
        )
        models = ModelsToServe(
            presets=[
                NamedPreset(
                    one,
                    preset,
                    version or preset.version or 1,
                    Path(preset.given) if preset.version and not version else None,
                )
                for one, preset in zip(names, located, strict=True)
            ],
            search_of=search_of,
            open_translator=partial(
                open_translator,
                engine=engine,
                compute_type=compute_type,
                device=device,
                loaded_models=LoadedModels(bound),
            ),
            terms=[Terms(*table) for table in tables],
            keep=keep,
            bounded=bound is not None,
            options={"max_batch": max_batch, "max_wait": max_wait},
        )
        served = models.served()
        # To a copy of standard error, whose original `start_backend` takes away while Keras is loaded.
        logging.basicConfig(format=LOG_FORMAT, stream=os.fdopen(os.dup(2), "w", buffering=1))
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        listening.listen()  # so that clients that read the line can connect
        print(*startup_lines(served, address, accepted), sep="\n", flush=True)
        new_versions = models.new_versions(served[0].metrics)
        serve_forever(served, listening, allow_host or (), allow_origin or (), accepted, new_versions)


def _bytes(size: str) -> int:
    """Return the bytes of a size such as 500M or 4G."""
    if not (found := re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([MG])", size.strip(), re.I | re.ASCII)):
        raise UserError(f"--memory takes megabytes or gigabytes, such as 500M or 4G, not {size!r:.80}")
    return int(float(found[1]) * {"M": 2**20, "G": 2**30}[found[2].upper()])


def _terms(given: str) -> tuple[str, dict[str, str]]:
    """Return the direction that --terms names, if any, and the terms in its file."""
    whole = "=" not in given or Path(given).exists()
    direction, path = ("", given) if whole else given.split("=", 1)
    if not path or not (whole or direction):
        raise UserError(f"--terms takes a file, or FROM-TO=FILE, not {given!r}")
    return direction, read_terms(Path(path))
