"""The command ``bagwise``."""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``bagwise``. Default: the arguments of this process.
    """
    try:
        from bagwise.cli._app import run
    except KeyboardInterrupt:  # while the program is still loading
        sys.stderr.write("bagwise: interrupted\n")
        return 130
    return run(arguments)
