"""The nu-form as the inner problem of mixtures: many rows that stay, some that change.

A Newton step of many rows is too dear to be exact. Conjugate gradients go as far as the step is
worth (Dembo, Eisenstat & Steihaug 1982), with an approximate inverse that the fixed rows share.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint
from bagwise.solvers._result import Status
from bagwise.solvers.svm._block_gram import BlockGram, Systems
from bagwise.solvers.svm._landmark_system import LandmarkSystems
from bagwise.solvers.svm._nu_svm import FiniteNewton, NuSVMResult, solved

_MANY = 1000  # fixed rows from which on products with the matrix cost less than its factor
_FORCING = 0.01  # part of the decrease foretold that conjugate gradients may leave
_WORTH = 100.0  # times the accuracy: a larger decrease of the primal says that it is not there
_MOST_PRODUCTS = 150  # of a problem, before factors are tried


@dataclass(frozen=True)
class NuSVMInner:
    """The inner problem of KI-SVM for `generate_assignments`: `solve_nu_svm`.

    Parameters
    ----------
    sign : ndarray of shape (n,)
        Signs of the rows: those of the bags to choose in, then the fixed ones.
    ridge : ndarray of shape (n,) or float
        One over the costs of the rows.
    tol : float
        Smallest relative gap of a solution that is aimed at.
    """

    sign: ArrayLike
    ridge: ArrayLike
    tol: float = 1e-9

    def solve(self, gram: BlockGram, like: Any, tol: float = 0.0) -> NuSVMResult:
        """Solve for a Gram matrix of the rows, starting from the solution of a similar one."""
        x0, systems = (like.x, like._systems) if isinstance(like, NuSVMResult) else (None,) * 2
        tol = max(tol, self.tol)
        if len(gram.fixed) > _MANY and not isinstance(systems, Systems):
            newton = _TruncatedNewton(gram, self.sign, self.ridge, systems)
            newton.active = like._active if x0 is not None else newton.active
            result = solved(newton, x0, tol)
            if result.converged:
                return result
            x0, systems = result.x, None
        return solved(FiniteNewton(gram, self.sign, self.ridge, systems), x0, self.tol)


class _TruncatedNewton(FiniteNewton):
    """Newton steps that are as exact as they are worth.

    The point ``z`` of the primal need not be in the cone. Without its negative entries it is a
    point of the dual, and the two values bound the minimum.
    """

    systems: LandmarkSystems

    def shared(self, systems: Any) -> LandmarkSystems:
        if isinstance(systems, LandmarkSystems) and systems.fit(self.gram, self.ridge):
            return systems
        return LandmarkSystems(self.gram.fixed, self.ridge)

    def begin(self, x0: ArrayLike | None) -> None:
        """Take the start, at its best length."""
        self.n_products = 0
        self.start(x0)

    def times(self, z: Floats) -> Floats:
        """Return ``Q z``."""
        self.n_products += 1
        return super().times(z)

    def run(self, tol: float, max_iter: int) -> Status:
        """Step until the values of primal and dual are close."""
        self.least, self.most = np.inf, 0.0
        self.best = self.z, self.margin
        status = Status.STALLED
        if self.z.any():  # nothing is known of where the first step begins: take the whole of it
            self.z, self.margin = self.goal(self.active, 0.0)
        while self.n_products <= _MOST_PRODUCTS and self.n_iter < max_iter:
            checkpoint()
            before, self.least = self.least, min(self.least, self.primal())
            if before - self.least <= _WORTH * tol * self.least:
                self.bound()
                if self.least - self.most <= tol * self.least:
                    status = Status.CONVERGED
                    break
            z, margin = self.goal(np.flatnonzero(self.margin < 1.0), 0.1 * tol * self.least)
            length = self.line_search(z - self.z, margin - self.margin)
            self.z = self.z + length * (z - self.z)
            self.margin = self.margin + length * (margin - self.margin)
            self.n_iter += 1
        if self.most == 0.0:
            self.bound()
        self.active = np.flatnonzero(self.margin < 1.0)
        self.z, self.margin = self.best
        self.history.append(self.value())
        return status

    def bound(self) -> None:
        """Compute the value of the dual at the point without its negative entries.

        Where none is left, it is that of the shortest row.
        """
        z, margin = self.z, self.margin
        if z.min() < 0.0:
            z = np.maximum(z, 0.0)
            margin = margin + self.times(z - self.z)
        if not z.any():
            z = self.shortest()
            margin = self.times(z)
        form = float(z @ margin) + float(z @ (self.ridge * z))
        value = 0.5 * float(z.sum()) ** 2 / form
        if value > self.most:
            self.most, self.best = value, (z, margin)

    def shortfall(self) -> float:
        """Return how far the objective may be above the minimum, by the value of the primal."""
        return 0.25 / self.most - 0.25 / self.least

    def goal(self, active: Integers, enough: float) -> tuple[Floats, Floats]:
        """Return nearly the minimum for these active rows, and its margins.

        The value of the dual may miss its minimum by ``enough``, and the way there must lead down.
        """
        off = self.z.copy()
        off[active] = 0.0
        z, margin = self.z - off, self.margin
        if off.any():
            margin = margin - self.times(off)
        sign, ridge = self.sign[active], self.ridge[active]
        rest = 1.0 - margin[active] - ridge * z[active]
        system = self.systems.of(self.gram, active)
        ahead = sign * system.solve(sign * rest)
        size = float(rest @ ahead)
        enough, way = max(2.0 * enough, _FORCING * size), ahead
        while self.n_products <= _MOST_PRODUCTS:
            checkpoint()
            gain = margin - self.margin
            short = gain[active] / ridge
            bend = float((z - self.z) @ gain) + float(gain[active] @ short)
            if size <= enough and abs(float(rest @ short)) <= 0.5 * bend:
                break
            step = np.zeros(self.n)
            step[active] = way
            gain = self.times(step)
            bent = gain[active] + ridge * way
            length = size / float(way @ bent)
            z, margin, rest = z + length * step, margin + length * gain, rest - length * bent
            ahead = sign * system.solve(sign * rest)
            before, size = size, float(rest @ ahead)
            way = ahead + (size / before) * way
        return z, margin
