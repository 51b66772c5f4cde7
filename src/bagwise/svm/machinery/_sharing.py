"""Work that many fits on the same bags have in common, done once.

A search fits the same kind of machine on selections of the same bags, again and again. While a
`SharedWork` is entered, machines that meet its bags find there what an earlier fit has left: the
kernel matrix between all of them, of which every training set is a part, and solutions to start
from. What a machine finds changes its results by no more than its solver's tolerance. Bags are
recognised by their instance matrix, an object of the search alone that lives as long as its entry
here, so nothing else that runs at the same time is affected and no id is used twice.
"""

import copy
import itertools
import pickle
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from threading import Lock
from typing import Any, Protocol, Self, runtime_checkable
from weakref import WeakKeyDictionary

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bagwise import base
from bagwise._threads import single_blas_thread
from bagwise.bags import Bags, segment_rows
from bagwise.kernels import InstanceKernel
from bagwise.svm.machinery._cache import Cache, digest, size_of
from bagwise.svm.machinery._representation import Representation, expansion_attributes
from bagwise.svm.machinery._shared_trainers import STARTED, SelectedTrainer, Starts
from bagwise.svm.machinery._trainer import KernelTrainer, Solution

#: Parameters of machines that neither the kernel matrix nor the rows of a problem depend on.
SOLVER_PARAMETERS = frozenset(
    {"C", "class_weight", "cache_size", "tol", "max_iter", "n_jobs", "n_init"}
)
_START_SHARE = 0.1  # of the memory, for solutions to start from
_LEAST_SHARE = 0.1  # of the memory, which is used even where less is expected to be needed

_known: "dict[int, tuple[SharedWork, Bags, int]]" = {}  # by the id of the instance matrix
_number = itertools.count()  # of all bags that ever were in it


@runtime_checkable
class SharingMachine(Protocol):
    """An estimator whose fits on selections of the same bags have work in common."""

    def _shared_bytes(self, bags: Bags) -> int:
        """Return the size of what a fit shares with others of the same kernel."""


def shared_by(bags: Bags, *, room_for: SharingMachine | None = None) -> "Share | None":
    """Return what is shared by fits on these bags: None outside a search.

    Parameters
    ----------
    bags : Bags
        A selection of the bags of a search, or any others.
    room_for : SharingMachine, optional
        None also if what this machine would share is too large to keep.
    """
    if not _known:
        return None
    found = _known.get(id(bags.segments[0]))
    if found is None:
        return None
    work, whole, number = found
    _, starts, stops = bags.segments
    _, all_starts, all_stops = whole.segments
    index = np.searchsorted(all_starts, starts)
    index[index == len(whole)] = 0
    is_part = np.array_equal(all_starts[index], starts) and np.array_equal(all_stops[index], stops)
    if not is_part or len(np.unique(index)) < len(index):  # a bag twice is two rows of a matrix
        return None
    share = Share(work, whole, number, index)
    if room_for is not None and not share.fits(room_for._shared_bytes(whole)):
        return None
    return share


def problem_key(model: Any) -> Hashable:
    """Return what tells the problems of machines with different kernels apart."""
    parameters = model.get_params(deep=False)
    return type(model), *(
        (name, repr(value)) for name, value in parameters.items() if name not in SOLVER_PARAMETERS
    )


def settled_gamma(gamma: Any, bags: Bags, bag_weight: NDArray[np.float64] | None) -> float:
    """Return the number that a rule for ``gamma`` gives; a weight counts as a repetition."""
    share = shared_by(bags)
    if share is None or not isinstance(gamma, str):
        return base.settled_gamma(gamma, bags, bag_weight)
    weight = None if bag_weight is None else bag_weight.tobytes()
    number: float = share.of_selection(
        ("gamma", gamma, weight), lambda: base.settled_gamma(gamma, bags, bag_weight)
    )
    return number


