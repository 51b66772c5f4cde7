"""Grid search in which the fits share kernel matrices."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from bagwise._compat import Interval
from bagwise.bags import Bags
from bagwise.base import all_or_nothing, as_bags, holds_bags
from bagwise.kernels import needs_gamma
from bagwise.svm.machinery._sharing import SOLVER_PARAMETERS, SharedWork, SharingMachine

# Folds take turns: if one too many is kept, each is forgotten just before its next turn.
_MARGIN = 1.05
_SMALL_THINGS = 10_000


class BagGridSearchCV(GridSearchCV):
    """Search over a grid of parameters by cross-validation, fast for kernel machines on bags.

    It is `sklearn.model_selection.GridSearchCV`, with the same parameters, attributes and results.
    With a kernel machine of `bagwise.svm` or `bagwise.embedding.MILES`, alone or at the end of a
    `Pipeline`, on bags

    * a kernel matrix is computed once between all bags (or all of their instances), for each kernel
      and value of ``gamma``; every fold, every ``C`` and every prediction uses it where it lies;
    * what does not depend on ``gamma`` is computed once for all: the distances in `MILES`, the
      edges in ``MIGraphSVM(graph="edges")`` and the sums over pairs of these;
    * what a transformer in front makes of the bags, and the matrix that follows, is computed once
      for each fold; so is a matrix whose ``gamma`` is a rule like ``"scale"``, for it depends on
      the training bags;
    * values of ``C`` are visited from below, and each convex problem (of a method that alternates:
      the first one) starts from the solution at the last ``C``.

    With ``approx`` and with the linear kernel there is no matrix to share, but `InsKISVM`,
    `BagKISVM` and ``MIGraphSVM(graph="edges")`` have one with the linear kernel too. `RegSVM`
    shares the matrix but no solutions; `SparseMI`, `ReducedSetSVM` and `RandomSetSVM` only share
    what transformers make. `InsKISVM` and `BagKISVM` start from the assignments at the last ``C``
    only without a ``random_state``: where they end depends on the start a little, as it does on
    random numbers.

    Scores agree with those of `GridSearchCV` to the accuracy of the solver. Other estimators, plain
    matrices, ``kernel="precomputed"``, a callable kernel that is not a plain function, and matrices
    that do not fit in memory are searched as `GridSearchCV` does it.

    Parameters
    ----------
    estimator : estimator
        What to fit, such as ``MIKernelSVM()`` or a `Pipeline` that ends with it.
    param_grid : dict or list of dict
        Values to try for each parameter.
    scoring : str, callable, list, tuple or dict, optional
        How to score; the estimator's own ``score`` if left out.
    n_jobs : int or None
        Fits at the same time, in threads, which share the matrices; where nothing is shared, in
        processes as in `GridSearchCV`.
    refit : bool, str or callable
        Whether, or by which score, to fit the best estimator on all bags in the end.
    cv : int, splitter or iterable
        How to split; an integer means so many stratified folds.
    verbose : int
        How much to print.
    pre_dispatch : int or str
        How many fits are prepared ahead.
    error_score : "raise" or float
        The score where a fit fails.
    return_train_score : bool
        Whether to score the training bags as well.
    cache_size : float
        Megabytes for what is shared. If the matrices of all folds do not fit side by side, groups
        of folds that do are searched one after another; if a single one does not fit, it is not
        shared.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        Scores, ranks and times of all candidates, in the order of the grid. Work that is shared
        counts in the ``fit_time`` of the fit that did it first.
    best_estimator_ : estimator
        The estimator with the best parameters, fitted on all bags; only with ``refit``.
    best_score_ : float
        Its mean score over the folds.
    best_params_ : dict
        Its parameters.
    best_index_ : int
        Its place among the candidates.
    scorer_ : callable or dict
        The scorers.
    n_splits_ : int
        Number of folds.
    refit_time_ : float
        Seconds of the last fit.
    multimetric_ : bool
        Whether there are several scores.
    n_features_in_ : int
        Number of features; only with ``refit``.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, if the data had any.
    classes_ : ndarray of shape (n_classes,)
        The labels; only with ``refit``.

    See Also
    --------
    StratifiedBagKFold : Folds with equal shares of classes or labels that keep groups together.

    Notes
    -----
    Fits in threads may come to a value of ``C`` before the one below it is done, and then start
    from another solution: results are the same to the accuracy of the solver, not to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.model_selection import BagGridSearchCV
    >>> from bagwise.svm import MIKernelSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> grid = {"C": [0.01, 1.0, 100.0], "gamma": [0.01, 0.1]}
    >>> search = BagGridSearchCV(MIKernelSVM(), grid, cv=5).fit(bags, y)
    >>> search.best_params_
    {'C': 0.01, 'gamma': 0.1}
    >>> len(search.cv_results_["mean_test_score"])
    6
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GridSearchCV._parameter_constraints,
        "cache_size": [Interval(Real, 0, None, closed="left")],
    }

    n_splits_: int

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        cache_size: float = 1000.0,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.cache_size = cache_size

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit and score all candidates on all folds.

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
        self : BagGridSearchCV
            The fitted search.
        """
        with all_or_nothing(self):
            self._validate_params()
            if not self._can_share(X):
                super().fit(X, y, **params)
                return self
            bags = as_bags(X)
            self.__dict__.pop("n_splits_", None)  # of an earlier fit
            self._shared = _SharedSearch(self.estimator, bags, self.cache_size * 1e6)
            with parallel_config(backend="threading"):
                super().fit(self._shared.work.bags, y, **params)
            del self._shared
        return self

    def _can_share(self, X: Any) -> bool:
        if not isinstance(_machine(self.estimator), SharingMachine) or not holds_bags(X):
            return False
        variants = _variants(self.estimator, ParameterGrid(self.param_grid))
        if any(_is_of_one_fit(getattr(_machine(each), "kernel", None)) for each in variants):
            return False
        return isinstance(X, Bags) or not any(
            _is_foreign(step) for each in variants for step in _steps(each)
        )

    # Two places at which `GridSearchCV` lets a subclass in: how the candidates are evaluated, and
    # how what came of them is put together.

    def _run_search(self, evaluate_candidates: Any, *, callback_ctx: Any = None) -> None:
        context = {} if callback_ctx is None else {"callback_ctx": callback_ctx}
        shared: _SharedSearch | None = getattr(self, "_shared", None)
        if shared is None:
            super()._run_search(evaluate_candidates, **context)
            return

        def evaluate(candidates: Any, **settings: Any) -> None:
            # An older scikit-learn does not say how many folds there are, nor lets us choose.
            n_splits = getattr(self, "n_splits_", None)
            shared.plan(list(candidates), n_splits)
            if n_splits is None or len(shared.waves) <= 1:
                evaluate_candidates(shared.in_turn(), **settings)
                return
            context = settings.pop("callback_ctx", None)
            try:
                for first, last in shared.waves:
                    self.n_splits_ = last - first
                    if context is not None:
                        settings["callback_ctx"] = _Tasks(context, first * len(shared.candidates))
                    cv = shared.splits(self._checked_cv_orig, first, last)
                    evaluate_candidates(shared.in_turn(), cv=cv, **settings)
                self.n_splits_ = n_splits
            except ValueError:
                if self.error_score == "raise":
                    raise
                # All fits of these folds may have failed, which `GridSearchCV` takes for all of
                # all folds. With all folds at once it either goes on or fails for good.
                settings.pop("callback_ctx", None)
                self.n_splits_, shared.waves = n_splits, []
                cv = shared.splits(self._checked_cv_orig, 0, n_splits)
                evaluate_candidates(shared.in_turn(), cv=cv, **settings)

        with shared.work:
            super()._run_search(evaluate, **context)

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: list[Any], more_results: Any = None
    ) -> Any:
        shared: _SharedSearch | None = getattr(self, "_shared", None)
        if shared is not None:
            n_splits = shared.n_splits or n_splits
            if len(out) < len(shared.candidates) * n_splits:
                return None  # folds are still to come
            candidate_params, out = shared.in_order(out, n_splits)
        return super()._format_results(candidate_params, n_splits, out, more_results)


class _SharedSearch:
    """The order in which fits that share their work are best done.

    Candidates come kernel by kernel, in each with ``C`` from below; all folds of one candidate come
    before the next, unless their matrices do not fit side by side.

    Parameters
    ----------
    estimator : estimator
        A machine whose fits share work, or a pipeline that ends with one.
    bags : Bags
        The bags.
    n_bytes : float
        Memory for what is shared.
    """

    def __init__(self, estimator: Any, bags: Bags, n_bytes: float) -> None:
        self.estimator = estimator
        self.work = SharedWork(bags, n_bytes)
        self._splits: list[Any] | None = None

    def plan(self, candidates: list[dict[str, Any]], n_splits: int | None) -> None:
        """Put candidates and, if their number is known, folds in order."""
        self.candidates, self.n_splits = candidates, n_splits
        self.order = _kernel_by_kernel(candidates)
        self.waves: list[tuple[int, int]] = []
        variants = _variants(self.estimator, candidates)
        fold_bytes = max(map(self._fold_bytes, variants), default=_SMALL_THINGS)
        if not any(map(_differs_by_fold, variants)):
            self.work.expect(fold_bytes)
        elif n_splits is not None:
            size = min(max(int(self.work.n_bytes // fold_bytes), 1), n_splits)
            self.work.expect(size * fold_bytes)
            self.waves = [(i, min(i + size, n_splits)) for i in range(0, n_splits, size)]

    def _fold_bytes(self, estimator: Any) -> int:
        """Return what a fold needs: a matrix, and the bags as a step has left them."""
        bags, machine = self.work.bags, _machine(estimator)
        matrix = machine._shared_bytes(bags) if isinstance(machine, SharingMachine) else 0
        step = bags.segments[0].dtype.itemsize * bags.n_instances * bags.n_features
        return int(_MARGIN * (matrix + len(_steps(estimator)) * step)) + _SMALL_THINGS

    def in_turn(self) -> list[dict[str, Any]]:
        """Return the candidates in the order of evaluation; a pipeline gets the common memory."""
        memory = {}
        is_pipeline = isinstance(self.estimator, Pipeline)
        if is_pipeline and self.estimator.memory is None and not _has(self.candidates, "memory"):
            memory["memory"] = self.work
        return [{**self.candidates[i], **memory} for i in self.order]

    def splits(self, cv: Any, first: int, last: int) -> "_SomeSplits":
        """Return a splitter with some of the folds."""
        return _SomeSplits(self, cv, first, last)

    def all_splits(self, cv: Any, *args: Any, **params: Any) -> list[Any]:
        """Return all folds; a splitter that draws at random is asked only once."""
        if self._splits is None:
            self._splits = list(cv.split(*args, **params))
        return self._splits

    def in_order(self, out: list[Any], n_splits: int) -> tuple[list[dict[str, Any]], list[Any]]:
        """Return candidates and results, candidate by candidate as in the grid."""
        n, waves = len(self.candidates), self.waves or [(0, n_splits)]
        out = out[-n * n_splits :]  # without those of an attempt in waves that was given up
        starts = [0, *accumulate(n * (last - first) for first, last in waves)]
        ordered = []
        for turn in np.argsort(self.order):
            for (first, last), start in zip(waves, starts, strict=False):
                width = last - first
                ordered += out[start + turn * width : start + (turn + 1) * width]
        return self.candidates, ordered


class _SomeSplits:
    """A splitter that goes over some of the folds of another."""

    def __init__(self, search: _SharedSearch, cv: Any, first: int, last: int) -> None:
        self.search, self.cv, self.first, self.last = search, cv, first, last

    def split(
        self, X: Any, y: Any = None, **params: Any
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        splits = self.search.all_splits(self.cv, X, y, **params)
        if len(splits) != self.search.n_splits:
            return iter(splits)  # which `GridSearchCV` then complains about
        return iter(splits[self.first : self.last])


class _Tasks:
    """The tasks of a callback's context, numbered from a first one on."""

    def __init__(self, context: Any, first: int) -> None:
        self.context, self.first = context, first

    def subcontext(self, *, task_id: int, **settings: Any) -> Any:
        return self.context.subcontext(task_id=self.first + task_id, **settings)


