"""What solvers check of their input: Gram matrices and one number for each row of them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._threads import checkpoint

_SLICE_SECONDS = 0.02  # compiled loops come back this often, so that Ctrl-C is answered


def checked_gram(values: Any, *, check_finite: bool) -> NDArray[Any]:
    """Return a Gram matrix in single or double precision and C order, uncopied if it is that."""
    gram: NDArray[Any] = np.asarray(values)
    check_square(gram.shape)
    if gram.dtype not in (np.float32, np.float64):
        gram = gram.astype(np.float64)
    if not gram.flags.c_contiguous:  # a symmetric matrix in Fortran order is its own transpose
        gram = np.ascontiguousarray(gram.T if gram.flags.f_contiguous else gram)
    if check_finite:
        from bagwise.solvers._svm_dual_kernels import upper_half_is_finite

        per_slice = max(1, int(_SLICE_SECONDS * 1e9 / len(gram)))
        for start in range(0, len(gram), per_slice):
            checkpoint()
            if not upper_half_is_finite(gram, start, min(start + per_slice, len(gram))):
                raise ValueError(not_finite())
    return gram


def check_square(shape: tuple[int, ...]) -> None:
    """Refuse a Gram matrix that is not square, or empty."""
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        msg = f"gram must be a square matrix. Got shape {shape}."
        raise ValueError(msg)


def check_tol(solver: str, tol: float) -> None:
    """Refuse a tolerance that no violation is below or above: with NaN a search would not end."""
    if not tol >= 0.0:
        msg = f"tol of {solver} must be a number, not negative. Got {tol}."
        raise ValueError(msg)


def not_finite() -> str:
    """Return what to say of a Gram matrix with NaN or infinity."""
    return "gram must hold finite numbers only. Got NaN or infinity."


def checked_rows(
    name: str, values: ArrayLike, n: int, *, spread: bool = False
) -> NDArray[np.float64]:
    """Return a copy with one finite number for each row; ``spread`` lets one stand for all."""
    out = np.array(values, np.float64)
    if out.ndim == 0 and spread:
        out = np.full(n, out)
    if out.shape != (n,):
        msg = f"{name} must have one entry for each of the {n} rows of gram. Got shape {out.shape}."
        raise ValueError(msg)
    if not np.isfinite(out).all():
        msg = f"{name} must hold finite numbers only. Got NaN or infinity."
        raise ValueError(msg)
    return out
