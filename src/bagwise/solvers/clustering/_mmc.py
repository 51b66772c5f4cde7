"""Maximum-margin clustering of single instances, with many clusters (Zhao, Wang and Zhang 2008).

The loss of an instance is what its best cluster lacks of being 1 ahead of the runner-up. It is not
convex: whoever is best now is better off staying best. Two loops find a local minimum. The
published one collects cutting planes and freezes the best clusters in between; nothing proves that
it converges. The other freezes the best clusters and solves the convex problem that is left.
"""

from contextlib import closing
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import checkpoint
from bagwise.bags import BagSource, Chunk
from bagwise.solvers._checks import check_at_least, check_limits, check_positive, checked_array
from bagwise.solvers._result import Result, Status
from bagwise.solvers.clustering._balance import Balance
from bagwise.solvers.programs._cut_program import CutProgram
from bagwise.solvers.programs._cutting_planes import Cut, minimize_by_cuts

_INNER_DECREASE = 0.01  # relative decrease below which the published method ends its inner loop
_MACHINE_CUTS = 500
_MACHINE_TOL = 0.3  # of the relative decrease that counts


@dataclass(frozen=True, kw_only=True, eq=False)
class MMCResult(Result):
    """Weights of clusters of instances: ``x``, of shape (n_clusters, d), is the best point seen.

    Parameters
    ----------
    labels : ndarray of int of shape (n_instances,)
        The cluster of each instance: the one with the highest score ``x[p] . instance``.
    """

    labels: Integers


def solve_mmc_by_cuts(
    source: BagSource,
    start: ArrayLike,
    *,
    C: float = 1.0,
    balance: float = inf,
    direction: ArrayLike | None = None,
    tol: float = 0.01,
    max_cuts: int = 20,
    max_iter: int = 200,
) -> MMCResult:
    r"""Cluster instances with cutting planes outside and a concave-convex loop inside (CPM3C).

    For :math:`N` instances and :math:`k` clusters, with :math:`p_i` the cluster of the highest
    score :math:`w_p^\top x_i`, it is a local method for

    .. math::

        \min_W \; \tfrac12 \sum_p \|w_p\|^2 + \frac{C}{N} \sum_i
        \Bigl(1 - w_{p_i}^\top x_i + \max_{r \ne p_i} w_r^\top x_i\Bigr)_+
        \quad \text{subject to} \quad \max_p w_p^\top m - \min_p w_p^\top m \le l .

    Each round adds the plane of all instances inside the margin, with their runner-up, and then
    minimises over the planes: the best clusters of the instances are frozen, a small quadratic
    programme is solved, and so on until that lowers the objective by less than 1 %.

    Parameters
    ----------
    source : BagSource
        The instances; bags play no part.
    start : array-like of shape (n_clusters, d)
        Weights to start from. Only which cluster is best, and which next, counts.
    C : float
        Weight of the losses.
    balance : float
        The bound ``l``, not negative; ``inf`` for none.
    direction : array-like of shape (d,), optional
        The vector ``m``: in clustering, the sum of all instances. Without it, or if it is 0, there
        is no constraint.
    tol : float
        Stop when the mean loss is at most this much above the planes: no cut that is left out is
        broken by more.
    max_cuts : int
        Most cuts.
    max_iter : int
        Most quadratic programmes in all.

    Returns
    -------
    MMCResult
        ``objective`` is the true value, and the smallest of all points visited; ``history`` has it
        after each cut, of which there were ``n_iter``. ``residual`` is the loss above the planes
        at the end. There is no lower bound.
    """
    started = perf_counter()
    name = "solve_mmc_by_cuts"
    check_limits(name, tol, max_iter, least=1)
    check_at_least(name, "max_cuts", max_cuts, 1)
    weights, side = _checked(name, source, start, C, balance, direction)
    walk = _Walk(source, weights if side is None else side.reachable(weights), C, side)
    status, history, violation = Status.MAX_ITER, [], inf
    inside = np.ones(source.bags.n_instances, bool)
    for _ in range(max_cuts):
        walk.add_cut(inside)
        violation = walk.descend(max_iter)
        history.append(walk.objective)
        if violation <= tol:
            status = Status.CONVERGED
        if violation <= tol or walk.n_steps >= max_iter:
            break
        inside = walk.seen.margin < 1.0
    return MMCResult(
        x=walk.best,
        labels=walk.best_labels.astype(np.int64),
        objective=walk.objective,
        status=status,
        n_iter=len(history),
        residual=violation,
        history=np.array(history),
        solve_time=perf_counter() - started,
    )


