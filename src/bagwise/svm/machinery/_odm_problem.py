"""MI-ODM of one output: key instances of positive bags and all negative instances, as rows."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import inf

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise._progress import report
from bagwise.bags import segment_argmax, segment_rows
from bagwise.solvers import Band, key_scores
from bagwise.svm.machinery._alternation import TIE, Alternation, alternate
from bagwise.svm.machinery._odm_trainer import (
    BandProblem,
    BandSettings,
    BandSolution,
    FeatureODM,
    KernelODM,
)
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._sides import Sides


class KeyBandProblem(Alternation):
    r"""The objective of MI-ODM, and the choice of key instances that is best for given scores.

    Parameters
    ----------
    trainer : KernelODM or FeatureODM
        Solves the convex problems of the rounds.
    offsets : ndarray of int of shape (n_bags + 1,)
        Where the bags begin, and where the last one ends.
    sign : ndarray of shape (n_bags,)
        Signs of the bags.
    cost : ndarray of shape (n_bags,)
        Costs of positive bags, and of each instance of a negative one.
    settings : BandSettings
        The band.
    n_key : int
        How many instances stand for a positive bag, by their mean.
    """

    def __init__(
        self,
        trainer: KernelODM | FeatureODM,
        offsets: Integers,
        sign: Floats,
        cost: Floats,
        settings: BandSettings,
        n_key: int,
    ) -> None:
        super().__init__(trainer, Sides.of(offsets, sign), cost)
        self.cost, self.settings, self.n_key = cost, settings, n_key
        self.begins_at: Floats | None = None
        self._chosen: tuple[Floats, BandProblem] | None = None
        self._last_end: Solution | None = None

    # ---------------------------------------------------------------------------- what is minimised

    def loss(self, scores: Floats) -> float:
        return self.band.loss(self.choose(scores).decision(scores))

    @cached_property
    def band(self) -> Band:
        """The losses of the rows, whatever stands for the positive bags."""
        sides, settings = self.sides, self.settings
        bag = np.concatenate([sides.positive, sides.negative_bags])
        sign = np.repeat([1.0, -1.0], [len(sides.positive), len(sides.negatives)])
        return Band("MIODM", sign, self.cost[bag], settings.theta, settings.nu, len(bag))

    def rows_of(self, members: Integers, row: Integers) -> BandProblem:
        """Return the rows in which these points stand for the positive bags."""
        index = np.concatenate([members, self.sides.negatives])
        return BandProblem(index=index, sign=self.band.sign, cost=self.band.cost, row=row)

    # ------------------------------------------------------------------------------ which rows

    def choose(self, scores: Floats) -> BandProblem:
        """Return the rows of least loss; those of the last scores are known.

        The instances that stand for a bag follow one another in the order of the scores. Of several
        choices that cost the same it is the one with the highest scores.
        """
        if self._chosen is None or scores is not self._chosen[0]:
            self._chosen = scores, self._least_loss(scores)
        return self._chosen[1]

    def _least_loss(self, scores: Floats) -> BandProblem:
        order, sizes = self._ordered(scores), self.sides.stops - self.sides.starts
        counts = np.minimum(sizes, self.n_key)
        starts = np.cumsum(sizes) - sizes
        place = np.arange(len(order)) - np.repeat(starts, sizes)
        total = np.concatenate([[0.0], np.cumsum(scores[order])])
        length = np.repeat(counts, sizes)
        fits = np.flatnonzero(place <= np.repeat(sizes - counts, sizes))
        mean = (total[fits + length[fits]] - total[fits]) / length[fits]
        if self.n_key == 1:
            mean = scores[order[fits]]  # as they are
        merit = np.full(len(order), -inf)
        merit[fits] = -np.round(self._loss_of_mean(mean) / TIE)
        first = starts + segment_argmax(merit, starts, starts + sizes)
        return self.rows_of(
            np.sort(order[segment_rows(first, first + counts)]),
            np.repeat(np.arange(len(sizes)), counts),
        )

    def _loss_of_mean(self, mean: Floats) -> Floats:
        band = self.band
        below, above = np.maximum(band.low - mean, 0.0), np.maximum(mean - band.high, 0.0)
        loss: Floats = below**2 + band.nu * above**2
        return loss

    def _ordered(self, scores: Floats) -> Integers:
        """Return the instances of positive bags, in each bag from the highest score to the lowest.

        Those with equal scores, as all are where a problem has no weights, are in the order in
        which they lie in the direction from the negative to the positive mean.
        """
        sides = self.sides
        part = sides.unlabelled
        level = np.round(scores[part] / (TIE * max(1.0, float(np.abs(scores[part]).max()))))
        order = np.lexsort((-level, sides.unlabelled_bags))
        tied = np.diff(level[order]) == 0.0
        if (tied & (np.diff(sides.unlabelled_bags) == 0)).any():
            order = np.lexsort((-self._lean, -level, sides.unlabelled_bags))
        return part[order]

    def best_rows(self, scores: Floats) -> BandProblem:
        """Return the rows in which the instances of highest score stand for the positive bags."""
        order, sizes = self._ordered(scores), self.sides.stops - self.sides.starts
        counts = np.minimum(sizes, self.n_key)
        starts = np.cumsum(sizes) - sizes
        members = np.sort(order[segment_rows(starts, starts + counts)])
        return self.rows_of(members, np.repeat(np.arange(len(sizes)), counts))

    def first_start(self) -> BandProblem:
        """Return the rows of the start: means of bags, or the best instances at given scores."""
        if self.begins_at is not None:
            return self.best_rows(self.begins_at)
        return self.rows_of(self.sides.means, np.arange(len(self.sides.positive)))

    def begin(self, surrogate: HingeProblem, near: Solution | None) -> Solution:
        """Train on the rows of a start, from where the last one ended."""
        return super().begin(surrogate, self._last_end)

    def key_rows(self, scores: Floats) -> BandProblem:
        return self.best_rows(scores)

    def random_start(self, rng: np.random.Generator) -> BandProblem:
        return self.best_rows(rng.random(self.trainer.n_instances))

    # ------------------------------------------------------------------------------ solving

    def local(self, max_iter: int, begins_at: Floats | None = None) -> Solution:
        """Alternate from means of bags, or from the best instances at given scores."""
        self.begins_at = begins_at
        rng = np.random.default_rng(0)  # nothing is drawn
        end = alternate(self, max_iter=max_iter, tol=self.settings.tol, n_init=1, rng=rng)
        self._last_end = end
        return replace(end, result=None) if isinstance(end, BandSolution) else end

    def best(self, max_iter: int, starts: Sequence[Floats]) -> Solution:
        """Alternate from means of bags, from likely key instances and from given scores.

        Kept is the end of lowest objective. No start is taken twice.
        """
        likely = key_scores(
            self.trainer.project, self.sides.offsets, self.sides.positive, self.weight
        )
        distinct = {self.best_rows(scores).name: scores for scores in (likely, *starts)}
        ends = []
        for number, scores in enumerate((None, *distinct.values())):
            report("start", number + 1, total=len(distinct) + 1)
            ends.append(self.local(max_iter, scores))
        best = min(ends, key=lambda end: end.certificate.objective)
        values = np.array([end.certificate.objective for end in ends])
        return replace(best, certificate=replace(best.certificate, ends=values))
