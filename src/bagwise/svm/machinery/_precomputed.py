"""Gram matrices that users bring."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise._warnings import warn
from bagwise.bags import Bags, segment_rows
from bagwise.kernels import check_psd

_INDEFINITE = 1e-8  # of the largest eigenvalue: a negative one beyond this is not rounding


def given_gram(bags: Bags, owner: str) -> tuple[NDArray[Any], Integers]:
    """Return what `given_square` does, where it must be a symmetric kernel."""
    gram, rows = given_square(bags, owner)
    warn_unless_psd(gram, f"{owner}: the precomputed kernel")
    return gram, rows


def given_square(bags: Bags, owner: str) -> tuple[NDArray[Any], Integers]:
    """Return the Gram matrix of the training rows, and which rows of the given matrix they are.

    The bags hold rows of a square matrix. A selection of bags is a selection of rows and columns.
    """
    matrix, starts, stops = bags.segments
    if matrix.shape[0] != matrix.shape[1]:
        msg = (
            f"With kernel='precomputed', {owner}.fit needs a square matrix, the kernel between all "
            f"training rows. Got shape {matrix.shape}."
        )
        raise ValueError(msg)
    rows = segment_rows(starts, stops)
    dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    whole = len(rows) == len(dense) and np.array_equal(rows, np.arange(len(rows)))
    gram = dense if whole else dense[np.ix_(rows, rows)]
    return np.ascontiguousarray(gram), rows


def warn_unless_psd(gram: NDArray[Any], name: str) -> None:
    """Refuse a matrix that is no kernel at all; warn of one that is not positive semi-definite."""
    least = check_psd(gram, name=name)
    if least < -max(_INDEFINITE, len(gram) * float(np.finfo(gram.dtype).eps)):
        msg = (
            f"{name} is not positive semi-definite: its smallest eigenvalue is {least:.2g} times "
            "the largest one. The problem is then not convex and the solution may be a local one."
        )
        warn(msg)
