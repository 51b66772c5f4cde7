"""Checks of Gram matrices that a user gives."""

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats
from bagwise._threads import checkpoint, ordered_map
from bagwise.kernels._instance import tiles
from bagwise.kernels._rows import BLOCK, slices

_EXACT_ROWS = 1500  # above, eigenvalues are estimated
_MAX_STEPS = 300
_STEPS_BETWEEN_LOOKS = 10
_RESIDUAL = 1e-5  # of an estimated eigenvalue, relative to the largest


def check_psd(gram: ArrayLike, *, name: str) -> float:
    """Check a Gram matrix and say how far it is from positive semi-definite.

    Parameters
    ----------
    gram : array of shape (n, n)
        Inner products.
    name : str
        What to call the matrix in error messages.

    Returns
    -------
    float
        The most negative eigenvalue over the largest absolute eigenvalue; 0 if none is negative.
        Rounding alone makes it about ``-n * eps`` at worst, where ``eps`` is that of the precision
        in which the matrix was computed.

    Raises
    ------
    ValueError
        If the matrix is not square, has an entry that is not finite, or is not symmetric: two
        entries differ by more than the square root of the machine epsilon (of its precision)
        times the largest absolute entry.

    Notes
    -----
    Above 1500 rows a Lanczos iteration from a fixed start estimates the eigenvalues. The estimate
    comes from above, so a matrix that it calls indefinite is; an eigenvalue whose size is below
    about 1e-5 of the largest may stay unseen.

    Examples
    --------
    >>> import numpy as np
    >>> check_psd(np.eye(3), name="K")
    0.0
    >>> check_psd(np.array([[0.0, 1.0], [1.0, 0.0]]), name="K")
    -1.0
    """
    values = _square(gram, name)
    _refuse_asymmetric(values, name)
    if not len(values):
        return 0.0
    if len(values) <= _EXACT_ROWS:
        exact = scipy.linalg.eigvalsh(values.astype(np.float64), check_finite=False)
        smallest, largest = float(exact[0]), float(exact[-1])
    else:
        smallest, largest = _extreme_eigenvalues(values)
    size = max(-smallest, largest)
    return min(0.0, smallest / size) if size > 0 else 0.0


def _square(gram: ArrayLike, name: str) -> NDArray[np.floating]:
    if sp.issparse(gram):
        msg = f"{name} must be a dense array. Got a sparse matrix."
        raise ValueError(msg)
    values = np.asarray(gram)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        msg = f"{name} must be a square matrix. Got shape {values.shape}."
        raise ValueError(msg)
    if values.dtype.kind not in "fiub":
        msg = f"{name} must hold real numbers. Got dtype {values.dtype}."
        raise ValueError(msg)
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def _refuse_asymmetric(values: NDArray[np.floating], name: str) -> None:
    """Refuse entries that are not finite or differ from their mirror images, in one pass."""
    size, worst, where = 0.0, 0.0, (0, 0)
    for rows, columns in tiles(*values.shape, symmetric=True):
        checkpoint()
        block, mirrored = values[rows, columns], values[columns, rows].T
        _refuse_infinite(block, rows.start, columns.start, name)
        _refuse_infinite(mirrored.T, columns.start, rows.start, name)
        size = max(size, float(abs(block).max()), float(abs(mirrored).max()))
        with np.errstate(over="ignore"):
            difference = abs(block - mirrored)
        at = np.unravel_index(np.argmax(difference), difference.shape)
        if difference[at] > worst:
            worst = float(difference[at])
            where = (int(rows.start + at[0]), int(columns.start + at[1]))
    if worst > np.sqrt(np.finfo(values.dtype).eps) * size:
        i, j = where
        msg = (
            f"{name} must be symmetric. Entries ({i}, {j}) and ({j}, {i}) differ by {worst:.3g}: "
            f"{values[i, j]:.6g} and {values[j, i]:.6g}."
        )
        raise ValueError(msg)


def _refuse_infinite(
    block: NDArray[np.floating], first_row: int, first_column: int, name: str
) -> None:
    finite = np.isfinite(block)
    if not finite.all():
        i, j = np.argwhere(~finite)[0]
        msg = (
            f"{name} must be finite. Got {block[i, j]} in row {first_row + i}, "
            f"column {first_column + j}."
        )
        raise ValueError(msg)


def _extreme_eigenvalues(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return estimates of the smallest and the largest eigenvalue, by Lanczos.

    Every new vector is made orthogonal to all earlier ones, twice: without that, copies of the
    large eigenvalues crowd out the small ones.
    """
    n = len(values)
    n_steps = min(n, _MAX_STEPS)
    basis = np.empty((n_steps, n))
    diagonal, beside = np.zeros(n_steps), np.zeros(n_steps)
    vector = np.random.default_rng(0).normal(size=n)
    vector /= np.linalg.norm(vector)
    smallest, largest = 0.0, 0.0
    for step in range(n_steps):
        basis[step] = vector
        vector = _times(values, vector)
        diagonal[step] = vector @ basis[step]
        for _ in range(2):
            vector -= basis[: step + 1].T @ (basis[: step + 1] @ vector)
        beside[step] = np.linalg.norm(vector)
        last = step == n_steps - 1
        spanned = beside[step] <= 1e-14 * (abs(diagonal[: step + 1]).max() + beside[:step].sum())
        if last or spanned or step % _STEPS_BETWEEN_LOOKS == _STEPS_BETWEEN_LOOKS - 1:
            ritz, weights = scipy.linalg.eigh_tridiagonal(diagonal[: step + 1], beside[:step])
            smallest, largest = float(ritz[0]), float(ritz[-1])
            residual = beside[step] * abs(weights[-1, [0, -1]]).max()
            if spanned or residual <= _RESIDUAL * abs(ritz).max():
                break
        vector /= beside[step]
    return smallest, largest


def _times(values: NDArray[np.floating], vector: Floats) -> Floats:
    def part(rows: slice) -> Floats:
        product: Floats = values[rows].astype(np.float64, copy=False) @ vector
        return product

    return np.concatenate(list(ordered_map(part, slices(len(vector), BLOCK))))
