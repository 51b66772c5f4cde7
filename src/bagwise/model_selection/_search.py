"""Searches in which the fits share kernel matrices."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from bagwise._compat import HalvingGridSearchCV, HalvingRandomSearchCV, Interval
from bagwise.base import documented
from bagwise.model_selection._shared_search import SharedSearch

_CACHE_SIZE = {"cache_size": [Interval(Real, 0, None, closed="left")]}


@documented
class BagGridSearchCV(SharedSearch, GridSearchCV):
    """Search over a grid of parameters by cross-validation, fast for kernel machines on bags.

    It is `sklearn.model_selection.GridSearchCV`, with the same parameters, attributes and results.
    With a kernel machine of `bagwise.svm` or a class of `bagwise.embedding`, alone or at the end of
    a `Pipeline`, on bags

    * a kernel matrix is computed once between all bags (or all of their instances), for each kernel
      and value of ``gamma``; every fold, every ``C`` and every prediction uses it where it lies;
    * what does not depend on ``gamma`` is computed once for all: the distances in `MILES` and
      `MInD`, the edges in ``MIGraphSVM(graph="edges")`` and the sums over pairs of these;
    * what a transformer in front makes of the bags, and the matrix that follows, is computed once
      for each fold; so is a matrix whose ``gamma`` is a rule like ``"scale"``, for it depends on
      the training bags;
    * values of ``C`` are visited from below, and each convex problem (of a method that alternates:
      the first one) starts from the solution at the last ``C``.

    With ``approx`` and with the linear kernel there is no matrix to share, but `InsKISVM`,
    `BagKISVM` and ``MIGraphSVM(graph="edges")`` have one with the linear kernel too. `RegSVM`,
    `ODM` and `MIODM` share the matrix but no solutions; `SparseMI`, `ReducedSetSVM` and
    `RandomSetSVM` only share what transformers make, `DDSVM` and `PPMMSVM` what they make of a
    training set before they train on it. `InsKISVM` and `BagKISVM` start from the assignments at
    the last ``C`` only without a ``random_state``: where they end depends on the start a little, as
    it does on random numbers.

    Scores agree with those of `GridSearchCV` to the accuracy of the solver. Other estimators and
    plain matrices are searched as `GridSearchCV` does it. Nothing is shared with
    ``kernel="precomputed"``, a callable kernel that is not a plain function, transformers other
    than `bagwise.preprocessing.InstanceTransformer`, and matrices that do not fit in memory.

    Parameters
    ----------
    |estimator: search|
    |param_grid, scoring, n_jobs: search, refit, cv, verbose, pre_dispatch|
    |error_score, return_train_score, cache_size: search|

    Attributes
    ----------
    |cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_|
    |n_splits_, refit_time_, multimetric_, n_features_in_: search, feature_names_in_|
    |classes_: search|

    See Also
    --------
    BagRandomizedSearchCV : Candidates drawn at random.
    BagHalvingGridSearchCV : Most candidates on few bags, the best of them on all.
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
        **_CACHE_SIZE,
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


