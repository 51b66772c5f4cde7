"""M3IC: maximum-margin clustering of bags by their key instances (Zhang et al. 2011)."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._compat import Interval, StrOptions
from bagwise._warnings import warn
from bagwise.bags import (
    Bags,
    BagSource,
    in_parts,
    rows_of,
    scan_max,
    segment_argmax,
    segment_max,
)
from bagwise.base import (
    MAP_CONSTRAINTS,
    BagClusterer,
    BagTags,
    FeatureMap,
    KernelParameters,
    Summary,
    documented,
    expand,
    make_features,
    used_first,
)
from bagwise.cluster._starts import given_weights, kmeans_weights, order_by_values
from bagwise.solvers import (
    Certificate,
    Status,
    balance_direction,
    search_bag_mmc,
    solve_bag_mmc_by_cuts,
)

_SWEEPS, _CUTS = 1000, 300  # most of them in a convex problem
_INNER_TOL = 1e-3  # to which these problems are solved, relative to the objective
_MOST_SUMMED = 1000  # instances that a random start with a kernel is made of
_SERIAL_VALUES = 2**20  # below this many, handing scans to threads costs more than it brings
_CENTRED = 100  # times the rounding of numbers: a mean below this is 0


@documented
class M3IC(KernelParameters, BagClusterer):
    r"""Cluster bags by maximum margins of one key instance each (M3IC-MBM).

    For bags :math:`B_1, \dots, B_n` and :math:`k` clusters, with :math:`\bar w` the mean of the
    weights and :math:`m = \sum_i \frac{1}{|B_i|} \sum_{x \in B_i} x`, the problem is

    .. math::

        \min_W \; \tfrac12 \sum_p \|w_p\|^2 + \frac{C}{n} \sum_i
        \Bigl(1 - \frac{k}{k - 1} \max_{x \in B_i} \max_p \, (w_p - \bar w)^\top x\Bigr)_+
        \quad \text{subject to} \quad \max_p w_p^\top m - \min_p w_p^\top m \le l .

    The instance with the highest score stands for its bag, and the cluster for which it has that
    score is the bag's. There is no intercept: clusters are told apart by directions from 0.

    Parameters
    ----------
    n_clusters : int
        Number of clusters :math:`k`. One holds all bags, with weights of 0.
    C : float
        Weight of the losses. The number that counts is :math:`C R^2` with :math:`R^2` the mean
        squared length of instances: features times 10 and ``C`` divided by 100 have the same
        clusters. With :math:`C R^2` far below 1 all bags are inside the margin and the weights are
        differences of means; solutions with an empty cluster are common then. Above 1000 or so
        the weights depend on few bags. Features are taken as they are: scale them by one number
        (dividing each by its own deviation changes the method), or not at all.
    balance : float
        The bound :math:`l` against one cluster that takes all; 0 takes the direction :math:`m` out
        of the weights altogether, ``inf`` sets no bound. As :math:`m` is a sum over bags, the
        same ``balance`` is a tighter bound the more bags there are; the scale of the features does
        not matter.
    n_init : int
        Number of searches. The one with the lowest objective is kept, among those that leave no
        cluster empty if there are any. One if weights are given.
    init : {"random", "kmeans"} or array-like of shape (n_clusters, n_features)
        First weights: normal random numbers, the centres of k-means on all instances less their
        mean, or given. With a kernel other than the linear one they cannot be given. Their size
        makes no difference.
    |kernel: clusters, gamma, degree, coef0|
    |approx|
        With None there can be 10,000 instances at most.
    |rank|
    solver : {"dual", "cutting_plane"}
        Solver of the convex problems inside: coordinate descent in the dual, or cutting planes as
        in the paper, which are slower. Both solve the same problems, but only the first solves
        those of early rounds roughly: from the same start they may end in different points.
    tol : float
        A search ends when no bag changes its key instance or cluster, or a round lowers the
        objective by at most this share of it.
    max_iter : int
        Most rounds of a search.
    max_memory : int, str or None
        Bound on the instances in memory at a time, in bytes or like ``"512MB"``, where they are
        read from a file (`bagwise.Bags.open`); the key instances come on top. With a kernel other
        than the linear one the features of all instances come on top too.
    random_state : int, RandomState or None
        Where first weights and random maps come from.
    n_jobs : int or None
        Threads; None means all that are there (or ``BAGWISE_NUM_THREADS``). Their number does not
        change the result.
    |verbose: fit|

    Attributes
    ----------
    labels_ : ndarray of int of shape (n_bags,)
        Cluster of each training bag, counted from 0 without holes.
    key_instances_ : ndarray of int of shape (n_bags,)
        Place inside the bag of the instance that stands for it.
    coef_ : ndarray of shape (n_clusters, n_features)
        The weights; with the linear kernel, or of the features of ``approx="fourier"``.
    support_vectors_ : matrix of shape (n_vectors, n_features)
        Instances that the weights are made of, with other kernels.
    dual_coef_ : ndarray of shape (n_clusters, n_vectors)
        Their coefficients in the scores of each cluster.
    |gamma_, fourier_weights_, fourier_offset_, n_features_in_, feature_names_in_|
    result_ : Certificate
        Of the search that was kept: its objective, never that of a relaxation; the objective after
        each round, and the duality gap of the convex problem of each round. ``parts`` has the
        certificates of all searches.
    n_iter_ : int
        Rounds of the search that was kept.

    See Also
    --------
    CPM3C : Margins of all instances, and a vote in each bag.
    BAMIC : K-medoids with distances between bags.

    Notes
    -----
    The objective is not convex. A search fixes the key instance and the cluster of each bag, solves
    the convex problem that is left, lets the new weights choose again, and so on. It ends in a
    point that this cannot improve, after five to ten rounds as a rule. Early rounds solve their
    problem roughly, the last one to a duality gap of a thousandth of the objective. Nothing depends
    on the order of bags and instances, beyond rounding.

    The constraint looks at the mean of all bags only. It does not keep clusters from being empty,
    and it asks nothing of bags that are centred (:math:`m = 0`). A warning tells of both, but not
    of bags that are nearly centred, where :math:`m` has an arbitrary direction: do not subtract
    the mean of the features, as `sklearn.preprocessing.StandardScaler` does.

    References
    ----------
    .. [1] D. Zhang, F. Wang, L. Si, T. Li: Maximum margin multiple instance clustering with
       applications to image and text clustering. IEEE Transactions on Neural Networks 22 (2011).

    Examples
    --------
    >>> from bagwise.cluster import M3IC
    >>> bags = [[[0, 5], [1, 1]], [[5, 0], [1, 1], [1, 2]], [[1, 1], [0, 4]], [[4, 0]]]
    >>> model = M3IC(n_clusters=2, random_state=0).fit(bags)
    >>> model.labels_[0] == model.labels_[2], model.labels_[1] == model.labels_[3]
    (np.True_, np.True_)
    >>> model.key_instances_
    array([0, 0, 1, 0])
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="in each bag one instance lies far on the side of its cluster",
        objective=(
            "hinge loss of the widest margins of bags between clusters, over the clusters too"
        ),
        cost="$k d N$ in each pass, for $k$ clusters",
    )

    _convergence_advice = "scale the features, lower C, or raise max_iter or tol"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "balance": [Interval(Real, 0, np.inf, closed="both")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"random", "kmeans"}), "array-like"],
        **KernelParameters._parameter_constraints,
        **MAP_CONSTRAINTS,
        "solver": [StrOptions({"dual", "cutting_plane"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
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
        n_init: int = 10,
        init: Any = "random",
        kernel: Any = "linear",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        solver: str = "dual",
        tol: float = 0.01,
        max_iter: int = 100,
        max_memory: int | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.C = C
        self.balance = balance
        self.n_init = n_init
        self.init = init
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.approx = approx
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -------------------------------------------------------------------------------- learning

    def _learn(self, bags: Bags) -> dict[str, Any]:
        random = check_random_state(self.random_state)
        feature_map, mapped = self._mapped(bags, np.random.default_rng(random.randint(2**31 - 1)))
        coef, certificate = self._search(bags, mapped, random)
        # Labels are computed as in `predict`, so that both agree to the last bit.
        fitted = feature_map.attributes(coef)
        best, places = self._best(bags, fitted)
        _, order = used_first(self, best.argmax(axis=1), self.n_clusters)
        if (np.diff(order) < 0).any():
            fitted = feature_map.attributes(np.ascontiguousarray(coef[order]))
            best, places = self._best(bags, fitted)
        labels = best.argmax(axis=1)
        return {
            "labels_": labels,
            "key_instances_": places[np.arange(len(bags)), labels],
            "result_": certificate,
            **fitted,
        }

    def _mapped(self, bags: Bags, rng: np.random.Generator) -> tuple[FeatureMap, Bags]:
        """Return the map of the kernel, and the bags in its features."""
        kernel = self._resolve_kernel(bags)
        if kernel.name == "linear":  # the bags themselves, which may be read from a file
            return FeatureMap(kernel), bags
        feature_map, features = make_features(
            kernel,
            rows_of(bags),
            approx=self.approx,
            rank=self.rank,
            rng=rng,
            owner=type(self).__name__,
        )
        return feature_map, Bags(features, bags.offsets)

    def _search(self, bags: Bags, mapped: Bags, random: Any) -> tuple[Floats, Certificate]:
        """Return the weights of features, and the certificate of the search that found them."""
        k, C, n_threads = self.n_clusters, float(self.C), self._n_threads()
        if mapped.n_instances * mapped.n_features < _SERIAL_VALUES:
            n_threads = 1
        if k == 1:
            nothing = np.array([C])
            end = Certificate(objective=C, status=Status.CONVERGED, n_iter=0, history=nothing)
            return np.zeros((1, mapped.n_features)), end
        starts = self._starts(bags, mapped, random)
        source = BagSource(
            mapped,
            n_threads=n_threads,
            max_memory=self.max_memory if self.kernel == "linear" else None,
            scratch=8 * k * len(starts),
        )
        by_cuts = self.solver == "cutting_plane"
        result = search_bag_mmc(
            source,
            starts,
            C=C,
            balance=float(self.balance),
            direction=self._direction(source),
            tol=self.tol,
            max_iter=self.max_iter,
            inner=solve_bag_mmc_by_cuts if by_cuts else None,
            inner_tol=_INNER_TOL,
            inner_max_iter=_CUTS if by_cuts else _SWEEPS,
            n_threads=n_threads,
        )
        return result.coef, result.certificate

    def _n_threads(self) -> int | None:
        return None if self.n_jobs is None else effective_n_jobs(self.n_jobs)

    def _direction(self, source: BagSource) -> Floats | None:
        """Return the direction of the balance constraint; None, and a warning, if there is none."""
        if self.balance == np.inf:
            return None
        direction, length = balance_direction(source)
        rounding = _CENTRED * float(np.finfo(source.bags.dtype).eps)
        if np.linalg.norm(direction) > rounding * length:
            return direction
        msg = (
            f"The bags are centred: the sum of their mean instances is 0, so balance={self.balance}"
            f" of {type(self).__name__} asks nothing. Do not subtract the mean of the features, or "
            "set balance=inf."
        )
        warn(msg, ConvergenceWarning)
        return None

    def _starts(self, bags: Bags, mapped: Bags, random: Any) -> Floats:
        if not isinstance(self.init, str):
            if self.kernel != "linear":
                msg = f"init of M3IC can be weights with kernel='linear' only. Got {self.kernel!r}."
                raise ValueError(msg)
            return given_weights(self, (self.n_clusters, bags.n_features))
        if self.init == "random" and self.kernel == "linear":
            shape = (self.n_init, self.n_clusters, bags.n_features)
            normal: Floats = random.normal(size=shape)
            return normal
        n_threads = self._n_threads()
        in_passes = self.kernel == "linear" or self.approx is not None  # else all are held
        limit = self.max_memory if in_passes else None
        source = BagSource(bags, n_threads=n_threads, max_memory=limit)
        order = order_by_values(source, random)  # the starts are the same in any order of bags
        if self.init == "kmeans":
            if mapped is not bags:
                source = BagSource(mapped, n_threads=n_threads)
            return kmeans_weights(source, order, self.n_clusters, self.n_init, random)
        # Sums of instances, as weights of a kernel are, whatever the features that stand for it.
        rows = random.permutation(order)[:_MOST_SUMMED]
        factors = random.normal(size=(self.n_init, self.n_clusters, len(rows)))
        return np.asarray(factors @ mapped.instances[rows], np.float64)

    # -------------------------------------------------------------------------------- scoring

    def predict_multi(self, X: Any, margin: float = 1.0) -> Booleans:
        r"""Return all clusters that a bag can be said to be in, none perhaps, or several.

        A bag is in cluster :math:`p` if one of its instances has a margin
        :math:`\frac{k}{k - 1} (w_p - \bar w)^\top x` of at least ``margin`` there: the highest of
        its margins puts it into its own cluster, and other instances may speak for others. The
        paper mentions bags of several clusters as future work; this rule is ours.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        margin : float
            The margin asked for. Training asks for 1, and many bags have just that up to the
            accuracy of the solver: a little less, such as 0.99, takes all of them in.

        Returns
        -------
        members : ndarray of bool of shape (n_bags, n_clusters)
            Which bag is in which cluster.
        """
        scores = self._bag_scores(self._validated(X))
        k = scores.shape[1]
        return k / max(1, k - 1) * scores >= margin

    def _bag_outputs(self, bags: Bags) -> Floats:
        return self._best(bags)[0]

    def _instance_outputs(self, bags: Bags) -> Floats:
        return expand(self, rows_of(bags))

    def _key_places(self, bags: Bags) -> Integers:
        best, places = self._best(bags)
        best = self._finite(bags, best)
        return places[np.arange(len(bags)), best.argmax(axis=1)]

    def _best(self, bags: Bags, fitted: Mapping[str, Any] | None = None) -> tuple[Floats, Integers]:
        """Return the highest score of each bag for each cluster, and its place in the bag.

        Fitted attributes are those of the estimator unless they are given.
        """
        known = vars(self) if fitted is None else fitted
        found: tuple[Floats, Integers] = in_parts(bags, lambda part: self._best_in(part, known))
        return found

    def _best_in(self, bags: Bags, fitted: Mapping[str, Any]) -> tuple[Floats, Integers]:
        n_threads = self._n_threads()
        if self.kernel == "linear":
            matrix, starts, stops = bags.segments
            best, places = scan_max(matrix, fitted["coef_"], starts, stops, n_threads=n_threads)
            return best.astype(np.float64, copy=False), places
        scores, offsets = expand(self, rows_of(bags), fitted), bags.offsets
        best = segment_max(scores, offsets[:-1], offsets[1:])
        return best, segment_argmax(scores, offsets[:-1], offsets[1:])

    def _invariances(self) -> dict[str, Any]:
        found = super()._invariances()  # without an intercept
        return {**found, "shift_invariant": False} if self.kernel == "linear" else found

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(order_tolerance=1e-3, max_rule=True, **self._invariances())
