"""Assignments of instances to each bag, and the search for the one of largest form."""

from dataclasses import dataclass
from functools import cached_property
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._threads import checkpoint, slice_length
from bagwise.solvers._checks import check_at_least
from bagwise.solvers.operators._row_operator import RowOperator

_MOST_ENUMERATED = 4096
_MOST_SWEEPS = 200
_ROUNDED = 1000  # instances from which on their inner products are rounded
_DIFFERENT = 0.1  # share of their size by which the latter must differ for that
_KICKED = 0.1  # of the entries of an assignment are changed at a time
_STRIP = 256  # rows of a matrix that are looked at at a time


@dataclass(frozen=True, eq=False)
class AssignmentProblem:
    """Inner products of the instances to choose from and of the rows that are fixed.

    The rows of the inner problem are the bags, in order, and then the fixed rows.

    Parameters
    ----------
    instances : ndarray of shape (n_instances, n_instances)
        Inner products of the instances of all bags, stacked.
    cross : ndarray of shape (n_instances, n_fixed)
        Inner products of these instances and the fixed rows.
    fixed : ndarray of shape (n_fixed, n_fixed)
        Inner products of the fixed rows, in single or double precision.
    offsets : array-like of shape (n_bags + 1,)
        Bag ``i`` has the instances ``offsets[i]`` up to ``offsets[i + 1]``.
    n_chosen : int
        How many instances of a bag an assignment chooses, all if the bag has fewer; their mean
        stands for the bag. An assignment holds the instances of the first bag, then those of the
        second, and so on, in increasing order.
    """

    instances: Floats
    cross: Floats
    fixed: NDArray[Any]
    offsets: Integers
    n_chosen: int = 1

    @classmethod
    def of(
        cls,
        rows: RowOperator,
        chosen: Integers,
        offsets: Integers,
        fixed: Integers,
        n_chosen: int = 1,
        *,
        single: bool = False,
    ) -> "AssignmentProblem":
        """Return the problem on rows: those to choose from, bag after bag, and the fixed ones.

        The inner products of the latter are in single precision if asked for.
        """

        def block(left: Integers, right: Integers, dtype: type = np.float64) -> NDArray[Any]:
            out: NDArray[Any] = np.empty((len(left), len(right)), dtype)
            if left is right and rows.take(left).fill_square(out):
                return out
            return rows.block(left, right, out)

        between = block(fixed, fixed, np.float32 if single else np.float64)
        return cls(block(chosen, chosen), block(chosen, fixed), between, offsets, n_chosen)

    def __post_init__(self) -> None:
        check_at_least("AssignmentProblem", "n_chosen", self.n_chosen, 1)
        offsets = np.array(self.offsets, np.int64)
        if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or (np.diff(offsets) < 1).any():
            msg = "offsets must start at 0 and increase by the size of each bag, which is at least "
            msg += f"1. Got {offsets[:8]}."
            raise ValueError(msg)
        n = int(offsets[-1])
        n_fixed = np.shape(self.fixed)[0] if np.ndim(self.fixed) else 0
        shapes = {"instances": (n, n), "cross": (n, n_fixed), "fixed": (n_fixed, n_fixed)}
        for name, shape in shapes.items():
            block = np.ascontiguousarray(getattr(self, name))
            if name != "fixed" or block.dtype != np.float32:
                block = block.astype(np.float64, copy=False)
            if block.shape != shape:
                msg = f"{name} must have shape {shape}, as offsets and fixed have it. "
                msg += f"Got {block.shape}."
                raise ValueError(msg)
            strips = (block[first : first + _STRIP] for first in range(0, len(block), _STRIP))
            if not all(np.isfinite(strip).all() for strip in strips):
                msg = f"{name} must hold finite numbers only. Got NaN or infinity."
                raise ValueError(msg)
            object.__setattr__(self, name, block)
        object.__setattr__(self, "offsets", offsets)

    @cached_property
    def rounded(self) -> tuple[NDArray[Any], Floats]:
        """The inner products of the instances that assignments are searched with, and the norms.

        Many are in single precision, which takes half the time to read, unless what they differ by
        is small beside what they have in common.
        """
        inner: NDArray[Any] = self.instances
        if len(inner) > _ROUNDED and not self.can_be_enumerated:
            low, high = float(inner.min()), float(inner.max())
            if high - low >= _DIFFERENT * max(abs(low), abs(high)):
                inner = inner.astype(np.float32)
        return inner, inner.diagonal().astype(np.float64)

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows of the inner problem."""
        return self.n_bags + len(self.fixed)

    @property
    def sizes(self) -> Integers:
        """Instances per bag."""
        return np.diff(self.offsets)

    @property
    def n_assignments(self) -> int:
        """Number of assignments, exactly."""
        return prod(comb(size, min(size, self.n_chosen)) for size in self.sizes.tolist())

    @cached_property
    def slots(self) -> Integers:
        """The bag that each entry of an assignment is for."""
        return np.repeat(np.arange(self.n_bags), np.minimum(self.sizes, self.n_chosen))

    @cached_property
    def slot_starts(self) -> Integers:
        """Where the entries of each bag begin in an assignment."""
        return np.searchsorted(self.slots, np.arange(self.n_bags))

    @cached_property
    def slot_shares(self) -> Floats:
        """The weight of each entry in the mean that stands for its bag."""
        return 1.0 / np.minimum(self.sizes, self.n_chosen)[self.slots]

    def slot_coef(self, b: Floats) -> Floats:
        """Return the coefficients of the chosen instances, given those of the bags."""
        return b[: self.n_bags] if self.n_chosen == 1 else self.slot_shares * b[self.slots]

    def slot_means(self, values: Floats) -> Floats:
        """Return the means over the chosen instances of each bag, along the last axis."""
        if self.n_chosen == 1:
            return values
        return np.add.reduceat(self.slot_shares * values, self.slot_starts, axis=-1)

    def bag_sums(self, values: Floats) -> Floats:
        """Sum over the instances of each bag, along the last axis."""
        return np.add.reduceat(values, self.offsets[:-1], axis=-1)

    def mixed_rows(self, matrix: NDArray[Any], weights: Floats) -> Floats:
        """Return for each bag the sum of its instances' rows of a matrix, with weights."""
        from bagwise.solvers.assignments._assignment_kernels import mix_rows

        out = np.empty((self.n_bags, matrix.shape[1]))
        mix_rows(matrix, self.offsets, weights, out)
        return out

    def spread(self, b: Floats) -> Floats:
        """Repeat the coefficient of each bag for all its instances."""
        return np.repeat(b[: self.n_bags], self.sizes)

    @property
    def can_be_enumerated(self) -> bool:
        """Whether there are few enough assignments to look at all of them."""
        n = self.n_assignments
        return n == 1 or (self.n_chosen == 1 and n <= _MOST_ENUMERATED)

    def drawn(self, rng: np.random.Generator, number: int) -> Integers:
        """Draw assignments, one per row."""
        if self.n_chosen > 1:
            return np.array([self.largest(rng.random(len(self.instances))) for _ in range(number)])
        uniform = rng.random((number, self.n_bags))
        inside = (uniform * self.sizes).astype(np.int64)
        return self.offsets[:-1] + np.minimum(inside, self.sizes - 1)

    def kicks(self, rng: np.random.Generator, number: int) -> tuple[Booleans, Floats]:
        """Draw which entries of an assignment to change, a row for each time, and what to."""
        draws = rng.random((2, number, len(self.slots)))
        return draws[0] < _KICKED, draws[1]

    def largest(self, values: Floats) -> Integers:
        """Return the instances of largest value in each bag, the first if several are equal."""
        bag = np.repeat(np.arange(self.n_bags), self.sizes)
        order = np.lexsort((-values, bag))
        rank = np.arange(len(values)) - self.offsets[bag]
        return np.sort(order[rank < self.n_chosen])

    def indicator(self, choice: Integers) -> Floats:
        """Return an assignment as weights of the instances."""
        out = np.zeros(len(self.instances))
        out[choice] = self.slot_shares
        return out


