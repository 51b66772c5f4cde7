"""A search by passes that ends when steps gain little, without a certificate."""

import numpy as np

from bagwise._arrays import Floats, Integers, Signs
from bagwise._threads import checkpoint
from bagwise.solvers.operators._feature_rows import FeatureRows
from bagwise.solvers.operators._pass_rows import PassRows
from bagwise.solvers.svm._pass_svm_search import POOLS, Search, Start
from bagwise.solvers.svm._pass_svm_smoothing import Smoothing

_LONG = 0.3  # length of a Newton step that tells how much there is to gain
_KEPT = 0.5  # share of what is gained on a pool that all rows should gain


class LooseSearch(Search):
    """The search for a point from which little is to be gained; it needs a start.

    It takes Newton steps, and where a pool can hold all rows that matter, it takes them on these.

    Parameters
    ----------
    progress : float
        The search ends after a step that lowers the objective by less than this share of what has
        been gained since the start.
    """

    def __init__(
        self,
        rows: PassRows | FeatureRows,
        sign: Signs,
        cost: Floats,
        target: Floats,
        tol: float,
        max_iter: int,
        progress: float,
    ) -> None:
        super().__init__(rows, sign, cost, target, tol, max_iter)
        self.progress, self.origin, self.is_idle = progress, np.inf, False
        self.answers = self.dual  # multipliers at the last point

    def run(self, start: Start | None = None, *, pools_left: int = POOLS) -> None:
        """Search from a point and multipliers."""
        assert start is not None
        self.offer_first()
        if self.ended:
            return
        self.offer_point(*start[0])
        self.origin, self.answers = self.primal, start[1]
        del start  # whose numbers are many
        smooth = SteadySmoothing(self)
        smooth.begin_at(self.answers)
        while not self.ended:
            checkpoint()
            if pools_left and self.suits_pool(smooth.n_support):
                pools_left -= 1
                smooth.rest()
                self.solve_pools(self.answers)
                smooth.begin_at(self.answers)
            else:
                before = self.n_passes
                smooth.step()
                self.is_idle |= self.n_passes == before  # the answers are what they were

    @property
    def ended(self) -> bool:
        """Whether steps gain little, or no more are to be taken."""
        return self.is_idle or super().ended

    def note_step(self, answers: Floats, before: float, length: float) -> None:
        """See whether a step of some length from an objective gained little beside all so far."""
        self.answers, gained = answers, self.origin - self.primal
        if length >= _LONG and before - self.primal < self.progress * gained:
            self.is_idle = True

    def suits_pool(self, n_support: int) -> bool:
        """Tell whether a pool has room for all rows that matter, or have multipliers."""
        has_all = bool(np.count_nonzero(self.answers) <= self.pool_size)
        return has_all and self.has_room(n_support)

    def on(self, pool: Integers) -> "LooseSearch":
        """Return the search on a pool."""
        return LooseSearch(*self.terms_on(pool), self.progress)

    @property
    def multipliers(self) -> Floats:
        """Multipliers for a similar problem to start from."""
        return self.answers if self.is_idle and not self.is_near else self.dual

    def take_over(self, inner: Search, alpha: Floats, z: Floats) -> None:
        """Offer what the search on a pool has found; end if all rows gain about as much as it."""
        assert isinstance(inner, LooseSearch)
        before, self.answers = self.primal, alpha
        if inner.is_idle:
            self.offer_point(inner.w, inner.b, z)
        else:
            super().take_over(inner, alpha, z)
        gained = before - self.primal
        self.is_idle = inner.is_idle and gained >= _KEPT * (inner.origin - inner.primal)


class SteadySmoothing(Smoothing):
    """Newton steps on a hinge that stays as smooth as it is."""

    sharpen = 1.0
    sharp = 12.0  #: at which a few steps lower the objective most
    corrects = False

    def __init__(self, search: LooseSearch) -> None:
        super().__init__(search)
        self.search = search

    def _look(self) -> tuple[Floats, Floats]:
        found = super()._look()
        self.search.note_step(found[0], self.before, self.length)
        return found
