"""Work that many fits on the same bags have in common, done once.

A search fits the same kind of estimator on selections of the same bags, again and again. It hangs
a `SharedWork` on these bags. A selection knows the whole that it was taken from, so a fit finds
there what an earlier one has left: something computed of all bags (a kernel matrix, of which every
training set is a part), of the same selection, or a solution to start from. What it finds changes
its results by no more than its solver's tolerance. Bags that carry nothing share nothing.
"""

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self, runtime_checkable
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import single_blas_thread
from bagwise.bags import Bags, segment_rows
from bagwise.base._cache import Cache, Same, digest

#: Parameters of estimators that neither a kernel matrix nor the rows of a problem depend on.
SOLVER_PARAMETERS = frozenset(
    {"C", "class_weight", "cache_size", "tol", "max_iter", "n_jobs", "n_init", "verbose"}
)
_SOLUTION_SHARE = 0.1  # of the memory, for solutions
_ROWS_AT_ONCE = 64  # of a matrix that scores are computed from: as many stay in the cache


@runtime_checkable
class SharingEstimator(Protocol):
    """An estimator whose fits on selections of the same bags have work in common."""

    def _shared_bytes(self, bags: Bags) -> int:
        """Return the size of what a fit shares with others of the same kernel."""


def shared_by(bags: Bags, *, room_for: SharingEstimator | None = None) -> "Share | None":
    """Return what is shared by fits on these bags: None outside a search.

    Parameters
    ----------
    bags : Bags
        A selection of the bags of a search, or any others.
    room_for : SharingEstimator, optional
        None also if what this estimator would share is too large to keep.
    """
    work: SharedWork | None = bags.shared
    if work is None or not work.is_open:
        return None
    whole, index = bags.selection
    if len(np.unique(index)) < len(index):  # a bag twice is two rows of a matrix
        return None
    for part, places in work.parts:
        if (places[index] >= 0).all():
            work, whole, index = part.shared, part, places[index]
            break
    share = Share(work, whole, index)
    if room_for is not None and not share.fits(room_for._shared_bytes(whole)):
        return None
    return share


def problem_key(model: Any) -> Hashable:
    """Return what tells the problems of machines with different kernels apart."""
    parameters = model.get_params(deep=False)
    return type(model), *(
        (name, repr(value)) for name, value in parameters.items() if name not in SOLVER_PARAMETERS
    )


class SharedWork:
    """What fits on selections of the same bags leave for each other.

    Parameters
    ----------
    n_bytes : float
        Memory for what is kept; what was not used for longest goes first.
    """

    def __init__(self, n_bytes: float) -> None:
        self.n_bytes = n_bytes
        self.kept = Cache(n_bytes)
        self.solutions = Cache(_SOLUTION_SHARE * n_bytes)
        self.parts: list[tuple[Bags, Integers]] = []

    @property
    def is_open(self) -> bool:
        """Whether anything is shared: yes until it is closed."""
        return self.kept.is_open

    def close(self) -> None:
        """Forget everything, and share nothing from now on."""
        self.kept.close()
        self.solutions.close()

    def apart(self) -> Self:
        """Return the same for other bags: one memory, but nothing of the one is of the other."""
        other = copy.copy(self)
        other.parts = []
        return other

    def divide(self, whole: Bags, parts: Sequence[Integers]) -> None:
        """From now on share inside of parts of the bags, if that is less work than on all of them.

        It is if the matrices of all parts have fewer entries together than that of the whole: where
        a search looks at few bags, folds have little in common.
        """
        self.parts = []
        sizes = [whole.sizes[np.unique(part)].sum() for part in parts]
        if np.square(sizes, dtype=np.float64).sum() < float(whole.n_instances) ** 2:
            self.parts = [self._part(whole, np.unique(part)) for part in parts]

    def _part(self, whole: Bags, index: Integers) -> tuple[Bags, Integers]:
        """Return bags as a whole of their own, and where each of all is in it, -1 for others."""
        places = np.full(len(whole), -1)
        places[index] = np.arange(len(index))
        return whole[index].with_shared(self.apart()), places


@dataclass(frozen=True, eq=False)
class Expansion:
    """The scores of a machine as sums of columns of a matrix.

    Parameters
    ----------
    matrix : weak reference to ndarray of shape (n, n_columns)
        Its rows are all instances of the whole, or all bags.
    places : ndarray of int of shape (n_support,)
        The columns.
    coef : ndarray of shape (n_outputs, n_support)
        Their coefficients.
    """

    matrix: "ReferenceType[NDArray[Any]]"
    places: Integers
    coef: Floats


