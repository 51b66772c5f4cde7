"""K-means by Lloyd's steps over bags at every scale."""

from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from bagwise._arrays import Floats
from bagwise.bags import BagSource, Chunk
from bagwise.solvers._checks import check_at_least, check_tol, checked_array
from bagwise.solvers._result import Result, Status


def solve_k_means(
    source: BagSource,
    start: ArrayLike,
    *,
    weight: ArrayLike = 1.0,
    tol: float = 1e-4,
    max_iter: int = 20,
) -> Result:
    r"""Find centres near which instances lie, by the steps of Lloyd (1982).

    .. math::

        \min_{z_1, \dots, z_k} \; \sum_i \omega_i \min_p \|x_i - z_p\|^2

    Each step gives every instance the nearest centre, the first if several are, and moves the
    centres to the weighted means of what they got. A centre that gets nothing stays.

    Parameters
    ----------
    source : BagSource
        The instances; bags play no part.
    start : array-like of shape (n_clusters, d)
        The first centres.
    weight : array-like of shape (n_instances,) or float
        Weights :math:`\omega_i`, not negative.
    tol : float
        Stop when the centres moved by at most this share of their own scatter, in squares.
    max_iter : int
        Most steps.

    Returns
    -------
    Result
        ``x`` holds the centres, ``objective`` the sum of squares if the instances stay with the
        centres that they had in the last step: an upper bound of the objective above, as are the
        entries of ``history``, one for each step. ``residual`` is the share that ``tol`` bounds.
        There is no lower bound.
    """
    started = perf_counter()
    bags, name = source.bags, "solve_k_means"
    check_tol(name, tol)
    check_at_least(name, "max_iter", max_iter, 1)
    centres = checked_array(name, "start", start, (None, bags.n_features))
    weights = checked_array(name, "weight", weight, (bags.n_instances,), spread=True)
    if (weights < 0.0).any():
        msg = f"{name}: weight must not be negative. Got {weights.min()}."
        raise ValueError(msg)
    n = len(centres)
    check_at_least(name, "the number of rows of start", n, 1)
    middle = np.zeros(bags.n_features, bags.dtype)
    if not bags.is_sparse:  # about 0, squares of instances far from there would be all rounding
        whole = source.reduce(lambda chunk: weights[chunk.rows] @ chunk.instances)
        middle = (whole / (weights.sum() or 1.0)).astype(bags.dtype)

    def about_middle(chunk: Chunk) -> Any:
        return chunk.instances if bags.is_sparse else chunk.instances - middle

    def sums(chunk: Chunk, Z: Floats) -> tuple[Any, Any]:
        rows, share = about_middle(chunk), weights[chunk.rows]
        products = rows @ Z.T.astype(rows.dtype)
        label = (np.square(Z).sum(axis=1) - 2.0 * products).argmin(axis=1)
        shape = (len(label), n)
        members = sp.csr_array((share, label, np.arange(len(label) + 1)), shape=shape)
        total = members.T @ rows
        total = total.toarray() if sp.issparse(total) else total
        return total, np.bincount(label, share, n)

    def squares(chunk: Chunk) -> float:
        rows = about_middle(chunk)
        values = rows.data if sp.issparse(rows) else rows
        lengths = np.square(values, dtype=np.float64)
        if sp.issparse(rows):
            lengths = sp.csr_array((lengths, rows.indices, rows.indptr), shape=rows.shape)
        return float(weights[chunk.rows] @ lengths.sum(axis=1))

    about_all = source.reduce(squares)
    status, history, residual = Status.MAX_ITER, [], np.inf
    for _ in range(max_iter):
        total, mass = source.reduce(sums, centres - middle)
        filled = mass > 0
        means = total / np.where(filled, mass, 1.0)[:, None]
        before, centres = centres, np.where(filled[:, None], means + middle, centres)
        between = float(mass @ np.square(means).sum(axis=1))
        history.append(max(0.0, about_all - between))
        step = float(np.square(centres - before).sum())
        scatter = float(np.square(centres - centres.mean(axis=0)).sum())
        residual = step / scatter if scatter > 0.0 else (np.inf if step > 0.0 else 0.0)
        if step <= tol * scatter:
            status = Status.CONVERGED
            break
    return Result(
        x=centres,
        objective=history[-1],
        status=status,
        n_iter=len(history),
        residual=residual,
        history=np.array(history),
        solve_time=perf_counter() - started,
    )
