"""Support vector machine on bags as graphs: miGraph and MIGraph (Zhou, Sun and Li 2009)."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, segment_rows, segment_sum
from bagwise.base import BagTags, Share, Summary, Target, documented
from bagwise.kernels import (
    BagGraphs,
    InstanceKernel,
    bag_edges,
    clique_weights,
    graph_gram,
    graph_norms,
    set_gram,
)
from bagwise.svm.machinery._bag_kernel_machine import BagKernelMachine, spread
from bagwise.svm.machinery._kernel_machine import KernelMachine
from bagwise.svm.machinery._representation import expansion_attributes


@documented
class MIGraphSVM(BagKernelMachine):
    r"""Support vector machine that compares bags as graphs of their instances.

    Two instances of a bag are linked if they are nearer to each other than a threshold, by default
    the mean distance in their bag. The graph enters in one of two ways.

    ``graph="cliques"`` is *miGraph*: an instance weighs :math:`u(x) = 1 / |N(x)|`, where
    :math:`N(x)` is itself and all that is linked to it, so that instances that resemble each other
    share one vote. With the kernel :math:`k` between instances

    .. math::

        K(B, B') = \frac{1}{\nu(B)\, \nu(B')}
        \sum_{x \in B} \sum_{x' \in B'} u(x)\, u(x')\, k(x, x')

    where :math:`\nu(B) = \sum_{x \in B} u(x)` (``"average"``) or
    :math:`\nu(B)^2 = \sum_{x, x' \in B} u(x) u(x') k(x, x')` (``"feature_space"``).

    ``graph="edges"`` is *MIGraph*: all instances weigh the same, and edges are compared too,

    .. math::

        K(B, B') = \frac{1}{\nu(B)\, \nu(B')} \Bigl( \sum_{x, x'} k(x, x')
        + \sum_{e, e'} \exp(-\gamma_e \|e - e'\|^2) \Bigr) .

    An edge is described by four numbers: for each of its ends the share of that end in the edges
    of the bag, and the share of the edge in the closeness of that end to all that is linked to it.
    Every bag has norm 1 (``"feature_space"``), or each of the two sums is made to have norm 1 on
    its own and their mean is taken (``"parts"``).

    Then an ordinary support vector machine on bags solves the convex problem

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
        + C \sum_i v_i \bigl(1 - y_i (\langle w, \Phi(B_i)\rangle + b)\bigr)_+

    with the map :math:`\Phi` of :math:`K` and the weights :math:`v_i` of the bags. The sum is not
    divided by anything. More than two classes are learned one against the rest.

    Parameters
    ----------
    C : float
        Cost of margin violations. Bags that are means of many instances lie close together, the
        closer the larger they are, and a small ``C`` then gives all of them the same label.
    graph : {"cliques", "edges"}
        miGraph or MIGraph; see above. Instances have scores with ``"cliques"`` only: that of the
        bag that holds the instance alone. A bag then scores, with ``"average"``, as the mean of its
        instances with the weights :math:`u`.
    normalization : {"average", "feature_space", "parts"} or None
        What sums are divided by; see above. ``"average"`` is for cliques only, ``"parts"`` for
        edges only. None means what the paper does: ``"average"`` for cliques, ``"feature_space"``
        for edges.
    threshold : float or "mean"
        Instances at a smaller distance are linked, equal ones always. ``"mean"``: the mean distance
        of pairs in the bag.
    include_self_pairs : bool
        Whether that mean is over all pairs, of an instance with itself too, or over pairs of two
        different instances. The paper does not say.
    edge_gamma : float
        Kernel coefficient :math:`\gamma_e` of the kernel between edges, whose features are between
        0 and 1.
    max_edges : int or None
        Of a bag that has more edges only so many are compared, the shortest.
    |kernel: bags, gamma, degree, coef0|
    |approx|
        For cliques only. With ``"feature_space"``, norms are those of the kernel itself.
    |rank, class_weight, cache_size: unused, tol, max_iter, random_state: maps, n_jobs|
    |verbose: fit|

    Attributes
    ----------
    |classes_, multilabel_, support_: bags, support_vectors_: bags, dual_coef_: bags|
    support_edges_ : ndarray of shape (n_support_edges, 4)
        With ``graph="edges"``, the edges of these bags.
    edge_coef_ : ndarray of shape (n_outputs, n_support_edges)
        Their coefficients in the decision function.
    |coef_, fourier_weights_, fourier_offset_, intercept_, intercept_shift_, gamma_, n_features_in_|
    |feature_names_in_, result_, n_iter_|

    See Also
    --------
    MIKernelSVM : All instances have the same weight.
    LabelMeanSVM : Likewise, with the squared hinge.

    Notes
    -----
    A bag has far more pairs of instances than edges, or the other way round, so in the sum one of
    them drowns the other; ``"parts"`` is there for that. A bag of one instance has no edges: its
    kernel with itself is then 1/2.

    References
    ----------
    Z.-H. Zhou, Y.-Y. Sun, Y.-F. Li. Multi-instance learning by treating instances as non-i.i.d.
    samples. ICML 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.svm import MIGraphSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> MIGraphSVM(C=10.0).fit(bags, y).score(bags, y)
    1.0
    >>> MIGraphSVM(C=10.0, graph="edges").fit(bags, y).score(bags, y)
    1.0
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="all instances have a say, those that are alike one together",
        objective="hinge loss of bags under a kernel between graphs",
        cost="$N^2$ kernel values, summed up to $m^2$; one problem of $m$ rows",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "graph": [StrOptions({"cliques", "edges"})],
        "normalization": [StrOptions({"average", "feature_space", "parts"}), None],
        "threshold": [StrOptions({"mean"}), Interval(Real, 0, None, closed="neither")],
        "include_self_pairs": ["boolean"],
        "edge_gamma": [Interval(Real, 0, None, closed="neither")],
        "max_edges": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        C: float = 100.0,
        *,
        graph: str = "cliques",
        normalization: str | None = None,
        threshold: float | str = "mean",
        include_self_pairs: bool = True,
        edge_gamma: float = 1.0,
        max_edges: int | None = 256,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approx: str | None = None,
        rank: int = 300,
        class_weight: Any = None,
        cache_size: float = 200.0,
        tol: float = 1e-6,
        max_iter: int = 10_000_000,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            C,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            approx=approx,
            rank=rank,
            class_weight=class_weight,
            cache_size=cache_size,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.graph = graph
        self.normalization = normalization
        self.threshold = threshold
        self.include_self_pairs = include_self_pairs
        self.edge_gamma = edge_gamma
        self.max_edges = max_edges

    # -------------------------------------------------------------------------------- learning

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        self._refuse_contradictions()
        if not self._compares_edges:
            return super()._learn(bags, target, cost_weight, bag_weight)
        kernel = self._resolve_kernel(bags, bag_weight)
        share = self._share(bags, needs_room=True)
        if share is None:
            graphs, norm = self._graphs(bags, kernel)
            gram = self._graph_gram(kernel, graphs, norm)
        else:
            graphs, norm, whole = self._whole_gram(share, kernel)
            graphs, norm = graphs[share.index], norm[share.index]
            gram = whole[np.ix_(share.index, share.index)]
        coef, fitted = self._solve_gram(gram, target, cost_weight, share)
        part = 0.5 * coef if self._normalize == "parts" else coef  # each part counts one half
        support = fitted["support_"]
        starts, stops = graphs.edge_starts[support], graphs.edge_stops[support]
        fitted |= {
            **expansion_attributes(bags.instances, spread(part / norm[:, 0], bags.sizes), kernel),
            "support_edges_": graphs.edges[segment_rows(starts, stops)],
            "edge_coef_": spread((part / norm[:, 1])[:, support], stops - starts),
        }
        if share is not None:
            share.remember(fitted["dual_coef_"], whole, share.index, coef, of_bags=True)
        return fitted

    def _refuse_contradictions(self) -> None:
        other = "parts" if self.graph == "cliques" else "average"
        if self.normalization == other:
            msg = (
                f"The 'normalization' parameter of MIGraphSVM must not be {other!r} with "
                f"graph={self.graph!r}."
            )
            raise ValueError(msg)
        if self._compares_edges and self.approx is not None:
            msg = (
                "MIGraphSVM has no low-rank map of the kernel between edges: the 'approx' "
                f"parameter must be None with graph='edges'. Got {self.approx!r}."
            )
            raise ValueError(msg)

    # --------------------------------------------------------------------------------- cliques

    @property
    def _averages(self) -> bool:
        return self.graph == "cliques" and self.normalization in (None, "average")

    def _instance_weights(self, bags: Bags) -> Floats:
        return clique_weights(bags.instances, bags.offsets[:-1], bags.offsets[1:], **self._links)

    @property
    def _links(self) -> dict[str, Any]:
        return {"threshold": self.threshold, "include_self_pairs": self.include_self_pairs}

    # ----------------------------------------------------------------------------------- edges

    @property
    def _compares_edges(self) -> bool:
        return self.graph == "edges" and self.kernel != "precomputed"

    @property
    def _has_features(self) -> bool:
        return super()._has_features and not self._compares_edges

    @property
    def _normalize(self) -> str:
        return "parts" if self.normalization == "parts" else "sum"

    @property
    def _edge_kernel(self) -> InstanceKernel:
        return InstanceKernel("rbf", gamma=self.edge_gamma)

    def _graphs(self, bags: Bags, kernel: InstanceKernel) -> tuple[BagGraphs, Floats]:
        """Return the graphs of bags, and what the sums over nodes and over edges are divided by."""
        graphs = BagGraphs.of(*bags.segments, max_edges=self.max_edges, **self._links)
        return graphs, graph_norms(kernel, self._edge_kernel, graphs, normalize=self._normalize)

    def _graph_gram(
        self, kernel: InstanceKernel, graphs: BagGraphs, norm: Floats, **known: Any
    ) -> Floats:
        return graph_gram(
            kernel, self._edge_kernel, graphs, normalize=self._normalize, norms=norm, **known
        )

    def _whole_gram(self, share: Share, kernel: InstanceKernel) -> tuple[BagGraphs, Floats, Floats]:
        """Return graphs, norms and kernel matrix of all bags of a search, whatever is selected.

        Edges and the sums over pairs of them do not depend on the kernel between instances.
        """
        links = ("edges", *self._links.values(), self.max_edges, self.edge_gamma)

        def edges(whole: Bags) -> tuple[NDArray[Any], ...]:
            parts = bag_edges(*whole.segments, max_edges=self.max_edges, **self._links)
            return *parts, set_gram(self._edge_kernel, *parts)

        *parts, edge_sums = share.of_whole(links, edges)
        graphs = BagGraphs(*share.whole.segments, *parts)

        def gram(_: Bags) -> tuple[Floats, Floats]:
            norm = graph_norms(kernel, self._edge_kernel, graphs, normalize=self._normalize)
            return norm, self._graph_gram(kernel, graphs, norm, edge_sums=edge_sums)

        return graphs, *share.of_whole((links, kernel, self._normalize), gram)

    def _shared_bytes(self, bags: Bags) -> int:
        """See `SharingEstimator`: with edges also these, and the sums over pairs of them."""
        if not self._compares_edges:
            return super()._shared_bytes(bags)
        pairs = bags.sizes * (bags.sizes - 1) // 2
        n_edges = pairs
        if isinstance(self.max_edges, Integral):  # a search asks before a fit has checked it
            n_edges = np.minimum(pairs, int(self.max_edges))
        return super()._shared_bytes(bags) + int(8 * len(bags) ** 2 + 32 * n_edges.sum())

    def _bag_outputs(self, bags: Bags) -> Floats:
        if not self._compares_edges:
            return super()._bag_outputs(bags)
        sums = self._shared_sums(self._share(bags))
        if sums is not None:
            return sums + self.intercept_
        graphs, norm = self._graphs(bags, self._fitted_kernel())
        nodes = segment_sum(self._expand(bags), bags.offsets[:-1], bags.offsets[1:])
        scores = self._edge_kernel.expand(graphs.edges, self.support_edges_, self.edge_coef_)
        edges = np.zeros_like(nodes)
        linked = graphs.edge_starts < graphs.edge_stops
        if linked.any():
            edges[linked] = segment_sum(
                scores, graphs.edge_starts[linked], graphs.edge_stops[linked]
            )
        return nodes / norm[:, :1] + edges / norm[:, 1:] + self.intercept_

    def _invariances(self) -> dict[str, Any]:
        if self.threshold != "mean" or (self.kernel == "linear" and not self._averages):
            return {}
        return super()._invariances()

    def __bagwise_tags__(self) -> BagTags:
        # A bag of one instance has weight 1 and no edges; an instance of norm 1, as all are under
        # the RBF kernel, is not changed by normalising it.
        keeps_kernel = self._averages or (self.kernel == "rbf" and self._normalize == "sum")
        return BagTags(
            instance_scores=self.graph == "cliques" and self.kernel != "precomputed",
            supervised_analogue=self._ordinary if keeps_kernel else None,
            **self._invariances(),
        )