@dataclass(frozen=True, eq=False)
class Share:
    """A selection of the bags of a search, and what is known of them.

    Parameters
    ----------
    work : SharedWork
        What is known.
    whole : Bags
        All bags.
    index : ndarray of int
        The selection.
    """

    work: SharedWork
    whole: Bags
    index: Integers

    @cached_property
    def digest(self) -> bytes:
        """Name of the selection."""
        return digest(self.index)

    @cached_property
    def rows(self) -> Integers:
        """The instances of the selection, as rows of ``whole.instances``."""
        starts, sizes = self.whole.offsets[:-1][self.index], self.whole.sizes[self.index]
        return segment_rows(starts, starts + sizes)

    def fits(self, n_bytes: float) -> bool:
        """Tell whether so much may be kept."""
        return n_bytes <= self.work.n_bytes

    def of_whole(self, key: Hashable, make: Callable[[Bags], Any]) -> Any:
        """Return what is made of all bags, whatever the selection."""
        return self.work.kept.get((self.work, key), lambda: make(self.whole))

    def of_each(self, key: Hashable, make: Callable[[Bags], Bags]) -> Bags:
        """Return bags that are made of the selected ones, each by itself; they are shared too."""
        made: Bags = self.of_whole(key, lambda whole: make(whole).with_shared(self.work.apart()))
        return made[self.index]

    def of_selection(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what is made of the selection."""
        return self.work.kept.get((self.work, self.digest, key), make)

    def starts(self, key: Hashable) -> "Starts":
        """Return the solutions that were found on this selection, with a kernel of this name."""
        return Starts(self.work.solutions, (self.work, self.digest, key))

    # -------------------------------------------------- scores of machines that were fitted here

    def remember(
        self,
        fitted: NDArray[Any],
        matrix: NDArray[Any],
        places: Integers,
        coef: Floats,
        *,
        of_bags: bool,
    ) -> None:
        """Keep what the scores of a machine are made of, under a fitted attribute of it.

        Parameters
        ----------
        fitted : ndarray
            The attribute: this array and no other will be asked for.
        matrix : ndarray of shape (n, n_columns)
            About all instances of the whole, or about all of its bags.
        places : ndarray of int of shape (n_support,)
            The columns that matter.
        coef : ndarray of shape (n_outputs, n_support)
            Their coefficients.
        of_bags : bool
            Whether the matrix is about bags.
        """
        expansion = Expansion(ref(matrix), places, coef)
        self.work.solutions.put((self.work, Same(fitted), of_bags), expansion)

    def block(self, fitted: NDArray[Any] | None, *, of_bags: bool = False) -> NDArray[Any] | None:
        """Return the columns of a machine at the instances or bags selected, if they are known."""
        found = self._columns(fitted, of_bags)
        if found is None:
            return None
        matrix, known = found
        block: NDArray[Any] = matrix[np.ix_(self.index if of_bags else self.rows, known.places)]
        return block

    def scores(self, fitted: NDArray[Any] | None, *, of_bags: bool = False) -> Floats | None:
        """Return the sums of a machine on the instances or bags selected, if they are known."""
        found = self._columns(fitted, of_bags)
        if found is None:
            return None
        matrix, known = found
        rows, n_columns = self.index if of_bags else self.rows, matrix.shape[1]
        # Whole rows are read faster than many columns of them.
        columns = None if 2 * len(known.places) > n_columns else known.places
        coef = known.coef.T
        if columns is None:
            coef = np.zeros((n_columns, len(known.coef)))
            coef[known.places] = known.coef.T
        out = np.empty((len(rows), coef.shape[1]))
        with single_blas_thread():  # those of a pool would go on spinning beside the next solver
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                some = rows[start : start + _ROWS_AT_ONCE]
                block = matrix[some] if columns is None else matrix[np.ix_(some, columns)]
                out[start : start + _ROWS_AT_ONCE] = block @ coef
        return out

    def _columns(
        self, fitted: NDArray[Any] | None, of_bags: bool
    ) -> tuple[NDArray[Any], Expansion] | None:
        known: Expansion | None = self.work.solutions.find((self.work, Same(fitted), of_bags))
        matrix = None if known is None else known.matrix()
        if known is None or matrix is None:
            return None
        return matrix, known


@dataclass(frozen=True, eq=False)
class Starts:
    """Solutions that were found on a selection of bags, for the same problems at other costs.

    Parameters
    ----------
    kept : Cache
        The solutions.
    key : hashable
        What tells the problems of one machine from those of others.
    """

    kept: Cache
    key: Hashable

    def find(self, *parts: NDArray[Any]) -> Any:
        """Return what was kept last of a problem with these parts, or None."""
        return self.kept.find((self.key, digest(*parts)))

    def keep(self, solution: Any, *parts: NDArray[Any]) -> None:
        """Keep where the next problem with these parts is to start."""
        self.kept.put((self.key, digest(*parts)), solution)
