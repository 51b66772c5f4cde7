"""What the searches on bags have in common: fits that share their work, in the order it takes."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import parallel_config
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from bagwise._warnings import once
from bagwise.bags import Bags
from bagwise.base import (
    SOLVER_PARAMETERS,
    SharedWork,
    SharingEstimator,
    all_or_nothing,
    as_bags,
    holds_bags,
)
from bagwise.exceptions import ConstantModelWarning, PositiveClassWarning
from bagwise.model_selection._instances import InstanceMethods


class SharedSearch(InstanceMethods):
    """A search of scikit-learn, which comes next in the order of bases, with shared work."""

    estimator: Any
    cache_size: float
    refit: Any
    _work: SharedWork | None = None

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit and score candidates on all folds.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : array-like of shape (n_bags,) or (n_bags, n_labels)
            Labels, or an indicator matrix of label lists.
        **params
            ``sample_weight`` and others for the estimator and the scorer, ``groups`` for the
            splitter.

        Returns
        -------
        self : estimator
            The fitted search.
        """
        search: Any = super()
        with all_or_nothing(self):
            self._validate_params()  # type: ignore[attr-defined]
            if not self._can_share(X):
                search.fit(X, y, **params)
                return self
            self._work = SharedWork(self.cache_size * 1e6)
            with parallel_config(backend="threading"):
                bags = as_bags(X, allow_nan=takes_nan(self.estimator))
                search.fit(bags.with_shared(self._work), y, **params)
            del self._work
        return self

    def _can_share(self, X: Any) -> bool:
        *steps, machine = _steps(self.estimator)
        if not holds_bags(X) or not isinstance(machine, SharingEstimator):
            return False
        return isinstance(X, Bags) or not any(map(_is_foreign, [*steps, *self._other_steps()]))

    def _other_steps(self) -> list[Any]:
        """Return what candidates put in place of steps of a pipeline."""
        space = getattr(self, "param_grid", None) or getattr(self, "param_distributions", {})
        names = set(self.estimator.named_steps) if isinstance(self.estimator, Pipeline) else set()
        grids = [space] if isinstance(space, dict) else space
        return [step for grid in grids for name in names & set(grid) for step in grid[name]]

    def _run_search(self, evaluate_candidates: Any, *, callback_ctx: Any = None) -> None:
        """Let the search of scikit-learn run; the last fit, which follows, shares nothing."""
        search: Any = super()
        context = {} if callback_ctx is None else {"callback_ctx": callback_ctx}
        with few_words(refit=bool(self.refit)):
            if self._work is None:
                search._run_search(evaluate_candidates, **context)
                return
            try:
                search._run_search(in_turn(evaluate_candidates, self._work), **context)
            finally:
                self._work.close()


@contextmanager
def few_words(*, refit: bool) -> Iterator[None]:
    """Let candidates not say again and again what the last fit says, unless a filter wants them to.

    Of a candidate that is constant, its score tells enough. Which class is taken for the positive
    one is said by the first candidate if there is no last fit.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantModelWarning, append=True)
        if refit:
            warnings.simplefilter("ignore", PositiveClassWarning, append=True)
            yield
        else:
            with once(PositiveClassWarning):
                yield


def in_turn(
    evaluate_candidates: Callable[..., dict[str, Any]], work: SharedWork
) -> Callable[..., dict[str, Any]]:
    """Return the same, but with the candidates taken kernel by kernel.

    Results stay in the order in which candidates are given. They are put there in the very
    dictionary that scikit-learn goes on with, so it meets ties in that order.
    """
    places: list[int] = []  # of all candidates so far, among the results

    def evaluate(
        candidates: Iterable[dict[str, Any]],
        cv: Any = None,
        more_results: dict[str, Any] | None = None,
        **context: Any,
    ) -> dict[str, Any]:
        given = list(candidates)
        order = _kernel_by_kernel(given)
        if more_results is not None:
            more_results = {name: _take(values, order) for name, values in more_results.items()}
        if cv is not None:  # folds of this round alone, of some of the bags
            context["cv"] = _Round(cv, work)
        results = evaluate_candidates(_take(given, order), more_results=more_results, **context)
        places.extend(len(places) + np.argsort(order))
        for name, values in results.items():
            results[name] = _take(values, places)
        return results

    return evaluate


class _Round:
    """A splitter that says which bags its folds are about before these are fitted."""

    def __init__(self, cv: Any, work: SharedWork) -> None:
        self.cv, self.work = cv, work

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[Any]:
        splits = list(self.cv.split(X, y, **params))
        self.work.divide(X, [np.concatenate(split) for split in splits])
        return iter(splits)


def _take(values: Any, index: list[int]) -> Any:
    return [values[i] for i in index] if isinstance(values, list) else values[index]


def _steps(estimator: Any) -> list[Any]:
    """Return the steps of a pipeline, or the estimator alone."""
    if not isinstance(estimator, Pipeline):
        return [estimator]
    return [step for _, step in estimator.steps]


def takes_nan(estimator: Any) -> bool:
    """Tell whether missing values meet a transformer first, and one that takes them."""
    first, *others = _steps(estimator)
    return bool(others) and hasattr(first, "transform") and get_tags(first).input_tags.allow_nan


def _is_foreign(step: Any) -> bool:
    """Tell whether it is a transformer that may not know `Bags`, only what the user has."""
    return hasattr(step, "transform") and not get_tags(step).input_tags.three_d_array


def _kernel_by_kernel(candidates: list[dict[str, Any]]) -> list[int]:
    """Return an order in which candidates of one kernel follow one another, with ascending C."""
    groups: dict[Any, int] = {}

    def key(candidate: dict[str, Any]) -> tuple[int, float]:
        last = {name: name.split("__")[-1] for name in candidate}
        about_kernel = {n: v for n, v in candidate.items() if last[n] not in SOLVER_PARAMETERS}
        group = groups.setdefault(hashable(about_kernel), len(groups))
        costs = [value for name, value in candidate.items() if last[name] == "C"]
        is_number = len(costs) == 1 and isinstance(costs[0], Real)
        return group, float(costs[0]) if is_number else 0.0

    keys = [key(candidate) for candidate in candidates]
    return sorted(range(len(candidates)), key=keys.__getitem__)


def hashable(parameters: dict[str, Any]) -> Any:
    """Return names and values; a value that cannot be hashed counts as the object that it is."""
    items = []
    for name, value in sorted(parameters.items()):
        try:
            hash(value)
        except TypeError:
            items.append((name, id(value)))
        else:
            items.append((name, value))
    return tuple(items)
