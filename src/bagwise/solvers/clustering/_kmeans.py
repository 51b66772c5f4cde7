"""K-means by Lloyd's steps over bags at every scale."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise.bags import BagSource, Chunk
from bagwise.solvers._checks import check_at_least, check_tol, checked_array
from bagwise.solvers._result import Result, Status

_PIECE_VALUES = 2**18  # values of instances that are moved about their middle at a time


def solve_k_means(
    source: BagSource,
    start: ArrayLike,
    *,
    weight: ArrayLike = 1.0,
    tol: float = 1e-4,
    relative_to: Literal["centres", "instances"] = "centres",
    refill: bool = False,
    max_iter: int = 20,
) -> Result:
    r"""Find centres near which instances lie, by the steps of Lloyd (1982).

    .. math::

        \min_{z_1, \dots, z_k} \; \sum_i \omega_i \min_p \|x_i - z_p\|^2

    Each step gives every instance the nearest centre, the first if several are, and moves the
    centres to the weighted means of what they got. A centre that gets nothing stays, or is moved to
    the instance that is farthest from its own centre.

    Parameters
    ----------
    source : BagSource
        The instances; bags play no part.
    start : array-like of shape (n_clusters, d)
        The first centres.
    weight : array-like of shape (n_instances,) or float
        Weights :math:`\omega_i`, not negative.
    tol : float
        Stop when the centres moved by at most this share, in squares, of what ``relative_to`` says.
    relative_to : {"centres", "instances"}
        The scatter of the centres, or the mean variance of a feature over the instances.
    refill : bool
        Whether a centre that gets nothing is moved; else it stays. One that no instance is left
        for, all being on their centres, stays too.
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

    def pieces(chunk: Chunk) -> Iterator[tuple[Any, Floats, int]]:
        """Yield rows of a chunk about the middle, their weights and the number of the first."""
        instances, first = chunk.instances, chunk.rows.start
        length = max(1, _PIECE_VALUES // max(1, bags.n_features))
        for start in range(0, instances.shape[0], length):
            rows = instances[start : start + length]
            begin = first + start
            share = weights[begin : begin + rows.shape[0]]
            yield rows if bags.is_sparse else rows - middle, share, begin

    def nearest(rows: Any, Z: Floats) -> tuple[Integers, Floats]:
        """Return the nearest centre of each row, and the square of how far it is from there."""
        products = rows @ Z.T.astype(rows.dtype)
        squares = np.square(Z).sum(axis=1) - 2.0 * products
        label = squares.argmin(axis=1)
        return label, squares[np.arange(len(label)), label]

    def sums(chunk: Chunk, Z: Floats) -> tuple[Any, Any]:
        total, mass = np.zeros(Z.shape), np.zeros(n)
        for rows, share, _ in pieces(chunk):
            label, _ = nearest(rows, Z)
            mass += np.bincount(label, share, n)
            share, shape = share.astype(rows.dtype, copy=False), (len(label), n)
            members = sp.csr_array((share, label, np.arange(len(label) + 1)), shape=shape)
            part = members.T @ rows
            total += _dense(part)
        return total, mass

    def squares(chunk: Chunk) -> float:
        return sum(float(share @ _lengths(rows)) for rows, share, _ in pieces(chunk))

    def farthest(chunk: Chunk, Z: Floats, count: int) -> tuple[Floats, Integers, Integers]:
        """Return how far the farthest rows are from their centres, these centres and the rows."""
        found: list[tuple[Floats, Integers, Integers]] = []
        for rows, share, begin in pieces(chunk):
            label, beyond = nearest(rows, Z)
            far = np.where(share > 0.0, beyond + _lengths(rows), 0.0)
            place = np.argsort(-far, kind="stable")[:count]
            found.append((far[place], label[place], begin + place))
        return _largest(found, count)

    def move_to_farthest(Z: Floats, total: Floats, mass: Floats) -> None:
        """Take the farthest rows out of the sums of their centres, for those that have none."""
        empty = np.flatnonzero(mass == 0.0)
        far, label, row = source.reduce(
            farthest, Z, len(empty), combine=lambda a, b: _largest([a, b], len(empty))
        )
        for p, old, one in zip(empty, label[far > 0.0], row[far > 0.0], strict=False):
            if mass[old] <= weights[one]:  # it is all that its own centre has
                continue
            moved = _dense(bags.take_instances(np.array([one])))[0] - middle
            total[p], mass[p] = weights[one] * moved, weights[one]
            total[old] -= total[p]
            mass[old] -= mass[p]

    about_all = source.reduce(squares)
    status, history, residual = Status.MAX_ITER, [], np.inf
    for _ in range(max_iter):
        total, mass = source.reduce(sums, centres - middle)
        if refill and not mass.all():
            move_to_farthest(centres - middle, total, mass)
        filled = mass > 0
        means = total / np.where(filled, mass, 1.0)[:, None]
        before, centres = centres, np.where(filled[:, None], means + middle, centres)
        between = float(mass @ np.square(means).sum(axis=1))
        history.append(max(0.0, about_all - between))
        report("pass", len(history), objective=history[-1])
        step = float(np.square(centres - before).sum())
        scatter = float(np.square(centres - centres.mean(axis=0)).sum())
        if relative_to == "instances":
            scatter = about_all / (float(weights.sum()) or 1.0) / bags.n_features
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


def _lengths(rows: Any) -> Floats:
    """Return the squared norms of rows, in double precision."""
    if not sp.issparse(rows):
        out: Floats = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return out
    squares = np.square(rows.data, dtype=np.float64)
    lengths = sp.csr_array((squares, rows.indices, rows.indptr), shape=rows.shape)
    return np.asarray(lengths.sum(axis=1), np.float64)


def _dense(rows: Any) -> Any:
    return rows.toarray() if sp.issparse(rows) else rows


def _largest(
    found: list[tuple[Floats, Integers, Integers]], count: int
) -> tuple[Floats, Integers, Integers]:
    """Return the entries of largest first part, the first of equal ones first."""
    far, label, row = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(-far, kind="stable")[:count]
    return far[order], label[order], row[order]