def solve_mmc_by_cccp(
    source: BagSource,
    start: ArrayLike,
    *,
    C: float = 1.0,
    balance: float = inf,
    direction: ArrayLike | None = None,
    tol: float = 0.01,
    max_iter: int = 50,
) -> MMCResult:
    """Solve the problem of `solve_mmc_by_cuts` by the concave-convex procedure.

    Each round gives every instance its best cluster and trains a multi-class machine (Crammer and
    Singer 2001) for these, by cutting planes. The objective falls until the clusters stay.

    Parameters
    ----------
    source, C, balance, direction
        As for `solve_mmc_by_cuts`.
    start : array-like of shape (n_clusters, d)
        Weights to start from; the nearest that keep the balance are taken.
    tol : float
        Stop when a round lowers the objective by at most ``tol`` times it, or changes no cluster.
        Machines are trained to a duality gap of a third of that.
    max_iter : int
        Most rounds.

    Returns
    -------
    MMCResult
        ``residual`` is the relative decrease of the last round. There is no lower bound.
        ``STALLED``: the last machine could not be trained as well as asked for.
    """
    started = perf_counter()
    name = "solve_mmc_by_cccp"
    check_limits(name, tol, max_iter, least=1)
    weights, side = _checked(name, source, start, C, balance, direction)
    if side is not None:
        weights = side.project(weights.ravel()).reshape(weights.shape)
    seen = _look(source, weights)
    inside = np.ones(len(seen.labels), bool)
    best, labels = weights, seen.labels
    objective = 0.5 * float(np.vdot(weights, weights)) + C * seen.loss
    status, history, decrease = Status.MAX_ITER, [], inf
    for _ in range(max_iter):
        machine = _FixedClusters(source, labels, len(weights), side)
        solved = minimize_by_cuts(
            machine.loss,
            weights.size,
            C=C,
            side=side,
            start=[machine.cut(seen, inside)],
            tol=_MACHINE_TOL * tol,
            max_iter=_MACHINE_CUTS,
        )
        point = solved.x.reshape(weights.shape)
        seen = _look(source, point)
        value = 0.5 * float(np.vdot(point, point)) + C * seen.loss
        decrease = (objective - value) / objective
        stays = np.array_equal(seen.labels, labels)
        if value < objective:
            best, labels, objective = point, seen.labels, value
        history.append(objective)
        if stays or decrease <= tol:
            status = Status.CONVERGED if solved.converged else Status.STALLED
            break
        inside = seen.margin < 1.0
    return MMCResult(
        x=best,
        labels=labels.astype(np.int64),
        objective=objective,
        status=status,
        n_iter=len(history),
        residual=max(0.0, decrease),
        history=np.array(history),
        solve_time=perf_counter() - started,
    )


def _checked(
    solver: str,
    source: BagSource,
    start: ArrayLike,
    C: float,
    balance: float,
    direction: ArrayLike | None,
) -> tuple[Floats, Balance | None]:
    weights = checked_array(solver, "start", start, (None, source.bags.n_features))
    check_at_least(solver, "the number of rows of start", len(weights), 2)
    check_positive(solver, "C", C)
    return weights, Balance.of(solver, direction, balance, *weights.shape)


# ---------------------------------------------------------------------------- passes over the data


@dataclass(frozen=True)
class _Seen:
    """What a pass over the instances sees: best cluster, next best, and by how much it leads."""

    labels: NDArray[np.int16]
    rivals: NDArray[np.int16]
    margin: Floats

    @property
    def loss(self) -> float:
        """The mean hinge loss."""
        return float(np.maximum(0.0, 1.0 - self.margin).mean())


def _look(source: BagSource, weights: Floats) -> _Seen:
    return _Seen(*source.concatenate(_ranked, weights))


def _scores(chunk: Chunk, weights: Floats) -> NDArray[Any]:
    return np.asarray(chunk.instances @ weights.T.astype(chunk.instances.dtype))


def _ranked(
    chunk: Chunk, weights: Floats, labels: NDArray[np.int16] | None = None
) -> tuple[NDArray[np.int16], NDArray[np.int16], Floats]:
    """Return the best cluster, or the given one, the best of the others, and the lead of it."""
    scores = _scores(chunk, weights)
    each = np.arange(len(scores))
    first = scores.argmax(axis=1) if labels is None else labels[chunk.rows].astype(np.intp)
    own = scores[each, first]
    scores[each, first] = -inf
    second = scores.argmax(axis=1)
    margin = own.astype(np.float64) - scores[each, second]
    return first.astype(np.int16), second.astype(np.int16), margin


def _cut_sums(
    chunk: Chunk, gains: NDArray[np.int16], losses: NDArray[np.int16], inside: Booleans, k: int
) -> Floats:
    """Add instances to their own cluster's sum, and take them off their rival's."""
    rows = np.flatnonzero(inside[chunk.rows])
    return _signed_sums(chunk, rows, gains[chunk.rows][rows], losses[chunk.rows][rows], k)


def _signed_sums(
    chunk: Chunk,
    rows: NDArray[np.intp],
    gains: NDArray[np.integer],
    losses: NDArray[np.integer],
    n_sums: int,
) -> Floats:
    """Add rows of a chunk to some sums and take them off others, in double precision."""
    instances = chunk.instances
    if not len(rows):
        return np.zeros((n_sums, instances.shape[1]))
    if 2 * len(rows) < instances.shape[0]:
        used, rows = np.unique(rows, return_inverse=True)
        instances = instances[used]
    factor = np.repeat([1.0, -1.0], len(rows))
    places = np.concatenate([gains, losses]).astype(np.intp), np.concatenate([rows, rows])
    picks = sp.csr_array((factor, places), shape=(n_sums, instances.shape[0]))
    total = picks @ instances
    return np.asarray(total.toarray() if sp.issparse(total) else total, np.float64)


