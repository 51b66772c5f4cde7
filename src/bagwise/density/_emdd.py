"""EM-DD: diverse density by one instance of each bag at a time (Zhang and Goldman 2001)."""

from typing import ClassVar

from bagwise._arrays import Floats
from bagwise.base import Summary, documented
from bagwise.density._concept_machine import ConceptMachine
from bagwise.solvers import Density, DensityResult, maximize_density_by_rounds


@documented
class EMDD(ConceptMachine):
    r"""Diverse density of the most likely instances, by expectation and maximisation: EM-DD.

    With weights :math:`v_i` of the bags it looks for a minimum of

    .. math:: \min_{h, s} \; -\sum_{i : y_i = 1} v_i \log \max_j p_{ij}
              - \sum_{i : y_i = -1} v_i \log(1 - \max_j p_{ij}), \quad
              p_{ij} = \exp\Bigl(-\sum_k s_k^2 (x_{ijk} - h_k)^2\Bigr)

    over a point h, the concept, and a scale :math:`s_k` for each feature. Each bag is represented
    by its most likely instance, and the density of these is maximised over h and s; that is
    repeated as long as the objective falls. The best concept of all rounds and starts is kept, by
    the objective on the training bags alone.

    Parameters
    ----------
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
        A start ends when a round lowers the objective by less, relatively; so do the steps in it.
    max_iter : int
        Most rounds of each start.
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
    DiverseDensity : The same objective, and the noisy or, minimised as they are.

    Notes
    -----
    In a negative bag the most likely instance is the most dangerous one, and another one may be so
    after the step: the objective can rise, and then the round is undone.

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
    .. [1] Q. Zhang, S. A. Goldman: EM-DD: An improved multiple-instance learning technique. NIPS
       2001.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.density import EMDD
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> model = EMDD().fit(bags, y)
    >>> model.score(bags, y)
    1.0
    >>> model.key_instances(bags[1::2])
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="an instance that is near to one point makes a bag positive",
        objective="that of `DiverseDensity` with the most likely instance of each bag",
        cost=r"products of $m \times d$ and $d \times r$ in each iteration, for $r$ starts",
    )

    @property
    def _cause(self) -> str:
        return "most_likely"

    def _search(self, density: Density, starts: Floats) -> list[DensityResult]:
        return maximize_density_by_rounds(density, starts, tol=self.tol, max_iter=self.max_iter)
