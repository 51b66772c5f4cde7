"""The command ``bagwise``."""

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``bagwise``. Default: the arguments of this process.
    """
    from bagwise.cli._app import run

    return run(arguments)
