"""K-means on instances, and the vote of its instances for each bag."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise._progress import counted
from bagwise.bags import Bags, BagSource, segment_argmax
from bagwise.base import BagClusterer, BagTags, Summary, documented, used_first
from bagwise.cluster._starts import (
    dense_rows,
    distant_rows,
    drawn_rows,
    given_init,
    kmeans_runs,
    squared_distances,
)
from bagwise.cluster._ties import scores_of
from bagwise.cluster._votes import shares
from bagwise.solvers import Result


@documented
class BagKMeans(BagClusterer):
    r"""Cluster instances with k-means, and give each bag the cluster that its instances vote for.

    Lloyd's steps find centres :math:`z_1, \dots, z_k` for the instances of all bags,

    .. math:: \min_z \sum_i \sum_{x \in B_i} \min_c |x - z_c|^2,

    and with :math:`h_{ic}` the share of the instances of bag :math:`i` that are nearest to centre
    :math:`c`, the bag is put into the cluster with the largest

    .. math:: h_{ic} \quad\text{(majority)} \qquad\text{or}\qquad
        h_{ic} \Big/ \frac{1}{n} \sum_j h_{jc} \quad\text{(mil)}.

    Parameters
    ----------
    n_clusters : int
        Number of clusters :math:`k`.
    vote : {"majority", "mil"}
        ``"majority"``: every instance has one vote. ``"mil"``: an instance has the fewer votes, the
        larger a part of all bags its cluster is. So a bag is put where it stands out, and not with
        the background that most bags are full of.
    init : {"k-means++", "random"}, callable or array-like of shape (n_clusters, n_features)
        The first centres: instances drawn far from each other, instances drawn at random, what a
        function of (instances, n_clusters, random_state) returns, or given. The function gets all
        instances at once, as a copy if the bags are selected from many.
    n_init : int
        Number of starts; the one with the smallest objective is kept. One if centres are given.
    max_iter : int
        Most iterations of each start.
    tol : float
        Change of the centres at which they count as settled, in units of the mean variance of the
        features.
    max_memory : int, str or None
        Bound on the instances in memory at a time, in bytes or like ``"512MB"``, where they are
        read from a file (`bagwise.Bags.open`). It does not change the result.
    |random_state: starts, n_jobs: starts, verbose: fit|

    Attributes
    ----------
    |labels_, instance_labels_|
    key_instances_ : ndarray of int of shape (n_bags,)
        Place of the instance in each bag that is nearest to the centre of the bag's cluster.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres.
    vote_weights_ : ndarray of shape (n_clusters,)
        What the vote of an instance for each cluster counts; ones with ``"majority"``.
    inertia_ : float
        The objective: sum of the squared distances of instances from the nearest centre.
    |n_features_in_, feature_names_in_|
    result_ : Certificate
        Objective, and how the best start ended.
    n_iter_ : int
        Iterations of the best start.

    See Also
    --------
    BAMIC : Clusters bags around bags.

    Notes
    -----
    Instances are read in passes, one for each step; those of random folds are not copied. A centre
    that no instance is nearest to is moved to the instance farthest from its own centre.

    Ties go to the cluster of the lowest number. The majority vote is the K-means of the comparison
    in [1]_; the other vote is ours. `transform` returns what is compared in the vote: with
    ``"majority"`` the histogram of the bag over the clusters.

    Bags of different sizes count by their instances for the centres. With ``"mil"`` a background
    that is in all bags is a cluster of its own which no bag is put into: ask for one cluster more.

    References
    ----------
    .. [1] D. Zhang, F. Wang, L. Si, T. Li: Maximum margin multiple instance clustering with
       applications to image and text clustering. IEEE Transactions on Neural Networks 22 (2011).

    Examples
    --------
    Most instances are background, near 0; it is the others that tell the bags apart.

    >>> from bagwise.cluster import BagKMeans
    >>> bags = [[[0.0], [0.1], [5.0]], [[0.1], [0.2], [5.1]], [[0.2], [0.1], [0.0]]]
    >>> BagKMeans(n_clusters=2, vote="mil", init=[[0.0], [5.0]]).fit(bags).labels_
    array([1, 1, 0])
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="instances near to each other belong together, and bags follow them",
        objective="sum of the squared distances of instances from the means of their clusters",
        cost="$k d N$ in each pass, for $k$ clusters",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "vote": [StrOptions({"majority", "mil"})],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _per_cluster = ("cluster_centers_",)

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        vote: str = "majority",
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        max_memory: int | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.vote = vote
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(self, bags: Bags) -> dict[str, Any]:
        n_threads = effective_n_jobs(self.n_jobs)
        source = BagSource(bags, n_threads=n_threads, max_memory=self.max_memory)
        best = self._best_start(source)
        centers = best.x.astype(bags.dtype)
        scores = _closeness(source, centers)
        inertia = float(-scores.max(axis=1).sum())
        votes = shares(bags, scores.argmax(axis=1), self.n_clusters)
        weights = np.ones(self.n_clusters)
        if self.vote == "mil":
            mean = np.sort(votes, axis=0).mean(axis=0)  # the same in any order of bags
            weights = np.divide(1.0, mean, out=np.zeros_like(mean), where=mean > 0)
        labels, order = used_first(self, (votes * weights).argmax(axis=1), self.n_clusters)
        scores = scores[:, order]
        own = scores[np.arange(len(scores)), np.repeat(labels, bags.sizes)]
        return {
            "labels_": labels,
            "instance_labels_": scores.argmax(axis=1),
            "key_instances_": segment_argmax(own, bags.offsets[:-1], bags.offsets[1:]),
            "cluster_centers_": np.ascontiguousarray(centers[order]),
            "vote_weights_": weights[order],
            "inertia_": inertia,
            "result_": replace(
                best.certificate,
                objective=inertia,
                history=np.append(best.history[:-1], inertia),
            ),
        }

    def _best_start(self, source: BagSource) -> Result:
        """Return the centres with the smallest objective, the first if several have it."""
        bags, k = source.bags, self.n_clusters

        def draw(random: np.random.RandomState) -> NDArray[Any]:
            if not isinstance(self.init, str):
                made = self.init(bags.instances, k, random) if callable(self.init) else self.init
                return given_init(
                    self,
                    "centres",
                    (k, bags.n_features),
                    made.toarray() if sp.issparse(made) else made,
                )
            if self.init == "random":
                return dense_rows(bags, drawn_rows(bags.n_instances, k, random))
            return dense_rows(bags, distant_rows(source, k, random))

        is_drawn = isinstance(self.init, str) or callable(self.init)
        n_starts = self.n_init if is_drawn else 1
        runs = kmeans_runs(
            source, draw, n_starts, check_random_state(self.random_state),
            tol=self.tol, max_iter=self.max_iter, n_threads=effective_n_jobs(self.n_jobs),
        )  # fmt: skip
        return min(counted(runs, n_starts, "start"), key=lambda result: result.objective)

    def _bag_outputs(self, bags: Bags) -> Floats:
        labels = self._instance_outputs(bags).argmax(axis=1)
        return shares(bags, labels, len(self.vote_weights_)) * self.vote_weights_

    def _instance_outputs(self, bags: Bags) -> Floats:
        return _closeness(BagSource(bags), self.cluster_centers_)

    def __bagwise_tags__(self) -> BagTags:
        if isinstance(self.init, str):
            return BagTags(order_tolerance=0.05, scale_powers={}, shift_invariant=True)
        return BagTags(
            order_tolerance=0.05, scale_powers=None if callable(self.init) else {"init": 1}
        )


def _closeness(source: BagSource, centers: NDArray[Any]) -> Floats:
    """Return minus the squared distances of the instances from the centres."""
    distance = squared_distances(source, centers)
    return scores_of(distance.T, distance.dtype)
