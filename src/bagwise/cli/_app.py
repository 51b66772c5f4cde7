"""The program: its top level, and how every command ends."""

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bagwise._version import __version__
from bagwise.cli import _output
from bagwise.cli._commands import examples, register
from bagwise.cli._output import CommandError, print_error
from bagwise.exceptions import BagwiseError, ModelFileError

# Older typer stands on click, newer brings its own copy; this class is public in both.
_ClickError: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="bagwise",
    help="Multi-instance learning: labels belong to bags of instances.",
    epilog=examples("demo", "fit digits -m MIKernelSVM -o digits.model"),
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"bagwise {__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and turn what went wrong into a line and an exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in arguments
    _output.print_any_name()
    try:
        code = app(args=arguments, prog_name="bagwise", standalone_mode=False)
        sys.stdout.flush()
        if code == _output.INTERRUPTED:  # newer typer answers Ctrl-C with a code, older raises
            raise KeyboardInterrupt
    except (KeyboardInterrupt, typer.Abort):
        print_error("interrupted", code="interrupted", where=None, as_json=as_json)
        return _output.INTERRUPTED
    except CommandError as error:
        print_error(str(error), code=error.code, where=error.where, as_json=as_json)
        return _output.BAD_INPUT
    except BagwiseError as error:
        word = "model" if isinstance(error, ModelFileError) else "data"
        print_error(str(error), code=word, where=None, as_json=as_json)
        return _output.BAD_INPUT
    except BrokenPipeError:
        _output.close_broken_pipe()
        return _output.BUG
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print_error(message, code="file", where=error.filename, as_json=as_json)
        return _output.BAD_INPUT
    except MemoryError as error:
        message = f"there is not enough memory for this ({error or 'no details'})."
        print_error(message, code="memory", where=None, as_json=as_json)
        return _output.BAD_INPUT
    except _ClickError as error:
        print_error(error.format_message(), code="usage", where=None, as_json=as_json)
        return _output.BAD_INPUT
    except Exception as error:
        traceback.print_exc()
        message = f"{type(error).__name__}: {error} (this is a bug in bagwise; please report it)"
        print_error(message, code="bug", where=None, as_json=as_json)
        return _output.BUG
    return code if isinstance(code, int) else _output.OK