class SharedWork:
    """Kernel matrices, transformed bags and solutions that fits on selections of bags share.

    It is a context: machines look for it only inside. Given to a `Pipeline` as its ``memory``, it
    also keeps what the steps before the machine make of the bags.

    Parameters
    ----------
    bags : Bags
        All bags of the search.
    n_bytes : float
        Memory for what is kept; what was not used for longest goes first.
    """

    def __init__(self, bags: Bags, n_bytes: float) -> None:
        # A matrix object of its own, on the same memory: it is what the bags are recognised by.
        instances = bags.instances
        own = instances.view() if isinstance(instances, np.ndarray) else copy.copy(instances)
        self.bags = bags._with_instances(own, bags.feature_names)
        self.n_bytes = n_bytes
        self._is_open, self._lock = False, Lock()
        self.kept = Cache(n_bytes)
        self.starts = Cache(_START_SHARE * n_bytes)
        self.expansions: WeakKeyDictionary[Any, Expansion] = WeakKeyDictionary()

    def __enter__(self) -> Self:
        self._is_open = True
        self._admit(self.bags)
        return self

    def __exit__(self, *_exception: object) -> None:
        with self._lock:  # threads of a search that was interrupted may still be at work
            self._is_open = False
            for key in [key for key, (work, *_) in list(_known.items()) if work is self]:
                del _known[key]
        self.kept.clear()
        self.starts.clear()
        self.expansions.clear()

    def expect(self, n_bytes: float) -> None:
        """Keep no more than fits that follow one another will need, where that is known."""
        self.kept.limit = min(self.n_bytes, max(n_bytes, _LEAST_SHARE * self.n_bytes))

    def _admit(self, bags: Bags) -> Bags:
        with self._lock:
            if self._is_open:
                _known[id(bags.segments[0])] = (self, bags, next(_number))
        return bags

    def _dismiss(self, bags: Bags) -> None:
        _known.pop(id(bags.segments[0]), None)

    # A search copies parameters before it sets them; this one is meant to stay what it is.

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def __reduce__(self) -> Any:  # a pipeline that is pickled during the search has no memory
        return _itself, (None,)

    def __repr__(self) -> str:
        return "shared"

    # ------------------------------------------------------------------ memory of a Pipeline

    def cache(self, function: Callable[..., tuple[Any, Any]], **_: Any) -> Callable[..., Any]:
        """Return the function that fits a step and transforms, with a memory."""

        def remembered(transformer: Any, X: Any, y: Any = None, **settings: Any) -> Any:
            share = shared_by(X) if isinstance(X, Bags) else None
            name = None if share is None else _name(transformer, settings)
            if share is None or name is None:
                return function(transformer, X, y, **settings)
            key = ("step", share.number, share.digest, name)

            def fit() -> "_Step":
                made, fitted = function(transformer, X, y, **settings)
                return _Step(self, share.whole, fitted, self._transformed(share, fitted, made))

            step = self.kept.get(key, fit, drop=_Step.drop)
            if step.after is None:
                return function(transformer, X, y, **settings)
            return step.after[share.index], step

        return remembered

    def _transformed(self, share: "Share", fitted: Any, made: Any) -> Bags | None:
        """Return all bags transformed, if those in hand are what ``fit_transform`` made of them."""
        if not isinstance(made, Bags):
            return None
        try:
            after = fitted.transform(share.whole)
        except Exception:  # test bags that it refuses are a matter of scoring, not of the fit
            return None
        if not isinstance(after, Bags) or not np.array_equal(after.offsets, share.whole.offsets):
            return None
        if not _close(after[share.index].instances, made.instances):
            return None
        if after.segments[0] is share.whole.segments[0]:  # a step that does nothing
            is_whole = np.array_equal(after.segments[1], share.whole.segments[1])
            return share.whole if is_whole else None
        return self._admit(after)


