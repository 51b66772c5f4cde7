"""The metric under which centres of labels are apart and some instance is near each (MIML)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from bagwise._arrays import Floats, Integers
from bagwise.solvers._checks import check_at_least, check_limits, checked_array
from bagwise.solvers._majorize import majorize_minimize
from bagwise.solvers._result import Certificate
from bagwise.solvers.metric._bag_pairs import nearest
from bagwise.solvers.metric._label_assignments import LabelLists
from bagwise.solvers.metric._trace_ratio import trace_ratio

_SOLVER = "solve_center_metric"
_ROUNDING = 1e-24  # a smaller ratio of squares is 0


@dataclass(frozen=True, kw_only=True, eq=False)
class CenterMetricResult(Certificate):
    r"""Orthonormal directions and the centres of labels.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_features)
        The directions :math:`A^\top`.
    centers : ndarray of shape (n_labels, n_features)
        The centres :math:`z_c`.
    """

    components: Floats
    centers: Floats


def solve_center_metric(
    rows: NDArray[Any],
    lists: LabelLists,
    n_components: int,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 50,
) -> CenterMetricResult:
    r"""Learn directions, and a centre for each label.

    .. math:: \min_{A, z} \frac{\sum_i w_i \sum_{c \in Y_i} \min_{x \in B_i} \|A^\top (x - z_c)\|^2}
              {\sum_{c, e} \|A^\top (z_c - z_e)\|^2}, \quad A^\top A = I

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The instances of all bags. Along each direction some of them differ.
    lists : LabelLists
        Bags and their labels :math:`Y_i`; each label is on some list.
    n_components : int
        Number of directions.
    sample_weight : array-like of shape (n_bags,), optional
        Weights :math:`w_i` of bags.
    tol : float
        Rounds end when one lowers the objective by at most this share of it.
    max_iter : int
        Most rounds: centres, then directions, then nearest instances.

    Returns
    -------
    CenterMetricResult
        Directions and centres. ``history`` never rises. If all centres coincide from the start
        there is nothing to learn, and the objective is 0.

    Notes
    -----
    The start are the means of the means of the bags that list a label. Directions are those of
    `trace_ratio`. Centres move to the means of their instances, or if the sum of the squared
    distances between all centres were to fall, to the best places at which it does not. Outside of
    the space of the directions they are the means.
    """
    X = checked_array(_SOLVER, "rows", rows, (int(lists.offsets[-1]), None))
    check_limits(_SOLVER, tol, max_iter)
    check_at_least(_SOLVER, "n_components", n_components, 1)
    n_bags = len(lists.sizes)
    weight = checked_array(
        _SOLVER, "sample_weight", 1.0 if sample_weight is None else sample_weight, (n_bags,),
        spread=True,
    )  # fmt: skip
    if len(np.unique(lists.labels)) < lists.n_labels:
        msg = f"{_SOLVER}: each of the {lists.n_labels} labels must be on the list of some bag."
        raise ValueError(msg)
    problem = _Centers(X, lists, weight, min(n_components, X.shape[1]))
    found = majorize_minimize(problem, problem.start(), tol=tol, max_iter=max_iter)
    return CenterMetricResult(**vars(found.certificate), components=found.x.A, centers=found.x.Z)


class _Point(NamedTuple):
    """Directions, centres, and the instance that is nearest to each label of each list."""

    A: Floats
    Z: Floats
    chosen: Integers


class _Centers:
    """The problem in the form of `majorize_minimize`: rounds that never raise the objective."""

    def __init__(self, X: Floats, lists: LabelLists, weight: Floats, n_components: int) -> None:
        self.X, self.n_components, self.n_labels = X, n_components, lists.n_labels
        bag, self.label = np.repeat(np.arange(len(lists.sizes)), lists.lengths), lists.labels
        self.weight = weight[bag]
        self.mass: Floats = np.bincount(self.label, self.weight, lists.n_labels).astype(np.float64)
        self.ends = lists.offsets[bag], lists.offsets[bag + 1]
        self.bag, self.lists = bag, lists
        self.move = CenterStep(self.mass)

    def start(self) -> _Point:
        """Return the means of bags as centres, and directions that suit them."""
        means = np.add.reduceat(self.X, self.lists.offsets[:-1]) / self.lists.sizes[:, None]
        Z = self._means(means[self.bag])
        return self._directed(Z, self._nearest(self.X, Z), None)

    def value(self, x: _Point) -> float:
        """Return the ratio at a point; 0 if all centres coincide."""
        steps = (self.X[x.chosen] - x.Z[self.label]) @ x.A.T
        bottom = 2.0 * apart(x.Z @ x.A.T)
        top = float(self.weight @ (steps**2).sum(axis=1))
        return top / bottom if top > _ROUNDING * bottom > 0.0 else 0.0

    def majorize(self, x: _Point) -> _Point:
        """Move the centres."""
        means = self._means(self.X[x.chosen])
        inside = self.move(x.Z @ x.A.T, means @ x.A.T)
        return x._replace(Z=means + (inside - means @ x.A.T) @ x.A)

    def minimize(self, surrogate: _Point, x: _Point, tol: float) -> _Point:
        """Find the best directions for them, and then the nearest instances."""
        return self._directed(surrogate.Z, surrogate.chosen, surrogate.A)

    def _directed(self, Z: Floats, chosen: Integers, A: Floats | None) -> _Point:
        A = trace_ratio(self._between(Z), self._within(Z, chosen), self.n_components, A)
        return _Point(A, Z, self._nearest(self.X @ A.T, Z @ A.T))

    def _nearest(self, mapped: Floats, centers: Floats) -> Integers:
        own = self.label, self.label + 1
        return nearest(centers, own, mapped, self.ends)[0][:, 1]

    def _means(self, rows: Floats) -> Floats:
        """Return the weighted mean of the rows of each label, one row for each entry of a list."""
        sums = np.zeros((self.n_labels, rows.shape[1]))
        np.add.at(sums, self.label, self.weight[:, None] * rows)
        return np.asarray(sums / self.mass[:, None])

    def _within(self, Z: Floats, chosen: Integers) -> Floats:
        steps = self.X[chosen] - Z[self.label]
        return np.asarray((self.weight[:, None] * steps).T @ steps)

    def _between(self, Z: Floats) -> Floats:
        Z = Z - Z.mean(axis=0)
        return np.asarray(2.0 * self.n_labels * Z.T @ Z)


class CenterStep:
    r"""The best centres that are not closer together than others.

    They solve, in closed form but for one multiplier,

    .. math:: \min_z \sum_c m_c \|z_c - \mu_c\|^2 \quad\text{so that}\quad
              \sum_{c < e} \|z_c - z_e\|^2 \ge t

    In the coordinates of the eigenvectors of the constraint after scaling by :math:`\sqrt{m_c}`,
    the means :math:`p_k` move to :math:`p_k / (1 - \lambda e_k)`.

    Parameters
    ----------
    mass : ndarray of shape (n_labels,)
        The weights :math:`m_c`.
    """

    def __init__(self, mass: Floats) -> None:
        self.root = np.sqrt(mass)
        form = len(mass) * np.eye(len(mass)) - 1.0
        self.values, self.vectors = np.linalg.eigh(form / np.outer(self.root, self.root))

    def __call__(self, Z: Floats, means: Floats) -> Floats:
        r"""Return the centres that replace ``Z``, which remain if the means are all the same.

        Parameters
        ----------
        Z, means : ndarray of shape (n_labels, n_components)
            Centres, whose distances give t, and the means :math:`\mu_c`.
        """
        p = self.vectors.T @ (self.root[:, None] * means)
        squares = self.values * np.einsum("ij,ij->i", p, p)
        needed = apart(Z)

        def lack(multiplier: float) -> float:
            return float((squares / (1.0 - multiplier * self.values) ** 2).sum()) - needed

        if lack(0.0) >= 0.0:
            return means
        most = (1.0 - 1e-12) / self.values[-1]
        if lack(most) < 0.0:
            return Z
        multiplier = optimize.brentq(lack, 0.0, most, xtol=1e-15 * most)
        p /= (1.0 - multiplier * self.values)[:, None]
        return np.asarray(self.vectors @ p / self.root[:, None])


def apart(Z: Floats) -> float:
    """Return the sum of the squared distances between all pairs of rows."""
    Z = Z - Z.mean(axis=0)
    return float(len(Z) * np.vdot(Z, Z))