class AssignmentSearch:
    """The search for assignments of largest form ``b'Kb``, for given coefficients ``b`` of rows.

    Parameters
    ----------
    problem : AssignmentProblem
        The inner products.
    b : ndarray of shape (n_bags,)
        Coefficients of the bags; a negative one looks for the instance that helps least.
    outer : ndarray of shape (n_instances,)
        What the fixed rows give to the instances: ``cross`` times their coefficients.
    constant : float
        The part of the form that the fixed rows make alone.
    scale : float
        Size of the forms: differences below 1e-12 of it are ties, and go to the lowest instance.
    """

    def __init__(
        self, problem: AssignmentProblem, b: Floats, outer: Floats, constant: float, scale: float
    ) -> None:
        self.problem, self.b, self.outer, self.constant = problem, b, outer, constant
        self.slot_b = problem.slot_coef(b)
        self.first, self.last = (problem.offsets[problem.slots + k] for k in (0, 1))
        self.slack = 1e-12 * scale
        self.found: dict[bytes, tuple[float, Integers]] = {}
        self.values: dict[bytes, Floats] = {}  # of assignments that were climbed to

    def best(self, number: int | None = None) -> list[tuple[float, Integers]]:
        """Return the best assignments found so far with their forms, best first."""
        return sorted(self.found.values(), key=lambda pair: -pair[0])[:number]

    def climb(self, choice: Integers, kicks: tuple[Booleans, Floats] | None = None) -> None:
        """Choose in one bag after another, from an assignment on, until nothing is better.

        ``kicks`` go on from there: each changes some entries and climbs again, and stays where that
        is no lower. Of an assignment that was climbed to before, the values are known.
        """
        from bagwise.solvers.assignments._assignment_kernels import (
            ascend,
            begin_values,
            wander,
            write_all_own,
        )

        inner, diagonal = self.problem.rounded
        choice, b = choice.copy(), self.slot_b
        values, taken = np.empty(len(inner)), np.zeros(len(inner), bool)
        known = self.values.get(choice.tobytes())
        if known is None:
            begin_values(inner, choice, b, self.outer, values)
        else:
            values[:] = known
        taken[choice] = True
        own = np.empty(int((self.last - self.first).sum()))
        write_all_own(inner, diagonal, self.first, self.last, choice, b, own)
        per_slice = slice_length(1e-9 * len(choice) * len(values))
        done, swept = False, 0
        while not done and swept < _MOST_SWEEPS:
            checkpoint()
            done = ascend(
                inner, diagonal, self.first, self.last, b, choice, taken, own, values, self.slack,
                per_slice,
            )  # fmt: skip
            swept += per_slice
        if kicks is not None:
            kicked, draws = kicks
            for start in range(0, len(kicked), per_slice):
                checkpoint()
                some = slice(start, start + per_slice)
                wander(
                    inner, diagonal, self.first, self.last, b, self.outer, choice, taken, own,
                    values, self.slack, _MOST_SWEEPS, kicked[some], draws[some],
                )  # fmt: skip
        form = float(b @ (values[choice] + self.outer[choice]))
        choice = np.sort(choice)
        self.note(choice, form)
        self.values[choice.tobytes()] = values

    def enumerate(self) -> None:
        """Look at all assignments of one instance to each bag."""
        from bagwise.solvers.assignments._assignment_kernels import begin_values, enumerate_forms

        problem, choice = self.problem, self.problem.offsets[:-1].copy()
        values, forms = np.empty(len(problem.instances)), np.empty(problem.n_assignments)
        begin_values(problem.instances, choice, self.b, self.outer, values)
        enumerate_forms(
            problem.instances, problem.offsets, self.b, self.outer, choice, values, forms
        )
        best = int(forms.argmax())
        chosen, free = problem.offsets[:-1].copy(), problem.sizes > 1  # numpy has at most 64 axes
        chosen[free] += np.array(np.unravel_index(best, problem.sizes[free]), np.int64)
        self.note(chosen, float(forms[best]))

    def form(self, choice: Integers) -> float:
        """Return the form of an assignment, in double precision."""
        from bagwise.solvers.assignments._assignment_kernels import chosen_times

        products = np.empty(len(choice))
        chosen_times(self.problem.instances, choice, self.slot_b, products)
        return self.constant + float(self.slot_b @ (products + 2.0 * self.outer[choice]))

    def note(self, choice: Integers, form: float) -> None:
        self.found.setdefault(choice.tobytes(), (self.constant + form, choice))
