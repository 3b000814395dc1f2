"""The `kzoo` command line: its commands, and errors printed as one line."""

import os
import sys

import typer

from kzoo.commands import comparison, features, plots, serving, shelf, training, translation
from kzoo.errors import UserError, WorkerError, one_line

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A Keras 3 model zoo for machine translation.",
)
for commands in (shelf, training, translation, comparison, serving):
    app.add_typer(commands.app)
app.add_typer(features.app, name="features")
app.add_typer(plots.app, name="plot")


def main(application: typer.Typer | None = None):
    """Run the command line; a user's error is printed as one line, with exit status 1.

    Args:
        application: another application than `kzoo`'s, for scripts that use the package.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        (application or app)()
    except WorkerError as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    except UserError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"error: {one_line(error)}")


if __name__ == "__main__":
    main()
