"""The kernel matrix between all instances of a search, and machines on parts of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.bags import Bags, segment_rows
from bagwise.base import Share
from bagwise.kernels import InstanceKernel
from bagwise.solvers import DenseGram, RowOperator
from bagwise.svm.machinery._points import BagMean
from bagwise.svm.machinery._problem import HingeProblem, Solution
from bagwise.svm.machinery._representation import Representation, support_attributes
from bagwise.svm.machinery._trainer import KernelTrainer, PointTrainer
from bagwise.svm.machinery._warm_start import WarmStart


def shared_gram(
    share: Share,
    kernel: InstanceKernel,
    means: BagMean | None,
    make: Callable[[Bags], NDArray[Any]],
) -> NDArray[Any] | None:
    """Return the kernel matrix between the instances of all bags, and perhaps their means.

    Parameters
    ----------
    share : Share
        The training bags.
    kernel : InstanceKernel
        The kernel.
    means : {"kernel_mean", "mean_instance"} or None
        Which means of bags are needed.
    make : callable
        Takes bags, returns the matrix.

    Returns
    -------
    ndarray or None
        None if the matrix is too large to keep.
    """
    whole = share.whole
    n_points = whole.n_instances + (len(whole) if means else 0)
    if not share.fits(whole.dtype.itemsize * n_points**2):
        return None
    gram: NDArray[Any] = share.of_whole((kernel, means), make)
    return gram


def points_of(share: Share) -> Integers:
    """Return the instances of the selection, then the means of its bags, as rows of the matrix."""
    return np.concatenate([share.rows, share.whole.n_instances + share.index])


def shared_expansion(
    share: Share, gram: NDArray[Any], coef: Floats, kernel: InstanceKernel
) -> dict[str, Any]:
    """Return an expansion over the instances selected as attributes, and remember it."""
    support = np.flatnonzero(coef.any(axis=0))
    coef = np.ascontiguousarray(coef[:, support])
    matrix, starts, stops = share.whole.segments
    instances = matrix[segment_rows(starts[share.index], stops[share.index])[support]]
    share.remember(coef, gram, share.rows[support], coef, of_bags=False)
    return {"support_": support, **support_attributes(instances, coef, kernel)}


@dataclass(frozen=True, eq=False)
class SelectedTrainer:
    """Some of the bags of a `KernelTrainer`; the others take no part, and the matrix is not copied.

    Parameters
    ----------
    trainer : KernelTrainer
        Where all instances live.
    rows : ndarray of int of shape (n_instances,)
        The instances of the selected bags.
    index : ndarray of int of shape (n_instances + n_bags,)
        These, then the means of the bags.
    """

    trainer: KernelTrainer
    rows: Integers
    index: Integers

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.rows)

    @property
    def keeps_bounds(self) -> bool:
        """See `Trainer`."""
        return self.trainer.keeps_bounds

    @property
    def points(self) -> RowOperator:
        """See `PointTrainer`."""
        every = self.trainer.rows
        return every.take(self.index[self.index < every.n])

    def solve(self, rows: HingeProblem, start: Solution | None = None) -> Solution:
        """See `Trainer`."""
        if start is not None:
            start = replace(start, rows=self._outside(start.rows))
        solution = self.trainer.solve(self._outside(rows), start)
        return replace(solution, rows=rows, scores=solution.scores[self.rows])

    def loosened(self, tol: float) -> "SelectedTrainer | None":
        """See `Trainer`."""
        trainer = self.trainer.loosened(tol)
        return None if trainer is None else replace(self, trainer=trainer)

    def project(self, coef: Floats, rows: Integers | None = None) -> Floats:
        """See `Trainer`."""
        whole = np.zeros(self.trainer.n_instances)
        whole[self.rows] = coef
        return self.trainer.project(whole, self.rows if rows is None else self.rows[rows])

    def _outside(self, rows: HingeProblem) -> HingeProblem:
        index = self.index[rows.index]  # rows may be of a kind that makes its own
        return HingeProblem(index, rows.sign, rows.cost, rows.target, rows.group)


def represent_shared(
    share: Share,
    kernel: InstanceKernel,
    means: BagMean | None,
    solver: dict[str, Any],
    make: Callable[[Bags, float], Representation[PointTrainer]],
    *,
    cache_bytes: float,
    has_gram: bool,
) -> Representation[PointTrainer]:
    """Return where the instances live, with the kernel matrix between the instances of all bags.

    Parameters
    ----------
    share : Share
        The training bags.
    kernel : InstanceKernel
        The kernel.
    means : {"kernel_mean", "mean_instance"} or None
        Which means of bags are needed.
    solver : dict
        Settings of the solver.
    make : callable
        Takes bags and the memory for a matrix, returns their representation.
    cache_bytes : float
        Memory for a matrix that is not shared.
    has_gram : bool
        Whether there is a matrix to share.
    """
    whole, gram = share.whole, None
    starts = share.starts((kernel, means))
    if has_gram:
        gram = shared_gram(
            share, kernel, means, lambda whole: _gram(make(whole, share.work.n_bytes))
        )
    if gram is None:
        alone = make(whole[share.index], cache_bytes)
        return replace(alone, trainer=WarmStart(alone.trainer, starts))
    trainer = KernelTrainer(DenseGram(gram), whole.n_instances, **solver)
    selected = SelectedTrainer(trainer, share.rows, points_of(share))
    sizes = whole.sizes[share.index]

    def attributes(solutions: Sequence[Solution]) -> dict[str, Any]:
        coef = np.array([solution.instance_coef(sizes) for solution in solutions])
        return shared_expansion(share, gram, coef, kernel)

    return Representation(WarmStart(selected, starts), attributes)


def _gram(representation: Representation[PointTrainer]) -> NDArray[Any]:
    """Return the whole matrix; a large one is formed only now."""
    assert isinstance(representation.trainer, KernelTrainer)
    rows = representation.trainer.rows
    if rows.array is not None:
        return rows.array
    gram = np.empty((rows.n, rows.n), rows.dtype)
    if not rows.fill_square(gram):
        every = np.arange(rows.n)
        for piece in rows.strips(every, rows.n):
            rows.block(every[piece], out=gram[piece])
    return gram