@dataclass(frozen=True, eq=False)
class Expansion:
    """The scores of a machine as sums of columns of a matrix, or of what it makes of their entries.

    Parameters
    ----------
    number : int
        Of the bags that the matrix is about.
    matrix : ndarray of shape (n, n_columns)
        Its rows are all their instances, or all of them.
    of_bags : bool
        Which of the two.
    places : ndarray of int of shape (n_support,)
        The columns.
    coef : ndarray of shape (n_outputs, n_support)
        Their coefficients.
    fitted : ndarray
        A fitted attribute of the machine, by which to tell that it has not been fitted again.
    """

    number: int
    matrix: NDArray[Any]
    of_bags: bool
    places: NDArray[np.int64]
    coef: NDArray[np.float64]
    fitted: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Share:
    """A selection of the bags that a `SharedWork` knows.

    Parameters
    ----------
    work : SharedWork
        The work.
    whole : Bags
        All bags, or what a transformer made of all of them.
    number : int
        Their number.
    index : ndarray of int
        Which of them are selected, each once.
    """

    work: SharedWork
    whole: Bags
    number: int
    index: NDArray[np.int64]

    @cached_property
    def digest(self) -> bytes:
        """Name of the selection."""
        return digest(self.index)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The instances of the selection, as rows of the whole."""
        starts, sizes = self.whole.offsets[:-1][self.index], self.whole.sizes[self.index]
        return segment_rows(starts, starts + sizes)

    @cached_property
    def images(self) -> NDArray[np.int64]:
        """The instances, then the means of the bags, as rows of a matrix between all of these."""
        return np.concatenate([self.rows, self.whole.n_instances + self.index])

    def of_whole(self, key: Hashable, make: Callable[[Bags], Any]) -> Any:
        """Return what is made of all bags, whatever the selection."""
        return self.work.kept.get((self.number, key), lambda: make(self.whole))

    def of_each(self, key: Hashable, make: Callable[[Bags], Bags]) -> Bags:
        """Return bags that are made of the selected ones, each by itself; they are shared too."""
        made: Bags = self.work.kept.get(
            (self.number, key), lambda: self.work._admit(make(self.whole)), drop=self.work._dismiss
        )
        return made[self.index]

    def of_selection(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what is made of the selection."""
        return self.work.kept.get((self.number, self.digest, key), make)

    def point_gram(
        self, kernel: InstanceKernel, means: Any, make: Callable[[Bags], NDArray[Any]]
    ) -> NDArray[Any] | None:
        """Return the kernel matrix between the instances of all bags, and perhaps their means.

        Parameters
        ----------
        kernel : InstanceKernel
            The kernel.
        means : str or None
            Which means of bags are needed.
        make : callable
            Takes bags, returns the matrix.

        Returns
        -------
        ndarray or None
            None if the matrix is too large to keep.
        """
        n_images = self.whole.n_instances + (len(self.whole) if means else 0)
        itemsize = 4 if self.whole.segments[0].dtype == np.float32 else 8
        if not self.fits(itemsize * n_images**2):
            return None
        gram: NDArray[Any] = self.of_whole((kernel, means), make)
        return gram

    def fits(self, n_bytes: int) -> bool:
        """Tell whether so much may be kept."""
        return n_bytes <= self.work.n_bytes

    def remember(self, model: Any, **parts: Any) -> None:
        """Keep what the scores of a machine are made of, an `Expansion`."""
        self.work.expansions[model] = Expansion(self.number, **parts)

    def expansion(
        self, model: Any, gram: NDArray[Any], coef: NDArray[np.float64], kernel: InstanceKernel
    ) -> dict[str, Any]:
        """Return an expansion over the instances selected as attributes, and remember it."""
        support = np.flatnonzero(coef.any(axis=0))
        places, coef = self.rows[support], coef[:, support]
        fitted = expansion_attributes(self.whole.instances[places], coef, kernel)
        self.remember(
            model, matrix=gram, of_bags=False, places=places, coef=coef,
            fitted=fitted["dual_coef_"],
        )  # fmt: skip
        return {"support_": support, **fitted}

    def block(self, model: Any, *, of_bags: bool = False) -> NDArray[Any] | None:
        """Return the columns of a machine at the instances or bags selected, if they are known."""
        known = self._remembered(model, of_bags=of_bags)
        return None if known is None else self._columns(known)

    def scores(self, model: Any, *, of_bags: bool = False) -> NDArray[np.float64] | None:
        """Return the sums of a machine on the instances or bags selected, if they are known."""
        known = self._remembered(model, of_bags=of_bags)
        if known is None:
            return None
        block = self._columns(known)
        with single_blas_thread():  # those of a pool would go on spinning beside the next solver
            return np.asarray(block @ known.coef.T, np.float64)

    def _remembered(self, model: Any, *, of_bags: bool) -> Expansion | None:
        known = self.work.expansions.get(model)
        if known is None or (known.number, known.of_bags) != (self.number, of_bags):
            return None
        is_fresh = any(value is known.fitted for value in vars(model).values())
        return known if is_fresh else None

    def _columns(self, known: Expansion) -> NDArray[Any]:
        rows = self.index if known.of_bags else self.rows
        part: NDArray[Any] = known.matrix[np.ix_(rows, known.places)]
        return part

    def starts(self, key: Hashable) -> Starts:
        """Return the solutions that were found on this selection, with a kernel of this name."""
        return Starts(self.work.starts, (self.number, self.digest, key))

    def started(self, trainer: Any, key: Hashable) -> Any:
        """Return the trainer as one that starts from earlier solutions, if there is such a kind."""
        kind = STARTED.get(type(trainer))
        if kind is None:
            return trainer
        parts = {field.name: getattr(trainer, field.name) for field in fields(trainer)}
        return kind(**parts, starts=self.starts(key))


