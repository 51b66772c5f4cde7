"""Coordinate descent in the dual of a linear machine, on rows in memory or block after block."""

from collections.abc import Iterable
from itertools import starmap

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._threads import short_slices
from bagwise.solvers.operators._feature_rows import FeatureRows

_SEED = 2008  # of the order in which rows are visited


class CoordinateDescent:
    """Sweeps over the multipliers in random order (Hsieh et al. 2008).

    A sweep minimises over one multiplier after another, and passes over rows that look settled at
    their bounds. A free intercept is taken for penalised about its last value, which moves after
    each sweep: it is the multiplier of the constraint that both signs weigh the same.

    Parameters
    ----------
    sign, target, cap : ndarray of shape (n,)
        Signs, targets and largest multipliers of the rows.
    square_norms : ndarray of shape (n,)
        Squared lengths of the rows.
    alpha, w, b : ndarray of shape (n,), ndarray of shape (d,), float
        Where to begin. The multipliers and the sum of rows that they make are copied.
    ridge : ndarray of shape (n,), optional
        What the squares of the multipliers, halved, cost; nothing by default.
    rho : float, optional
        Penalty of the intercept: 0 for a free one, None for none.
    pull : float
        How firmly a free intercept is held in a sweep: in units of the mean squared length.

    Attributes
    ----------
    violation : float
        By how much a condition was violated in the last sweep.
    """

    def __init__(
        self,
        sign: Floats,
        target: Floats,
        cap: Floats,
        square_norms: Floats,
        *,
        alpha: Floats,
        w: Floats,
        b: float,
        ridge: Floats | None = None,
        rho: float | None = 0.0,
        pull: float = 1.0,
    ) -> None:
        if ridge is None:
            ridge = np.zeros(len(sign))
        self.is_free = rho == 0.0
        if rho is None:
            self.bias = 0.0
        else:
            mean = max(float(square_norms.mean()), 1e-300)
            self.bias = pull * mean if self.is_free else 1.0 / rho
        self.terms: tuple[Floats, ...] = (
            sign, target, cap, ridge, square_norms + self.bias + ridge,
        )  # fmt: skip
        self.alpha, self.w = alpha.copy(), w.copy()
        self.bound = np.array([b, sign @ alpha, 0.0, 0.0])  # see `_linear_svm_kernels`
        self.rng, self.violation = np.random.default_rng(_SEED), np.inf
        self.look_everywhere()

    @property
    def b(self) -> float:
        """The intercept."""
        return float(self.bound[0])

    def look_everywhere(self) -> None:
        """Let no row pass for settled in the next sweep."""
        self.above, self.below = np.inf, -np.inf

    def sweep(self, blocks: Iterable[tuple[FeatureRows, Integers]]) -> Integers:
        """Sweep over blocks of rows with their numbers; return those that look unsettled."""
        self.bound[2:4] = -np.inf, np.inf
        kept = list(starmap(self._visit, blocks))  # which holds one block at a time
        imbalance, highest, lowest = self.bound[1:4].tolist()
        self.violation = max(highest, 0.0) - min(lowest, 0.0)
        if self.is_free:
            self.bound[0] += self.bias * imbalance
            self.violation += abs(self.bias * imbalance)
        self.above = highest if highest > 0.0 else np.inf
        self.below = lowest if lowest < 0.0 else -np.inf
        return np.concatenate(kept)

    def _visit(self, rows: FeatureRows, index: Integers) -> Integers:
        """Visit a block in random order; return the numbers of rows that look unsettled."""
        order, found = self.rng.permutation(len(index)), 0
        kept, alpha = np.empty_like(order), self.alpha[index]
        terms = tuple(term[index] for term in self.terms)
        for piece in short_slices(len(order), 4 * rows.row_seconds):
            found += self._steps(rows, order[piece], terms, alpha, kept[found:])
        self.alpha[index] = alpha
        return index[kept[:found]]

    def _steps(
        self,
        rows: FeatureRows,
        order: Integers,
        terms: tuple[Floats, ...],
        alpha: Floats,
        kept: Integers,
    ) -> int:
        """Take steps in the order given; return how many rows look unsettled."""
        from bagwise.solvers.svm import _linear_svm_kernels as kernels

        sign, target, cap, ridge, curvature = terms
        return kernels.sweep(
            *rows.parts, rows.rows, order, sign, target, cap, ridge, curvature, alpha,
            self.w, self.bias, self.bound, self.above, self.below, kept,
        )  # fmt: skip
