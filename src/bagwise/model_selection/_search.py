"""Searches in which the fits share kernel matrices."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import GridSearchCV

from bagwise._compat import Interval
from bagwise.model_selection._shared_search import SharedSearch


class BagGridSearchCV(SharedSearch, GridSearchCV):
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

    Scores agree with those of `GridSearchCV` to the accuracy of the solver. Other estimators and
    plain matrices are searched as `GridSearchCV` does it. Nothing is shared with
    ``kernel="precomputed"``, a callable kernel that is not a plain function, transformers other
    than `bagwise.preprocessing.InstanceTransformer`, and matrices that do not fit in memory.

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
        Megabytes for what is shared; what was not used for longest is forgotten first. A matrix
        that does not fit alone is not shared.

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