@documented
class BagRandomizedSearchCV(SharedSearch, RandomizedSearchCV):
    """Search over random candidates by cross-validation, fast for kernel machines on bags.

    It is `sklearn.model_selection.RandomizedSearchCV`, with the same parameters, attributes and
    candidates, and fits that share their work as those of `BagGridSearchCV` do. Where ``gamma`` is
    drawn from a distribution every candidate has a kernel matrix of its own, which its folds and
    its predictions share.

    Parameters
    ----------
    |estimator: search|
    |param_distributions|
    n_iter : int
        Number of candidates.
    |scoring, n_jobs: search, refit, cv, verbose, pre_dispatch, random_state: search|
    |error_score, return_train_score, cache_size: search|

    Attributes
    ----------
    |cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_|
    |n_splits_, refit_time_, multimetric_, n_features_in_: search, feature_names_in_|
    |classes_: search|

    See Also
    --------
    BagGridSearchCV : All candidates of a grid; says what is shared.
    BagHalvingRandomSearchCV : Most candidates on few bags, the best of them on all.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from bagwise.model_selection import BagRandomizedSearchCV
    >>> from bagwise.svm import MIKernelSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> space = {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-3, 1.0)}
    >>> search = BagRandomizedSearchCV(MIKernelSVM(), space, n_iter=5, random_state=0)
    >>> sorted(search.fit(bags, y).best_params_), float(search.best_score_)
    (['C', 'gamma'], 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RandomizedSearchCV._parameter_constraints,
        **_CACHE_SIZE,
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        cache_size: float = 1000.0,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.cache_size = cache_size


@documented
class BagHalvingGridSearchCV(SharedSearch, HalvingGridSearchCV):
    """Search over a grid of parameters in rounds: ever fewer candidates on ever more bags.

    It is `sklearn.model_selection.HalvingGridSearchCV`, with the same parameters, attributes and
    rounds, and fits that share their work as those of `BagGridSearchCV` do. Rounds on few bags,
    whose folds have little in common, share inside of each fold.

    Parameters
    ----------
    |estimator: search|
    |param_grid, factor, resource, max_resources, min_resources, aggressive_elimination|
    |cv, scoring: one, refit: one, error_score, return_train_score, random_state: search|
    |n_jobs: search, verbose, cache_size: search|

    Attributes
    ----------
    |n_resources_, n_candidates_, n_remaining_candidates_, min_resources_, max_resources_|
    |n_iterations_, n_required_iterations_, n_possible_iterations_|
    |cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_|
    |n_splits_, refit_time_, multimetric_, n_features_in_: search, feature_names_in_|
    |classes_: search|

    See Also
    --------
    BagGridSearchCV : All candidates on all bags; says what is shared.
    BagHalvingRandomSearchCV : Candidates drawn at random.

    Notes
    -----
    scikit-learn calls searches by successive halving experimental: they may change.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.model_selection import BagHalvingGridSearchCV
    >>> from bagwise.svm import MIKernelSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(60)]
    >>> y = np.arange(60) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> grid = {"C": [0.01, 1.0, 100.0], "gamma": [0.01, 0.1, 1.0]}
    >>> search = BagHalvingGridSearchCV(MIKernelSVM(), grid, min_resources=20, random_state=0)
    >>> search.fit(bags, y).n_candidates_, search.n_resources_
    ([9, 3], [20, 60])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HalvingGridSearchCV._parameter_constraints,
        **_CACHE_SIZE,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        factor: float = 3,
        resource: str = "n_samples",
        max_resources: int | str = "auto",
        min_resources: int | str = "exhaust",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: Any = np.nan,
        return_train_score: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        cache_size: float = 1000.0,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            factor=factor,
            resource=resource,
            max_resources=max_resources,
            min_resources=min_resources,
            aggressive_elimination=aggressive_elimination,
            cv=cv,
            scoring=scoring,
            refit=refit,
            error_score=error_score,
            return_train_score=return_train_score,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.cache_size = cache_size


@documented
class BagHalvingRandomSearchCV(SharedSearch, HalvingRandomSearchCV):
    """Search over random candidates in rounds: ever fewer candidates on ever more bags.

    It is `sklearn.model_selection.HalvingRandomSearchCV`, with the same parameters, attributes and
    rounds, and fits that share their work as those of `BagGridSearchCV` do. Rounds on few bags,
    whose folds have little in common, share inside of each fold.

    Parameters
    ----------
    |estimator: search|
    |param_distributions|
    n_candidates : int or "exhaust"
        Number of candidates of the first round; ``"exhaust"``: so many that the last round has as
        much of the resource as possible.
    |factor, resource, max_resources, min_resources, aggressive_elimination|
    |cv, scoring: one, refit: one, error_score, return_train_score, random_state: search|
    |n_jobs: search, verbose, cache_size: search|

    Attributes
    ----------
    |n_resources_, n_candidates_, n_remaining_candidates_, min_resources_, max_resources_|
    |n_iterations_, n_required_iterations_, n_possible_iterations_|
    |cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_|
    |n_splits_, refit_time_, multimetric_, n_features_in_: search, feature_names_in_|
    |classes_: search|

    See Also
    --------
    BagRandomizedSearchCV : All candidates on all bags.
    BagHalvingGridSearchCV : The candidates of a grid.

    Notes
    -----
    scikit-learn calls searches by successive halving experimental: they may change.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from bagwise.model_selection import BagHalvingRandomSearchCV
    >>> from bagwise.svm import MIKernelSVM
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 2)) for _ in range(60)]
    >>> y = np.arange(60) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0
    >>> space = {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-3, 1.0)}
    >>> search = BagHalvingRandomSearchCV(MIKernelSVM(), space, random_state=0)
    >>> search.fit(bags, y).n_candidates_, search.n_resources_
    ([3, 1], [20, 60])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HalvingRandomSearchCV._parameter_constraints,
        **_CACHE_SIZE,
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_candidates: int | str = "exhaust",
        factor: float = 3,
        resource: str = "n_samples",
        max_resources: int | str = "auto",
        min_resources: int | str = "smallest",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: Any = np.nan,
        return_train_score: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        cache_size: float = 1000.0,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_candidates=n_candidates,
            factor=factor,
            resource=resource,
            max_resources=max_resources,
            min_resources=min_resources,
            aggressive_elimination=aggressive_elimination,
            cv=cv,
            scoring=scoring,
            refit=refit,
            error_score=error_score,
            return_train_score=return_train_score,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.cache_size = cache_size
