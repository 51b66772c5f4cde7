"""How optimal margin distribution machines are trained: on inner products, features or passes."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bagwise._arrays import Floats, Integers
from bagwise.solvers import (
    BlockGram,
    FeatureRows,
    LinearODMResult,
    ODMInner,
    ODMResult,
    PassRows,
    ShiftedRows,
    solve_linear_odm,
    solve_odm,
)
from bagwise.svm.machinery._pass_trainer import PassTrainer
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._trainer import PointTrainer


@dataclass(frozen=True, eq=False)
class BandProblem(HingeProblem):
    r"""What one optimal margin distribution machine trains on.

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2 + \frac{b^2}{2 \kappa} + \sum_r c_r \bigl[
        (1 - \theta - m_r)_+^2 + \nu (m_r - 1 - \theta)_+^2 \bigr], \quad
        m_r = s_r (\langle w, \phi_r \rangle + b)

    The first rows may be means of several points, all others are points.

    Parameters
    ----------
    index : ndarray of int
        Points, as in `HingeProblem`: those of the first rows, then one for each other row.
    sign, cost : ndarray of shape (n_rows,)
        Signs and costs of the rows.
    row : ndarray of int
        Which of the first rows has each of their points, in increasing order.
    """

    row: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def n_means(self) -> int:
        """How many rows are means of points."""
        return int(self.row[-1]) + 1 if len(self.row) else 0

    @property
    def members(self) -> Integers:
        """The points of these rows."""
        return self.index[: len(self.row)]

    @property
    def others(self) -> Integers:
        """The points that are rows themselves."""
        return self.index[len(self.row) :]

    @cached_property
    def share(self) -> Floats:
        """The part of each of their points in these rows."""
        return 1.0 / np.bincount(self.row)[self.row] if len(self.row) else np.empty(0)

    @property
    def mixing(self) -> Any:
        """The matrix that makes these rows of their points; None if each has one."""
        if self.n_means == len(self.row):
            return None
        shape = (self.n_means, len(self.row))
        return sp.csr_array((self.share, (self.row, np.arange(len(self.row)))), shape=shape)

    def decision(self, scores: Floats) -> Floats:
        """Return the decision values of the rows, given those of the points."""
        means = np.bincount(self.row, self.share * scores[self.members])
        return np.concatenate([means, scores[self.others]])

    def point_coef(self, coef: Floats) -> Floats:
        """Return the coefficients of the points, given those of the rows."""
        means = coef[: self.n_means]
        return np.concatenate([self.share * means[self.row], coef[self.n_means :]])


@dataclass(frozen=True, eq=False, kw_only=True)
class BandSolution(Solution):
    """A trained machine, with what the next one can start from."""

    result: ODMResult | None = None


@dataclass(frozen=True)
class BandSettings:
    """The band and the constant of the decision function.

    Parameters
    ----------
    theta, nu : float
        Half the width of the band, and what lies above it costs in units of what lies below.
    bias : float
        What is added to all inner products.
    tol : float
        Relative gap at which a problem counts as solved.
    max_iter : int
        Most Newton steps for one problem.
    """

    theta: float
    nu: float
    bias: float
    tol: float = 1e-9
    max_iter: int = 200

    def inner(self, sign: Floats, cost: Floats) -> ODMInner:
        """Return the solver on a Gram matrix of rows with these signs and costs."""
        return ODMInner(sign, cost, self.theta, self.nu, tol=self.tol, max_iter=self.max_iter)


@dataclass(frozen=True, eq=False)
class KernelODM:
    """Problems on the inner products of points; those of rows that stay are kept.

    Parameters
    ----------
    source : PointTrainer
        Where the points live.
    settings : BandSettings
        The band.
    features : PassRows, optional
        The points as rows of features, if these are to have weights.
    """

    source: PointTrainer
    settings: BandSettings
    features: PassRows | None = None

    keeps_bounds: ClassVar = False

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return self.source.n_instances

    @cached_property
    def points(self) -> ShiftedRows:
        """The points, with the constant in their inner products."""
        return ShiftedRows(self.source.points, self.settings.bias)

    def project(self, coef: Floats, rows: Integers | None = None) -> Floats:
        """See `Trainer`."""
        return self.source.project(coef, rows)

    def loosened(self, tol: float) -> None:
        """See `Trainer`; the last Newton steps are few."""

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        assert isinstance(rows, BandProblem)
        settings = self.settings
        near = None
        if start is not None and rows.index.max() < self.n_instances:
            near = rows.decision(start.scores)
        result = solve_odm(
            self._gram(rows), rows.sign, rows.cost, theta=settings.theta, nu=settings.nu,
            decision0=near, like=start.result if isinstance(start, BandSolution) else None,
            tol=settings.tol, max_iter=settings.max_iter,
        )  # fmt: skip
        beta = rows.point_coef(result.x)
        used = np.flatnonzero(beta)
        return BandSolution(
            rows=rows,
            beta=beta,
            intercept=settings.bias * float(beta.sum()),
            scores=self.points.products(rows.index[used], beta[used], self._instances),
            squared_norm=max(0.0, float(result.x @ result.decision)),
            certificate=result.certificate,
            weights=self._weights(rows.index[used], beta[used]),
            result=result,
        )

    def _weights(self, rows: Integers, coef: Floats) -> Floats | None:
        return None if self.features is None else self.features.weights(rows, coef)

    @cached_property
    def _instances(self) -> Integers:
        return np.arange(self.n_instances)

    @cached_property
    def _kept(self) -> dict[bytes, Floats]:
        return {}

    def _gram(self, rows: BandProblem) -> BlockGram:
        members, others, mixing = rows.members, rows.others, rows.mixing
        key = others.tobytes()
        if key not in self._kept:
            self._kept.clear()
            self._kept[key] = self._block(others, others)
        head, cross = self._block(members, members), self._block(members, others)
        if mixing is not None:
            head, cross = (mixing @ (mixing @ head).T).T, mixing @ cross
        return BlockGram(head, cross, self._kept[key])

    def _block(self, left: Integers, right: Integers) -> Floats:
        return self.points.block(left, right, np.empty((len(left), len(right))))


@dataclass(frozen=True, eq=False)
class FeatureODM:
    """Problems on features of points, in memory or read in passes.

    Parameters
    ----------
    source : PointTrainer or PassTrainer
        Where the points live.
    settings : BandSettings
        The band.
    """

    source: PointTrainer | PassTrainer
    settings: BandSettings

    keeps_bounds: ClassVar = False

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return self.source.n_instances

    def project(self, coef: Floats, rows: Integers | None = None) -> Floats:
        """See `Trainer`."""
        return self.source.project(coef, rows)

    def loosened(self, tol: float) -> None:
        """See `Trainer`; the last Newton steps are few."""

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        assert isinstance(rows, BandProblem)
        settings = self.settings
        w0, b0 = (None, 0.0) if start is None else (start.weights, start.intercept)
        matrix, place = self._rows(rows)
        sign, cost = np.ones(matrix.n), np.zeros(matrix.n)
        sign[place], cost[place] = rows.sign, rows.cost
        result = solve_linear_odm(
            matrix, sign, cost, theta=settings.theta, nu=settings.nu, bias=settings.bias,
            w0=w0, intercept0=b0, tol=settings.tol, max_iter=settings.max_iter,
        )  # fmt: skip
        return Solution(
            rows=rows,
            beta=rows.point_coef(result.dual[place]),
            intercept=result.intercept,
            scores=self._scores(result, matrix),
            squared_norm=_squared_norm(result, settings.bias),
            certificate=result.certificate,
            weights=result.x,
        )

    def _rows(self, rows: BandProblem) -> tuple[FeatureRows | PassRows, Integers]:
        """Return rows to train on, and where those of the problem are among them."""
        if isinstance(self.source, PassTrainer):
            every = self.source.rows
            if not rows.n_means:
                return every, rows.others
            means = _mixed(every.features(rows.members), rows)
            place = np.concatenate([every.n_instances + np.arange(rows.n_means), rows.others])
            return every.followed_by(means), place
        matrix = self._features.take(rows.others)
        if rows.n_means:
            means = _mixed(self.source.points.features(rows.members), rows)
            stack = sp.vstack if matrix.is_sparse else np.concatenate
            matrix = FeatureRows(stack([means, self._features.features(rows.others)]))
        return matrix, np.arange(matrix.n)

    @cached_property
    def _features(self) -> FeatureRows:
        return FeatureRows(self.source.features)  # type: ignore[union-attr]

    def _scores(self, result: LinearODMResult, matrix: FeatureRows | PassRows) -> Floats:
        if isinstance(matrix, PassRows):
            return result.decision[: self.n_instances]
        return self._features.dot(result.x) + result.intercept


def _mixed(features: Any, rows: BandProblem) -> Any:
    return features if rows.mixing is None else rows.mixing @ features


def _squared_norm(result: LinearODMResult, bias: float) -> float:
    constant = result.intercept**2 / bias if bias else 0.0
    return float(result.x @ result.x) + constant