# ------------------------------------------------------------- cutting planes outside, as published


class _Walk:
    """Points visited one after the other, and the planes as they are seen from the last one.

    A plane says for each of its instances which rival it is held against; whom it gains from is
    the best cluster at the current point. So planes move along, by the instances that change.
    """

    def __init__(self, source: BagSource, start: Floats, C: float, side: Balance | None) -> None:
        self._source, self._C, self._side, self._shape = source, C, side, start.shape
        self._n = source.bags.n_instances
        self._program = CutProgram(start.size, C, side)
        self._sums = np.empty((0, start.size))
        self._rivals = np.empty((0, self._n), np.int16)  # of each plane; -1: not part of it
        self.seen = _look(source, start)
        self.best, self.best_labels, self.objective = start, self.seen.labels, inf
        self.n_steps = 0

    def add_cut(self, inside: Booleans) -> None:
        """Add the plane of some instances, against their rivals at this point."""
        seen, k = self.seen, self._shape[0]
        added = self._source.reduce(_cut_sums, seen.labels, seen.rivals, inside, k).reshape(1, -1)
        self._sums = np.vstack([self._sums, added])
        chosen = np.where(inside, seen.rivals, np.int16(-1))
        self._rivals = np.vstack([self._rivals, chosen])
        self._program.add_plane(self._slopes(added)[0], float(inside.mean()))

    def descend(self, max_steps: int) -> float:
        """Minimise over the planes, as they move; return how far the loss is above them."""
        before, violation = inf, inf
        while self.n_steps < max_steps:
            checkpoint()
            w = self._program.solve().w
            self._move(w)
            height = self._program.height(w)
            violation = self.seen.loss - height
            value = 0.5 * float(w @ w) + self._C * height
            if value >= (1.0 - _INNER_DECREASE) * before:
                break
            before = value
        return violation

    def _move(self, w: Floats) -> None:
        weights = w.reshape(self._shape)
        pieces: list[list[NDArray[Any]]] = [[], [], []]
        outside = np.zeros(len(self._sums), np.int64)
        with closing(self._source.map(_moved, weights, self.seen.labels, self._rivals)) as chunks:
            for *ranked, n_outside, change in chunks:
                for piece, part in zip(pieces, ranked, strict=True):
                    piece.append(part)
                outside += n_outside
                self._sums += change.reshape(self._sums.shape)
        self.seen = _Seen(*(np.concatenate(piece) for piece in pieces))
        self._program.replace_planes(self._slopes(self._sums), outside / self._n)
        self.n_steps += 1
        value = 0.5 * float(w @ w) + self._C * self.seen.loss
        if value < self.objective:
            self.best, self.best_labels, self.objective = weights, self.seen.labels, value

    def _slopes(self, sums: Floats) -> Floats:
        slopes = sums / -self._n
        if self._side is None:
            return slopes
        return np.stack([self._side.reachable(slope) for slope in slopes])


def _moved(
    chunk: Chunk, weights: Floats, before: NDArray[np.int16], rivals: NDArray[np.int16]
) -> tuple[NDArray[Any], ...]:
    """Rank the clusters, and say what planes gain by instances with another best cluster.

    Returns besides the ranking how many instances each plane holds against a rival that is not
    their own cluster, and the change of the planes' sums.
    """
    first, second, margin = _ranked(chunk, weights)
    held = rivals[:, chunk.rows]
    n_outside = ((held >= 0) & (held != first)).sum(axis=1)
    changed = np.flatnonzero(first != before[chunk.rows])
    plane, place = np.nonzero(held[:, changed] >= 0)
    rows, k = changed[place], len(weights)
    gains, losses = (plane * k + part[rows] for part in (first, before[chunk.rows]))
    change = _signed_sums(chunk, rows, gains, losses, len(rivals) * k)
    return first, second, margin, n_outside, change


# ------------------------------------------------------------------- the machine of fixed clusters


class _FixedClusters:
    """The multi-class hinge loss of instances whose clusters are given (Crammer and Singer)."""

    def __init__(
        self, source: BagSource, labels: NDArray[np.int16], k: int, side: Balance | None
    ) -> None:
        self._source, self._labels, self._k, self._side = source, labels, k, side

    def loss(self, w: Floats) -> Cut:
        """Return the mean loss and its plane."""
        weights = w.reshape(self._k, -1)
        seen = _Seen(*self._source.concatenate(_ranked, weights, self._labels))
        return self.cut(seen, seen.margin < 1.0)

    def cut(self, seen: _Seen, inside: Booleans) -> Cut:
        """Return the plane of some instances, each against its rival."""
        sums = self._source.reduce(_cut_sums, self._labels, seen.rivals, inside, self._k)
        slope = sums.ravel() / -len(inside)
        if self._side is not None:
            slope = self._side.reachable(slope)
        return Cut(slope=slope, offset=float(inside.mean()), value=seen.loss)