def _machine(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _variants(estimator: Any, candidates: Iterable[dict[str, Any]]) -> list[Any]:
    """Return the estimator as each candidate sets it; estimators in the grid stay what they are."""
    return [clone(estimator).set_params(**clone(candidate, safe=False)) for candidate in candidates]


def _differs_by_fold(estimator: Any) -> bool:
    """Tell whether folds have matrices of their own."""
    machine = _machine(estimator)
    by_rule = isinstance(getattr(machine, "gamma", None), str)
    return bool(_steps(estimator)) or (
        by_rule and hasattr(machine, "kernel") and needs_gamma(machine.kernel)
    )


def _steps(estimator: Any) -> list[Any]:
    """Return the transformers in front of the machine."""
    steps = estimator.steps[:-1] if isinstance(estimator, Pipeline) else []
    return [step for _, step in steps if step is not None and not _is_passthrough(step)]


def _is_foreign(step: Any) -> bool:
    """Tell whether it is a transformer that may not know `Bags`, only what the user has."""
    return hasattr(step, "transform") and not get_tags(step).input_tags.three_d_array


def _is_of_one_fit(kernel: Any) -> bool:
    """Tell whether fits do not know each other's kernel: a given one, or an object they copy."""
    if callable(kernel):
        return clone(kernel, safe=False) is not kernel
    return isinstance(kernel, str) and kernel == "precomputed"


def _is_passthrough(step: Any) -> bool:
    return isinstance(step, str) and step == "passthrough"


def _is(name: str, parameter: str) -> bool:
    return name.split("__")[-1] == parameter


def _has(candidates: list[dict[str, Any]], name: str) -> bool:
    return any(name in candidate for candidate in candidates)


def _kernel_by_kernel(candidates: list[dict[str, Any]]) -> list[int]:
    """Return an order in which candidates of one kernel follow one another, with ascending C."""
    groups: dict[Any, int] = {}

    def key(candidate: dict[str, Any]) -> tuple[int, float]:
        about_kernel = {
            name: value
            for name, value in candidate.items()
            if name.split("__")[-1] not in SOLVER_PARAMETERS
        }
        group = groups.setdefault(_hashable(about_kernel), len(groups))
        costs = [value for name, value in candidate.items() if _is(name, "C")]
        is_number = len(costs) == 1 and isinstance(costs[0], Real)
        return group, float(costs[0]) if is_number else 0.0

    keys = [key(candidate) for candidate in candidates]
    return sorted(range(len(candidates)), key=keys.__getitem__)


def _hashable(parameters: dict[str, Any]) -> Any:
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
