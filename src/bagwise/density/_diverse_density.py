"""Diverse density (Maron and Lozano-Perez 1998)."""

from typing import Any, ClassVar

from bagwise._arrays import Floats
from bagwise._compat import StrOptions
from bagwise.base import Summary, documented
from bagwise.density._concept_machine import ConceptMachine
from bagwise.solvers import Density, DensityResult, maximize_density


@documented
class DiverseDensity(ConceptMachine):
    r"""A point that positive bags come near to and negative bags do not: diverse density.

    With weights :math:`v_i` of the bags it looks for a minimum of

    .. math:: \min_{h, s} \; -\sum_{i : y_i = 1} v_i \log P_i
              - \sum_{i : y_i = -1} v_i \log(1 - P_i), \quad
              p_{ij} = \exp\Bigl(-\sum_k s_k^2 (x_{ijk} - h_k)^2\Bigr)

    over a point h, the concept, and a scale :math:`s_k` for each feature. A bag is positive with
    probability :math:`P_i = 1 - \prod_j (1 - p_{ij})` (``cause="noisy_or"``) or
    :math:`P_i = \max_j p_{ij}` (``"most_likely"``). It scores as the log odds
    :math:`\log P_i / (1 - P_i)` less a threshold; more than two classes are learned one against the
    rest.

    Parameters
    ----------
    cause : {"noisy_or", "most_likely"}
        What makes a bag positive; see above.
    search : {"best", "density"}
        Which concept to take: that of the highest density, as published, or with "best" a far one
        where this ranks bags clearly better that are left out of a fit; see the notes. With
        ``threshold="half"`` it is always the former, for a bag never reaches a far one.
    n_init : int or "all"
        Number of starts: those instances of positive bags at which the density is highest.
    first_scale : float
        Scales at the start, for features in units of their standard deviation.
    threshold : {"learned", "half"}
        Above which score a bag is positive: the one with the fewest errors on the training bags, or
        0, where :math:`P_i` is one half.
    |class_weight, pos_label|
    tol : float
        A start ends when an iteration lowers the objective by less, relatively.
    max_iter : int
        Most iterations of each start.
    |n_jobs, verbose: fit|

    Attributes
    ----------
    concepts_ : ndarray of shape (n_outputs, n_features)
        The point h of each binary problem.
    scales_ : ndarray of shape (n_outputs, n_features)
        The scales s, not negative.
    far_ : ndarray of bool of shape (n_outputs,)
        Whether the concept of each binary problem is a far one.
    |intercept_, classes_, multilabel_, pos_label_|
    |n_features_in_, feature_names_in_, result_: rounds, n_iter_|
        Both are of the search for the highest density, also where a far concept is taken.

    See Also
    --------
    EMDD : The same by one instance of each bag at a time.

    Notes
    -----
    All starts go side by side, and an iteration is a few products of matrices.

    Where bags tell little about many features, as words of texts, or where key instances differ
    from each other and only lie further out than others, there is no point that they are near to:
    a search fits scales to chance. A *far* concept has one scale for all features in units of their
    standard deviation, and its point lies a hundred times as far from the mean of all instances as
    the furthest of them, in the direction from the mean of the instances of negative bags to the
    mean of likely key instances, one of each positive bag, which lie furthest in that direction
    themselves. Its spheres are nearly planes. A bag scores by its nearest instance then, whatever
    the cause, and the threshold is learned. It is taken if it ranks bags that are left out of a
    fit, a third at a time, right in more pairs than chance and than a search from the best start
    do, both by more than two standard errors
    :math:`\sqrt{(n_+ + n_- + 1) / (12 n_+ n_-)}` of chance, for n different bags of either sign.

    References
    ----------
    .. [1] O. Maron, T. Lozano-Perez: A framework for multiple-instance learning. NIPS 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.density import DiverseDensity
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = DiverseDensity().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="an instance that is near to one point makes a bag positive",
        objective=(
            "minus the log likelihood of the labels, over the point and a scale of each feature"
        ),
        cost=r"products of $N \times d$ and $d \times r$ in each iteration, for $r$ starts",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cause": [StrOptions({"noisy_or", "most_likely"})],
        **ConceptMachine._parameter_constraints,
    }

    def __init__(
        self,
        *,
        cause: str = "noisy_or",
        search: str = "best",
        n_init: int | str = 10,
        first_scale: float = 0.1,
        threshold: str = "learned",
        class_weight: Any = None,
        pos_label: Any = None,
        tol: float = 1e-4,
        max_iter: int = 500,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            search=search,
            n_init=n_init,
            first_scale=first_scale,
            threshold=threshold,
            class_weight=class_weight,
            pos_label=pos_label,
            tol=tol,
            max_iter=max_iter,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.cause = cause

    @property
    def _cause(self) -> str:
        return self.cause

    def _search(self, density: Density, starts: Floats) -> list[DensityResult]:
        return maximize_density(density, starts, tol=self.tol, max_iter=self.max_iter)
