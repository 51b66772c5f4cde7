"""Maximum-margin clustering of instances by cutting planes, and a vote in each bag (CPM3C)."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise._threads import ordered_map
from bagwise.bags import Bags, BagSource, Chunk, segment_argmax
from bagwise.base import BagClusterer, BagTags, Summary, documented, used_first
from bagwise.cluster._starts import given_weights, kmeans_weights, order_by_values
from bagwise.cluster._votes import shares
from bagwise.solvers import Certificate, MMCResult, Status, solve_mmc_by_cccp, solve_mmc_by_cuts

#: Of the sum of absolute values: a sum below this is 0, as that of centred instances.
_ROUNDING = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}


@documented
class CPM3C(BagClusterer):
    r"""Cluster instances by maximum margins, and give each bag the cluster most of them are in.

    Over all :math:`N` instances of all bags and :math:`k` clusters, with :math:`p_i` the cluster in
    which instance :math:`x_i` has its highest score :math:`w_p^\top x_i`, the problem is

    .. math::

        \min_W \; \tfrac12 \sum_p \|w_p\|^2 + \frac{C}{N} \sum_i
        \Bigl(1 - w_{p_i}^\top x_i + \max_{r \ne p_i} w_r^\top x_i\Bigr)_+
        \quad \text{subject to} \quad
        \Bigl|\, \sum_i (w_p - w_q)^\top x_i \Bigr| \le l \quad \text{for all } p, q .

    Parameters
    ----------
    n_clusters : int
        Number of clusters :math:`k`. One has nothing to learn: its weights are 0.
    C : float
        Weight of the losses. What counts is ``C`` times the squared length of instances: with
        other units of the features another ``C`` is the same.
    balance : float
        The bound :math:`l` that keeps one cluster from taking all; 0 takes the direction
        :math:`\sum_i x_i` away from the weights, ``inf`` sets no bound. Of instances whose mean is
        0 it asks nothing.
    n_init : int
        Number of starts; the one with the smallest objective is kept, of those that leave no
        cluster without bags if there are any. One if weights are given.
    init : {"random", "kmeans"} or array-like of shape (n_clusters, n_features)
        The first weights: normal random numbers, the centres of k-means, or given. Only the order
        of the scores that they give to clusters matters.
    solver : {"cccp", "cutting_plane"}
        ``"cutting_plane"``: the published method. It collects cutting planes of the loss, and
        freezes the best cluster of each instance while it minimises over them. ``"cccp"``:
        afterwards the best start goes on with the concave-convex procedure, which freezes the best
        clusters, trains a multi-class machine for them, and so on; this ends in a point that it
        cannot improve.
    max_cuts : int
        Most cutting planes of a start.
    max_iter : int
        Most quadratic programmes of a start, and most rounds of the concave-convex procedure.
    tol : float
        A start has converged when the mean loss is at most ``tol`` above its cutting planes; the
        concave-convex procedure when a round lowers the objective by at most ``tol`` times it.
    |random_state: starts, n_jobs: starts, verbose: fit|

    Attributes
    ----------
    |labels_, instance_labels_|
    key_instances_ : ndarray of int of shape (n_bags,)
        Place of the instance in each bag that is most clearly in the bag's cluster.
    coef_ : ndarray of shape (n_clusters, n_features)
        The weights :math:`w_p`.
    |n_features_in_, feature_names_in_|
    result_ : Certificate
        The objective, and how the best start ended; ``parts`` has the certificates of all starts,
        as the cutting planes left them.
    n_iter_ : int
        Cutting planes of the best start, and rounds of the concave-convex procedure after it.

    See Also
    --------
    BagKMeans : K-means in place of maximum margins.

    Notes
    -----
    The loss is not convex, and that cutting planes of it lead to a minimum is not proven. With
    ``C`` times the squared length of instances much above 1 they hardly ever come within ``tol`` of
    the loss. The comparison in [2]_ therefore ends at 20 cuts, the default here. With
    ``solver="cutting_plane"`` a run that ends there has not converged, and a warning says so. The
    objective is always that of the problem above, never that of the planes, and the best of all
    points visited is kept.

    The score of an instance for a cluster, as `instance_decision_function` has it, is by how much
    :math:`w_p^\top x` is above the best of the other clusters. Ties between clusters, of instances
    as of bags, go to the lowest number.

    References
    ----------
    .. [1] B. Zhao, F. Wang, C. Zhang: Efficient multiclass maximum margin clustering. Proceedings
       of the 25th International Conference on Machine Learning (2008) 1248-1255.
    .. [2] D. Zhang, F. Wang, L. Si, T. Li: Maximum margin multiple instance clustering with
       applications to image and text clustering. IEEE Transactions on Neural Networks 22 (2011)
       739-751.

    Examples
    --------
    >>> from bagwise.cluster import CPM3C
    >>> bags = [[[0, 5], [1, 4]], [[5, 0], [4, 1], [0, 4]], [[1, 5], [0, 4]], [[4, 0]]]
    >>> CPM3C(n_clusters=2, random_state=0).fit(bags).labels_
    array([1, 0, 1, 0])
    """

    _hides_nan = True  # in shares of instances

    _summary: ClassVar[Summary] = Summary(
        assumption="a wide margin separates the clusters of instances, and bags follow them",
        objective="hinge loss of the margins of instances between clusters, over the clusters too",
        cost="$k d N$ in each pass, for $k$ clusters",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "balance": [Interval(Real, 0, np.inf, closed="both")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"random", "kmeans"}), "array-like"],
        "solver": [StrOptions({"cccp", "cutting_plane"})],
        "max_cuts": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        C: float = 1.0,
        balance: float = 1.0,
        n_init: int = 5,
        init: Any = "random",
        solver: str = "cccp",
        max_cuts: int = 20,
        max_iter: int = 1000,
        tol: float = 0.01,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.C = C
        self.balance = balance
        self.n_init = n_init
        self.init = init
        self.solver = solver
        self.max_cuts = max_cuts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _convergence_advice(self) -> str:  # type: ignore[override]
        if self.solver == "cccp":
            return "raise max_iter or tol"
        return "raise max_iter, max_cuts or tol, or choose solver='cccp'"

    def _learn(self, bags: Bags) -> dict[str, Any]:
        result, parts = self._solve(BagSource(bags))
        votes = shares(bags, result.labels, self.n_clusters).argmax(axis=1)
        _, order = used_first(self, votes, self.n_clusters)
        coef = np.ascontiguousarray(result.x[order])
        leads = _leads(bags, coef)
        labels = shares(bags, leads.argmax(axis=1), self.n_clusters).argmax(axis=1)
        own = leads[np.arange(len(leads)), np.repeat(labels, bags.sizes)]
        return {
            "labels_": labels,
            "instance_labels_": leads.argmax(axis=1),
            "key_instances_": segment_argmax(own, bags.offsets[:-1], bags.offsets[1:]),
            "coef_": coef,
            "result_": replace(result.certificate, parts=parts),
        }

    def _solve(self, source: BagSource) -> tuple[MMCResult, tuple[Certificate, ...]]:
        """Return the best solution found, and the certificates of all starts."""
        if self.n_clusters == 1:
            return _one_cluster(source.bags), ()
        problem: dict[str, Any] = {
            "C": float(self.C),
            "balance": float(self.balance),
            "direction": _total(source),
            "tol": self.tol,
            "max_iter": self.max_iter,
        }
        result, parts = self._best_start(source, problem)
        if self.solver == "cccp":
            polished = solve_mmc_by_cccp(source, result.x, **problem)
            result = _joined(result, polished, self.max_cuts)
        return result, parts

    def _best_start(
        self, source: BagSource, problem: dict[str, Any]
    ) -> tuple[MMCResult, tuple[Certificate, ...]]:
        """Run all starts; return the one with the smallest objective, and all certificates."""
        starts = self._starts(source)

        def run(start: Floats) -> MMCResult:
            return solve_mmc_by_cuts(source, start, max_cuts=self.max_cuts, **problem)

        def rank(result: MMCResult) -> tuple[int, float]:
            votes = shares(source.bags, result.labels, self.n_clusters).argmax(axis=1)
            return -len(np.unique(votes)), result.objective

        n_threads = min(effective_n_jobs(self.n_jobs), len(starts))
        results = list(ordered_map(run, starts, n_threads=n_threads))
        return min(results, key=rank), tuple(result.certificate for result in results)

    def _starts(self, source: BagSource) -> Floats:
        shape = (self.n_clusters, source.bags.n_features)
        if not isinstance(self.init, str):
            return given_weights(self, shape)
        random = check_random_state(self.random_state)
        if self.init == "random":
            normal: Floats = random.normal(size=(self.n_init, *shape))
            return normal
        order = order_by_values(source, random)
        return kmeans_weights(source, order, self.n_clusters, self.n_init, random)

    # ------------------------------------------------------------------------------ new bags

    def decision_function(self, X: Any) -> Floats:
        """Return which share of the instances of each bag is in each cluster, as `transform`.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        shares : ndarray of shape (n_bags, n_clusters)
            Shares; a bag is in the cluster of the largest.
        """
        return self._bag_scores(self._validated(X))

    def _bag_outputs(self, bags: Bags) -> Floats:
        return shares(bags, self._instance_outputs(bags).argmax(axis=1), len(self.coef_))

    def _instance_outputs(self, bags: Bags) -> Floats:
        return _leads(bags, self.coef_)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(order_tolerance=1e-6, scale_powers={"C": -2})


def _one_cluster(bags: Bags) -> MMCResult:
    return MMCResult(
        x=np.zeros((1, bags.n_features)),
        labels=np.zeros(bags.n_instances, np.int64),
        objective=0.0,
        status=Status.CONVERGED,
        n_iter=1,
        history=np.zeros(1),
    )


def _total(source: BagSource) -> Floats:
    """Return the sum of all instances; 0 if they cancel out up to rounding."""

    def add(chunk: Chunk) -> tuple[Floats, Floats]:
        instances = chunk.instances
        plain, size = instances.sum(axis=0, dtype=np.float64), abs(instances).sum(axis=0)
        return np.asarray(plain).ravel(), np.asarray(size, np.float64).ravel()

    total, size = source.reduce(add)
    return np.where(np.abs(total) <= _ROUNDING[source.bags.dtype] * size, 0.0, total)


def _leads(bags: Bags, coef: Floats) -> Floats:
    """Return by how much the score of each cluster is above the best of the others."""

    def lead(chunk: Chunk) -> NDArray[Any]:
        scores = np.asarray(chunk.instances @ coef.T.astype(bags.dtype))
        if scores.shape[1] == 1:
            return scores
        top, next_best = np.partition(scores, (-2, -1), axis=1)[:, :-3:-1].T[:, :, None]
        is_top = np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]
        return scores - np.where(is_top, next_best, top)

    return np.asarray(BagSource(bags).concatenate(lead), np.float64)


def _joined(first: MMCResult, then: MMCResult, max_cuts: int) -> MMCResult:
    """Return the second of two runs with the history of both.

    That the cuts ended at their limit is as it should be; that they ended before it and have not
    converged is not: ``max_iter`` was too low.
    """
    cut_short = not first.converged and first.n_iter < max_cuts
    return replace(
        then,
        status=Status.MAX_ITER if cut_short else then.status,
        n_iter=first.n_iter + then.n_iter,
        history=np.concatenate([first.history, then.history]),
        solve_time=first.solve_time + then.solve_time,
    )