def represent_shared(
    model: Any,
    share: Share,
    kernel: InstanceKernel,
    means: Any,
    solver: dict[str, Any],
    make: Callable[[Bags, int], Representation],
) -> Representation:
    """Return where the instances live, with the kernel matrix between the instances of all bags.

    Parameters
    ----------
    model : KernelMachine
        The machine.
    share : Share
        Its training bags.
    kernel : InstanceKernel
        The kernel.
    means : str or None
        Which means of bags are needed.
    solver : dict
        Settings of the solver.
    make : callable
        Takes bags and the memory for a matrix, returns their representation.
    """
    whole, gram = share.whole, None
    key: tuple[Hashable, ...] = (kernel, means)
    if kernel.name != "linear" and model.approx is None:
        gram = share.point_gram(
            kernel, means, lambda whole: _gram(make(whole, int(share.work.n_bytes)))
        )
    if gram is None:
        representation = make(whole[share.index], int(model.cache_size * 1e6))
        return replace(representation, trainer=share.started(representation.trainer, key))
    trainer = KernelTrainer(gram, whole.n_instances, **solver)
    selected = SelectedTrainer(trainer, share.rows, share.images, share.starts(key))
    sizes = whole.sizes[share.index]

    def attributes(solutions: Sequence[Solution]) -> dict[str, Any]:
        coef = np.array([solution.instance_coef(sizes) for solution in solutions])
        return share.expansion(model, gram, coef, kernel)

    return Representation(selected, attributes)


def _gram(representation: Representation) -> NDArray[Any]:
    assert isinstance(representation.trainer, KernelTrainer)
    gram: NDArray[Any] = representation.trainer.gram
    return gram


@dataclass(frozen=True, eq=False)
class _Step:
    """A fitted transformer that knows what it makes of the bags of a search."""

    work: SharedWork
    before: Bags
    fitted: Any
    after: Bags | None

    def drop(self) -> None:
        if self.after is not None and self.after is not self.before:
            self.work._dismiss(self.after)

    @property
    def nbytes(self) -> int:
        return 0 if self.after is None or self.after is self.before else size_of(self.after)

    def transform(self, X: Any, **params: Any) -> Any:
        share = shared_by(X) if isinstance(X, Bags) else None
        if share is None or share.whole is not self.before or self.after is None:
            return self.fitted.transform(X, **params)
        return self.after[share.index]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fitted, name)

    def __repr__(self) -> str:
        return repr(self.fitted)

    # Copies have no memory: they are what was fitted.

    def __sklearn_clone__(self) -> Any:
        return clone(self.fitted)

    def __reduce__(self) -> Any:
        return _itself, (self.fitted,)


def _itself(value: Any) -> Any:
    return value


def _name(transformer: Any, settings: dict[str, Any]) -> str | None:
    """Return a name for what a step is about to be fitted with, or None if there is none."""
    parts = {key: value for key, value in settings.items() if key in ("weight", "params")}
    try:
        return str(joblib.hash((transformer, parts)))
    except (pickle.PicklingError, AttributeError, TypeError):  # made of what cannot be pickled
        return None


def _close(a: Any, b: Any) -> bool:
    """Tell whether two instance matrices are the same up to rounding."""
    if a.shape != b.shape or a.dtype != b.dtype or (hasattr(a, "indptr") != hasattr(b, "indptr")):
        return False
    if hasattr(a, "indptr"):
        difference, largest = abs(a - b).max(), abs(b).max()
    else:
        difference, largest = np.abs(a - b).max(initial=0.0), np.abs(b).max(initial=0.0)
    return bool(difference <= 100 * np.finfo(a.dtype).eps * largest)
