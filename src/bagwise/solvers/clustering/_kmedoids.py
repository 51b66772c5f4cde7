"""k-medoids: FasterPAM (Schubert and Rousseeuw 2021) and the alternating method."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise._threads import checkpoint, ordered_map, short_slices, slice_length
from bagwise.solvers._result import Certificate, Status

Method: TypeAlias = Literal["fasterpam", "alternate"]

_ENTRY_SECONDS = 2e-9  # that a compiled loop takes for an entry of the matrix
_SYMMETRIC = 1e-6  # of a distance: how far the two ways may be apart


@dataclass(frozen=True, kw_only=True, eq=False)
class KMedoidsResult(Certificate):
    """Medoids, and what belongs to each.

    ``objective`` is the sum of the distances of all points from their nearest medoid; ``history``
    holds it from the start on, once for each iteration, and never rises. ``residual`` is 0 where
    no step of the method lowers the objective, else unknown.

    Parameters
    ----------
    medoids : ndarray of int of shape (n_clusters,)
        Points that are medoids, in increasing order.
    labels : ndarray of int of shape (n_points,)
        The nearest medoid of each point, as its place in ``medoids``; the first if several are
        equally near. So a medoid at distance 0 from an earlier one is in the earlier one's cluster.
    objectives : ndarray of shape (n_starts,)
        What each start came to. The smallest is this result, the first if several are.
    """

    medoids: Integers
    labels: Integers
    objectives: Floats


def solve_k_medoids(
    distance: ArrayLike,
    n_clusters: int,
    *,
    method: Method = "fasterpam",
    init: Literal["random", "lab", "build"] | ArrayLike = "random",
    n_init: int = 10,
    rng: np.random.Generator | None = None,
    max_iter: int = 300,
    check_input: bool = True,
    n_threads: int | None = 1,
) -> KMedoidsResult:
    r"""Choose points, the medoids, such that all points are near to one of them.

    .. math:: \min_{|M| = k} \sum_i \min_{m \in M} D_{im}

    Parameters
    ----------
    distance : ndarray of shape (n_points, n_points)
        Symmetric and not negative. Nothing else is asked: the triangle may be violated, different
        points may have distance 0. Single precision is not copied; sums are in double precision.
    n_clusters : int
        Number of medoids :math:`k`, at most the number of points.
    method : {"fasterpam", "alternate"}
        ``"fasterpam"`` exchanges a medoid for another point as soon as that lowers the objective,
        until no such exchange is left. ``"alternate"`` gives each point to its nearest medoid and
        makes the member with the least sum of distances the medoid of its cluster, until nothing
        changes: cheaper, and usually worse.
    init : {"random", "lab", "build"} or array-like of int of shape (n_clusters,)
        ``"random"``: different points, each as likely; ``"build"``: one after another, each the
        one that lowers the objective most (the same in every start, so there is one only);
        ``"lab"``: the same on ``10 + sqrt(n_points)`` random points each time; or the points
        themselves.
    n_init : int
        Number of starts, of which the best result is kept.
    rng : numpy.random.Generator, optional
        Where random starts come from; by default always the same.
    max_iter : int
        Most rounds: of all points as candidates, or of assignments.
    check_input : bool
        Whether to look for entries that are negative, not finite or not symmetric.
    n_threads : int or None
        Threads over the starts; they do not change the result.

    Returns
    -------
    KMedoidsResult
        The best start's. ``MAX_ITER`` means that a round was left that might lower the objective.

    Notes
    -----
    Exchanges are tried in an order of their own in each random start: where all starts try the same
    points first, most end in the same optimum. Of equal medoids of a cluster, or medoids to give
    up, the one with the lowest index is taken. Exchanges that lower the objective by less than
    ``n_points`` roundings of it are not made.

    FasterPAM finds the change by the best exchange for one candidate in a single pass over the
    points. Where medoids are much closer to their points than to each other that sum loses digits;
    if it is not clearly positive, the exchange is computed anew from sums in which nothing cancels.

    References
    ----------
    .. [1] E. Schubert, P. J. Rousseeuw: Fast and eager k-medoids clustering. Information Systems
       101 (2021) 101804.
    """
    started = perf_counter()
    D = _checked(distance, check_input=check_input)
    if not 1 <= n_clusters <= len(D):
        msg = (
            f"solve_k_medoids needs n_clusters between 1 and the number of points, {len(D)}. "
            f"Got {n_clusters}."
        )
        raise ValueError(msg)
    if method not in ("fasterpam", "alternate"):
        msg = f"method of solve_k_medoids must be 'fasterpam' or 'alternate'. Got {method!r}."
        raise ValueError(msg)
    if n_init < 1 or max_iter < 1:
        msg = f"solve_k_medoids needs n_init and max_iter of 1 at least. Got {n_init}, {max_iter}."
        raise ValueError(msg)
    starts = _starts(D, n_clusters, init, n_init, rng or np.random.default_rng(0))

    def solve(start: _Start) -> KMedoidsResult:
        search = _Search(D, start.medoids)
        if n_clusters == 1:
            return _single(search)
        if method == "fasterpam":
            return _swap(search, start.order, max_iter)
        return _alternate(search, max_iter)

    results: list[KMedoidsResult] = []
    for result in ordered_map(solve, starts, n_threads=n_threads):
        results.append(result)
        least = min(result.objective for result in results)
        report("start", len(results), total=len(starts), objective=least)
    objectives = np.array([result.objective for result in results])
    best = results[int(objectives.argmin())]
    return replace(best, objectives=objectives, solve_time=perf_counter() - started)


class _Start(NamedTuple):
    """First medoids, and the order in which points are tried in their place."""

    medoids: Integers
    order: Integers


class _Search:
    """Medoids, and the nearest two of them of each point."""

    def __init__(self, D: NDArray[Any], medoids: Integers) -> None:
        n, k = len(D), len(medoids)
        self.D, self.medoids = D, medoids.copy()
        self.near, self.second = np.empty(n, np.int64), np.empty(n, np.int64)
        self.least, self.next_least = np.empty(n), np.empty(n)
        self.loss, self.change, self.gain = np.empty(k), np.empty(k), np.empty(k)
        self.total = np.empty(2)
        self.refresh()

    @property
    def objective(self) -> float:
        return float(self.total[0])

    def refresh(self) -> None:
        """Find the nearest two medoids of all points."""
        from bagwise.solvers.clustering._kmedoids_kernels import find_nearest_two, sum_up

        for piece in short_slices(len(self.D), _ENTRY_SECONDS * 4 * len(self.medoids)):
            find_nearest_two(
                self.D, self.medoids, piece.start, piece.stop,
                self.near, self.second, self.least, self.next_least,
            )  # fmt: skip
        sum_up(self.near, self.least, self.next_least, self.loss, self.total)

    def finish(self, status: Status, history: list[float]) -> KMedoidsResult:
        """Return the result, medoids in order."""
        self.medoids.sort()
        self.refresh()
        return KMedoidsResult(
            objective=self.objective,
            status=status,
            n_iter=len(history) - 1,
            residual=0.0 if status == Status.CONVERGED else np.nan,
            history=np.array(history),
            medoids=self.medoids,
            labels=self.near,
            objectives=np.array([self.objective]),
        )


def _single(search: _Search) -> KMedoidsResult:
    """Return the one point with the least sum of distances; no search is needed."""
    before = search.objective
    totals = _cluster_totals(search.D, np.arange(len(search.D)), np.array([0, len(search.D)]))
    search.medoids[0] = totals.argmin()
    search.refresh()
    return search.finish(Status.CONVERGED, [max(before, search.objective), search.objective])


def _swap(search: _Search, order: Integers, max_iter: int) -> KMedoidsResult:
    """Exchange medoids for candidates at once, until all points were tried in vain."""
    from bagwise.solvers.clustering._kmedoids_kernels import search_swaps

    n, tried, per_slice = len(search.D), 0, slice_length(_ENTRY_SECONDS)
    history = [search.objective]
    while tried < n and len(history) <= max_iter:
        place = 0
        while place < n and tried < n:
            checkpoint()
            place, tried = search_swaps(
                search.D, order, place, tried, per_slice, search.medoids,
                search.near, search.second, search.least, search.next_least,
                search.loss, search.total, search.change, search.gain,
            )  # fmt: skip
        history.append(search.objective)
        report("round", len(history) - 1, objective=history[-1])
    return search.finish(Status.CONVERGED if tried >= n else Status.MAX_ITER, history)


def _alternate(search: _Search, max_iter: int) -> KMedoidsResult:
    """Assign points to medoids and find the medoids of clusters, until nothing gets better."""
    history = [search.objective]
    status = Status.MAX_ITER
    while status == Status.MAX_ITER and len(history) <= max_iter:
        before = search.medoids.copy()
        _move_to_centres(search)
        search.refresh()
        if not search.objective < history[-1]:  # equal medoids, or sums that differ by rounding
            search.medoids[:] = before
            search.refresh()
            status = Status.CONVERGED
        history.append(search.objective)
        report("round", len(history) - 1, objective=history[-1])
    return search.finish(status, history)


def _move_to_centres(search: _Search) -> None:
    """Make the member with the least sum of distances the medoid of each cluster."""
    labels = search.near.copy()
    labels[search.medoids] = np.arange(len(search.medoids))  # also if another one is as near
    members = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[members], np.arange(len(search.medoids) + 1))
    totals = _cluster_totals(search.D, members, bounds)
    for slot, medoid in enumerate(search.medoids):
        inside = slice(bounds[slot], bounds[slot + 1])
        own = totals[inside][np.searchsorted(members[inside], medoid)]
        best = int(totals[inside].argmin())
        if totals[inside][best] < own:
            search.medoids[slot] = members[inside][best]


def _cluster_totals(D: NDArray[Any], members: Integers, bounds: Integers) -> Floats:
    """Return the sum of distances from each member to its cluster; clusters are ranges."""
    from bagwise.solvers.clustering._kmedoids_kernels import cluster_totals

    totals = np.empty(len(members))
    for piece in short_slices(len(members), _ENTRY_SECONDS * int(np.diff(bounds).max())):
        cluster_totals(D, members, bounds, piece.start, piece.stop, totals)
    return totals


# ------------------------------------------------------------------------------------- starts


def _starts(
    D: NDArray[Any], k: int, init: Any, n_init: int, rng: np.random.Generator
) -> list[_Start]:
    n = len(D)
    everyone = np.arange(n)
    if not isinstance(init, str):
        return [_Start(_given(init, n, k), everyone)]
    if init == "build":
        return [_Start(_build(D, k, lambda: everyone), everyone)]
    if init not in ("random", "lab"):
        msg = (
            "init of solve_k_medoids must be 'random', 'lab', 'build' or numbers of points. "
            f"Got {init!r}."
        )
        raise ValueError(msg)
    if k == 1:  # found exactly, whatever the start
        n_init = 1
    size = min(n, 10 + int(np.ceil(np.sqrt(n))))
    starts = []
    for _ in range(n_init):
        if init == "random":
            medoids = rng.permutation(n)[:k]
        else:
            medoids = _build(D, k, lambda: rng.permutation(n)[:size])
        starts.append(_Start(medoids, rng.permutation(n)))
    return starts


def _given(init: ArrayLike, n: int, k: int) -> Integers:
    points = np.asarray(init)
    valid = points.shape == (k,) and points.dtype.kind in "iu"
    if not valid or len(np.unique(points)) != k or points.min() < 0 or points.max() >= n:
        msg = (
            f"init of solve_k_medoids must hold n_clusters={k} different numbers of points, "
            f"from 0 to {n - 1}. Got {init!r}."
        )
        raise ValueError(msg)
    return points.astype(np.int64)


def _build(D: NDArray[Any], k: int, draw: Any) -> Integers:
    """Choose one medoid after another among the points drawn, each the best for these."""
    from bagwise.solvers.clustering._kmedoids_kernels import build_gains

    least = np.full(len(D), np.inf)
    chosen = np.zeros(len(D), bool)
    medoids = np.empty(k, np.int64)
    for step in range(k):
        points = np.sort(draw())
        candidates = points[~chosen[points]]
        if not candidates.size:
            candidates = np.flatnonzero(~chosen)
        gains = np.empty(len(candidates))
        for piece in short_slices(len(candidates), _ENTRY_SECONDS * 2 * len(points)):
            build_gains(D, candidates, points, least, piece.start, piece.stop, gains)
        medoids[step] = candidates[gains.argmax()]
        chosen[medoids[step]] = True
        np.minimum(least, D[medoids[step]], out=least)
    return medoids


# -------------------------------------------------------------------------------------- input


def _checked(distance: ArrayLike, *, check_input: bool) -> NDArray[Any]:
    D: NDArray[Any] = np.asarray(distance)
    if D.ndim != 2 or D.shape[0] != D.shape[1] or not len(D):
        msg = f"solve_k_medoids needs a square matrix of distances. Got shape {D.shape}."
        raise ValueError(msg)
    if D.dtype not in (np.float32, np.float64):
        D = D.astype(np.float64)
    D = np.ascontiguousarray(D)
    if check_input:
        _check_entries(D)
    return D


def _check_entries(D: NDArray[Any]) -> None:
    from bagwise.solvers.clustering._kmedoids_kernels import is_sound

    for piece in short_slices(len(D), _ENTRY_SECONDS * 4 * len(D)):
        sound, symmetric = is_sound(D, piece.start, piece.stop, _SYMMETRIC)
        if not sound:
            msg = "solve_k_medoids needs distances that are finite and not negative."
            raise ValueError(msg)
        if not symmetric:
            msg = (
                "solve_k_medoids needs symmetric distances. "
                f"Got different ones both ways in rows {piece.start} to {piece.stop - 1}."
            )
            raise ValueError(msg)
