"""Maximum-margin clustering of bags: which instance stands for each bag, and in which cluster.

The objective is not convex. A concave part is replaced by a linear one that the current weights
choose (a key instance and a cluster for each bag), what is left is solved by `solve_bag_mmc`,
and the weights found choose again. The objective falls until the choice stays.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise._threads import ordered_map, single_blas_thread
from bagwise.bags import BagSource, Chunk, instance_bytes
from bagwise.solvers._checks import check_at_least, check_limits, check_positive, check_tol
from bagwise.solvers._result import Certificate, Status
from bagwise.solvers.clustering._bag_mmc import BagMMCResult, MarginProblem, balance_range, descend
from bagwise.solvers.operators._feature_rows import FeatureRows

#: Searches share their scans as long as the key rows of all of them take no more than this.
_KEY_ROW_BYTES = 2**28

#: Key instances are few if bags have so many instances on average.
_FEW = 4

#: Below this, handing a convex problem to a thread costs more than it brings.
_SERIAL_BYTES = 2**22

#: What a round may leave of the decrease that its convex problem has to offer. With rough first
#: rounds searches are up to twice as fast and end no higher, at large C a few percent lower.
_INNER_SHARE = 0.3

#: Objectives that differ by no more, relatively, are the same up to rounding in single precision.
_SAME = 1e-6

InnerSolver = Callable[..., BagMMCResult]


@dataclass(frozen=True, kw_only=True, eq=False)
class BagClusters(Certificate):
    """Clusters of bags, with the certificate of the search that found them.

    ``history`` holds the objective after each round and ``gap_history`` the duality gap of the
    convex problem that was solved in it. There is no lower bound: the objective is not convex.
    ``residual`` is the last relative decrease. ``STALLED`` means that the convex problem was not
    solved to the accuracy asked for when the search came to its end. In the result of several
    searches ``parts`` are the certificates of all, and everything else is that of the chosen one.

    Parameters
    ----------
    coef : ndarray of shape (n_clusters, d)
        The weights, which add up to 0.
    cluster : ndarray of int of shape (n_bags,)
        The cluster of each bag.
    place : ndarray of int of shape (n_bags,)
        The key instance: its place inside the bag.
    score : ndarray of shape (n_bags,)
        Its score ``w_cluster . x``.
    chosen : int
        Which search it was.
    """

    coef: Floats
    cluster: Integers
    place: Integers
    score: Floats
    chosen: int = 0

    @property
    def n_empty(self) -> int:
        """Number of clusters without bags."""
        return len(self.coef) - len(np.unique(self.cluster))


def search_bag_mmc(
    source: BagSource,
    starts: ArrayLike,
    *,
    C: float = 1.0,
    balance: float = inf,
    direction: ArrayLike | None = None,
    tol: float = 1e-2,
    max_iter: int = 100,
    inner: InnerSolver | None = None,
    inner_tol: float = 1e-3,
    inner_max_iter: int = 1000,
    n_threads: int | None = None,
) -> BagClusters:
    r"""Cluster bags by the margins of their key instances.

    For bags :math:`B_1, \dots, B_n` and :math:`k` clusters, with :math:`\kappa = k / (k - 1)`, the
    problem is

    .. math::

        \min_W \; \tfrac12 \sum_p \|w_p\|^2 + \frac{C}{n} \sum_i
        \Bigl(1 - \kappa \max_{x \in B_i} \bigl(\max_p w_p^\top x - \bar w^\top x\bigr)\Bigr)_+
        \quad \text{subject to} \quad \max_p w_p^\top m - \min_p w_p^\top m \le l .

    Parameters
    ----------
    source : BagSource
        The bags, in memory or in a file: the result is the same to the last bit. Between two scans
        only the key instances are touched; of a file, or of large bags, they are copied.
    starts : array-like of shape (n_starts, n_clusters, d)
        Where searches begin. Only the differences between the weights of clusters matter, and
        not their size.
    C, balance, direction : float, float, ndarray
        The numbers ``C`` and ``l`` and the vector ``m``, as in `solve_bag_mmc`. With ``l = 0``
        the direction ``m`` is taken out of ``starts`` too.
    tol : float
        A search ends when no bag changes its key instance or cluster, or when a round lowers the
        objective by at most this share.
    max_iter : int
        Most rounds.
    inner : callable, optional
        Solver of the convex problem, with the arguments of `solve_bag_mmc`.
    inner_tol, inner_max_iter : float, int
        What it is asked for.
    n_threads : int or None
        Number of threads; it does not change the result.

    Returns
    -------
    BagClusters
        Of the search with the lowest objective among those without an empty cluster; if all have
        one, among all. The first of several that are equal up to rounding.
    """
    started = perf_counter()
    name = "search_bag_mmc"
    check_limits(name, tol, max_iter, least=1)
    check_tol(name, inner_tol, "inner_tol")
    check_at_least(name, "inner_max_iter", inner_max_iter, 1)
    check_positive(name, "C", C)
    bags = source.bags
    weights = np.array(starts, np.float64)
    if weights.ndim != 3 or not len(weights) or weights.shape[1] < 2:
        msg = (
            "starts of search_bag_mmc must have shape (n_starts, n_clusters, n_features) with "
            f"at least 1 start and 2 clusters. Got {weights.shape}."
        )
        raise ValueError(msg)
    if weights.shape[2] != bags.n_features or not np.isfinite(weights).all():
        msg = (
            f"starts of search_bag_mmc must hold finite weights of {bags.n_features} features. "
            f"Got shape {weights.shape}."
        )
        raise ValueError(msg)
    weights -= weights.mean(axis=1, keepdims=True)
    unit, width, _ = balance_range(name, bags.n_features, balance, direction)
    if width == 0.0:
        weights -= (weights @ unit)[:, :, None] * unit
    setting = _Setting(
        float(C), balance, direction, tol, max_iter, inner, inner_tol, inner_max_iter
    )
    per_search = max(1, len(bags) * _row_bytes(source))
    together = int(np.clip(_KEY_ROW_BYTES // per_search, 1, len(weights)))
    shared = None if _keeps_rows(source) else _SharedRows(source)
    found: list[BagClusters] = []
    with single_blas_thread():  # once and for all, not in each of the maps within
        for first in range(0, len(weights), together):
            group = weights[first : first + together]
            searches = [_Search(source, shared or _KeptRows(source), w, setting) for w in group]
            _run_together(source, searches, n_threads)
            found += [search.result(started) for search in searches]
    return _best_of(found, perf_counter() - started)


def balance_direction(source: BagSource) -> tuple[Floats, float]:
    """Return the sum over bags of their mean instances, and that of the mean lengths of instances.

    Where the first is tiny beside the second, the bags are centred, and a bound on the first
    restricts nothing.
    """

    def add(chunk: Chunk) -> tuple[Floats, float]:
        share = np.repeat(1.0 / chunk.bags.sizes, chunk.bags.sizes)
        X = chunk.instances
        if sp.issparse(X):
            square = X.astype(np.float64).power(2).sum(axis=1)
        else:
            square = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        return np.asarray(X.T @ share, np.float64), float(share @ np.sqrt(np.asarray(square)))

    total: tuple[Floats, float] = source.reduce(add)
    return total


def _row_bytes(source: BagSource) -> int:
    """Bytes that an instance takes, on average if sparse."""
    return instance_bytes(source.bags) // max(1, source.bags.n_instances)


def _keeps_rows(source: BagSource) -> bool:
    """Tell whether key instances are copied: those of a file, lazy ones, and a few out of many.

    Side by side they are read faster than where they are, among the others.
    """
    bags = source.bags
    is_few = not bags.is_sparse and bags.n_instances >= _FEW * len(bags)
    return bool(bags.is_memory_mapped or bags.is_lazy or is_few)


class _Setting(NamedTuple):
    """What all searches have in common."""

    C: float
    balance: float
    direction: Any
    tol: float
    max_iter: int
    inner: InnerSolver | None
    inner_tol: float
    inner_max_iter: int


class _Choice(NamedTuple):
    """What the weights of a search choose in a range of bags."""

    changed: Integers  # bags whose key instance or cluster is a new one
    place: Integers  # of these bags
    cluster: Integers
    rows: Any  # their new key instances, if they have to be kept
    score: Floats  # of all bags of the range


class _SharedRows:
    """Key instances of bags in memory: rows of the matrix that holds all instances.

    It has no state of its own, so that all searches use one.
    """

    def __init__(self, source: BagSource) -> None:
        matrix, self._starts, _ = source.bags.segments
        self._matrix = FeatureRows(matrix)

    def put(self, choices: Sequence[_Choice]) -> None:
        """Take note of new key instances; here there is nothing to do."""

    def at(self, place: Integers) -> FeatureRows:
        """Return the key instances at these places."""
        return self._matrix.take(self._starts + place)


class _KeptRows:
    """Key instances of bags in a file, in a matrix of their own."""

    def __init__(self, source: BagSource) -> None:
        shape, dtype = (len(source.bags), source.bags.n_features), source.bags.dtype
        self._rows: Any = (
            sp.csr_array(shape, dtype=dtype) if source.bags.is_sparse else np.zeros(shape, dtype)
        )

    def put(self, choices: Sequence[_Choice]) -> None:
        """Replace the key instances of some bags."""
        if not sp.issparse(self._rows):
            for choice in choices:
                self._rows[choice.changed] = choice.rows
            return
        changed = np.concatenate([choice.changed for choice in choices])
        n = self._rows.shape[0]
        order = np.arange(n)
        order[changed] = np.arange(n, n + len(changed))
        rows = [choice.rows for choice in choices]
        self._rows = sp.vstack([self._rows, *rows], format="csr")[order]

    def at(self, place: Integers) -> FeatureRows:
        """Return the key instances, which are at these places."""
        return FeatureRows(self._rows)


class _Best(NamedTuple):
    """The lowest objective met, with the weights and what they choose."""

    objective: float
    weights: Floats
    cluster: Integers
    place: Integers
    score: Floats


class _Search:
    """One search: its weights, what they choose, and how the objective fell."""

    def __init__(
        self, source: BagSource, rows: _SharedRows | _KeptRows, weights: Floats, setting: _Setting
    ) -> None:
        self.rows, self.weights, self.setting = rows, weights, setting
        self.k = len(weights)
        n, d = len(source.bags), source.bags.n_features
        self.n = n
        self.balance = balance_range("search_bag_mmc", d, setting.balance, setting.direction)
        self.place, self.cluster = np.full(n, -1), np.full(n, -1)
        self.score, self.alpha = np.zeros(n), np.zeros(n)
        # Solvers visit bags as the start scores them: their order in the data does not matter.
        self.order: Integers | None = None
        self.share = _INNER_SHARE
        self.inner: BagMMCResult | None = None
        self.best = _Best(inf, weights, self.cluster, self.place, self.score)
        self.status: Status | None = None
        self.change = 0.0
        self.history: list[float] = []
        self.gaps: list[float] = []

    def choose(self, choices: Sequence[_Choice]) -> None:
        """Take what the weights choose in all bags, and see whether the search is at its end."""
        changed = np.concatenate([choice.changed for choice in choices])
        self.score = np.concatenate([choice.score for choice in choices])
        self.place[changed] = np.concatenate([choice.place for choice in choices])
        self.cluster[changed] = np.concatenate([choice.cluster for choice in choices])
        self.rows.put(choices)
        if self.order is None:
            self.order = np.lexsort((self.score, self.cluster))
        if self.inner is not None:  # else the weights are a start, whose size means nothing
            self._compare(self.inner, is_fixed=not len(changed))

    def _compare(self, inner: BagMMCResult, *, is_fixed: bool) -> None:
        setting, before = self.setting, self.best.objective
        loss = float(np.maximum(1.0 - self.kappa * self.score, 0.0).sum())
        penalty = 0.5 * float(np.vdot(self.weights, self.weights))
        objective = penalty + setting.C / self.n * loss
        self.change = (before - objective) / before if before < inf else inf
        if objective < before:
            self.best = _Best(
                objective, self.weights, self.cluster.copy(), self.place.copy(), self.score
            )
        self.history.append(self.best.objective)
        self.gaps.append(inner.gap)
        if is_fixed or self.change <= setting.tol:
            if inner.residual <= setting.inner_tol:
                self.status = Status.CONVERGED
            elif self.share == 0.0 and not inner.converged:
                self.status = Status.STALLED
            self.share = 0.0  # the end is near: from now on the convex problem is solved well
        if self.status is None and len(self.history) >= setting.max_iter:
            self.status = Status.MAX_ITER

    @property
    def kappa(self) -> float:
        """Factor of margins."""
        return self.k / (self.k - 1)

    def solve(self) -> "_Search":
        """Find the best weights for the choice."""
        setting = self.setting
        matrix = self.rows.at(self.place)
        if setting.inner is None:
            point = descend(
                MarginProblem(matrix, self.cluster, self.k, setting.C, *self.balance),
                self.alpha, tol=setting.inner_tol, max_iter=setting.inner_max_iter,
                before=self.best.objective, share=self.share, order=self.order,
                # The margins of a start depend on its size, which must not matter.
                margin0=None if self.inner is None else self.kappa * self.score,
            )  # fmt: skip
        else:
            point = setting.inner(
                matrix.matrix, self.cluster, self.k, C=setting.C, balance=setting.balance,
                direction=setting.direction, rows=matrix.rows, alpha0=self.alpha,
                tol=setting.inner_tol, max_iter=setting.inner_max_iter,
            )  # fmt: skip
            self.share = 0.0
        self.alpha, self.weights, self.inner = point.x, point.coef, point
        return self

    def result(self, started: float) -> BagClusters:
        """Return where the search ended."""
        assert self.status is not None
        best = self.best
        return BagClusters(
            coef=best.weights,
            cluster=best.cluster,
            place=best.place,
            score=best.score,
            objective=best.objective,
            status=self.status,
            n_iter=len(self.history),
            residual=max(self.change, 0.0) if self.change < inf else 0.0,
            history=np.array(self.history),
            gap_history=np.array(self.gaps),
            solve_time=perf_counter() - started,
        )


def _run_together(source: BagSource, searches: list[_Search], n_threads: int | None) -> None:
    """Run searches in step, so that one pass over the bags serves them all."""
    keep_rows = _keeps_rows(source)
    if len(source.bags) * _row_bytes(source) < _SERIAL_BYTES:
        n_threads = 1
    active = searches
    while active:
        weights = np.concatenate([search.weights for search in active]).T
        dtype = np.float64 if source.bags.is_sparse else source.bags.dtype
        weights = np.ascontiguousarray(weights, dtype)
        places = np.stack([search.place for search in active])
        clusters = np.stack([search.cluster for search in active])
        choices = list(source.map(_scan, weights, places, clusters, keep_rows))
        for number, search in enumerate(active):
            search.choose([of_chunk[number] for of_chunk in choices])
        active = [search for search in active if search.status is None]
        with closing(ordered_map(_Search.solve, active, n_threads=n_threads)) as solved:
            for _ in solved:
                pass
        n_rounds = max(len(search.history) for search in searches)
        report("round", n_rounds, objective=min(search.best.objective for search in searches))


def _scan(
    chunk: Chunk, weights: NDArray[Any], places: Integers, clusters: Integers, keep_rows: bool
) -> list[_Choice]:
    """Find the key instance and the cluster of each bag of a chunk, for several searches."""
    from bagwise.solvers.clustering import _bag_scan_kernels as kernels

    X, starts = chunk.instances, chunk.starts
    n_searches = len(places)
    if sp.issparse(X):
        scores = np.empty((X.shape[0], weights.shape[1]))
        kernels.csr_product(X.data, X.indices, X.indptr, weights, scores)
    else:
        scores = X @ weights
    shape = (n_searches, len(starts))
    place, cluster, best = np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape)
    k = weights.shape[1] // n_searches
    kernels.scan_bags(scores, starts, chunk.stops, k, place, cluster, best)
    is_new = (place != places[:, chunk.span]) | (cluster != clusters[:, chunk.span])
    out = []
    for q in range(n_searches):
        changed = np.flatnonzero(is_new[q])
        rows = X[starts[changed] + place[q, changed]] if keep_rows else None
        out.append(
            _Choice(
                changed + chunk.span.start, place[q, changed], cluster[q, changed], rows, best[q]
            )
        )
    return out


def _best_of(found: list[BagClusters], seconds: float) -> BagClusters:
    """Choose a search, and keep the certificates of all."""
    numbers = [i for i, result in enumerate(found) if not result.n_empty] or range(len(found))
    least = min(found[i].objective for i in numbers)
    chosen = next(i for i in numbers if found[i].objective <= (1.0 + _SAME) * least)
    best = found[chosen]
    return BagClusters(
        coef=best.coef,
        cluster=best.cluster,
        place=best.place,
        score=best.score,
        chosen=chosen,
        objective=best.objective,
        status=best.status,
        n_iter=best.n_iter,
        residual=best.residual,
        history=best.history,
        gap_history=best.gap_history,
        solve_time=seconds,
        parts=tuple(result.certificate for result in found),
    )
