"""The commands and their options. What a command does is imported when it runs."""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bagwise._version import __version__
from bagwise.cli import _output
from bagwise.cli._output import CommandError, Output, print_error

# Older typer stands on click, newer brings its own copy; this class is public in both.
_ClickError: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="bagwise",
    help="Multi-instance learning: labels belong to bags of instances.",
    epilog="\b\nExamples:\n  bagwise demo\n  bagwise doctor",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing about progress.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="Use no colours.")]


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


@app.command(epilog="\b\nExamples:\n  bagwise demo\n  bagwise demo --seed 7 --output seven.html")
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the report goes.")
    ] = Path("bagwise-demo.html"),
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of the bags and the folds.")
    ] = 0,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Learn from embedded data with every classifier and write an HTML report.

    The task: which bags of handwritten digits hold a 3, and which image is it?
    """
    from bagwise.cli._demo import run_demo

    run_demo(Output(json, quiet, not no_color), output, seed)


@app.command(epilog="\b\nExamples:\n  bagwise doctor\n  bagwise doctor --json")
def doctor(json: Json = False, no_color: NoColor = False) -> None:
    """Show versions, threads, the BLAS in use, the compiler's cache and the data found."""
    from bagwise.cli._doctor import run_doctor

    run_doctor(Output(json, False, not no_color))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and turn what went wrong into a line and an exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in arguments
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
    except BrokenPipeError:
        _output.close_broken_pipe()
        return _output.BUG
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print_error(message, code="file", where=error.filename, as_json=as_json)
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
