"""Choosing the parameters of a clusterer without labels."""

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClusterMixin, MetaEstimatorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._compat import HasMethods, Interval, StrOptions
from bagwise.base import all_or_nothing, as_bags, forget_fit, holds_bags
from bagwise.model_selection._agreement import agreement
from bagwise.model_selection._cluster_runs import Chains, Run, last_step, prefix_of
from bagwise.model_selection._shared_search import takes_nan

#: Digits of a mean agreement. With others, labellings that are the same but for the numbers of the
#: clusters would differ by rounding, and it would be rounding that chooses.
_DIGITS = 12

_RULES = {"stability": "stability", "objective_spread": "spread", "consensus": "consensus"}


def _has(name: str) -> Callable[["ClusterSearch"], bool]:
    """Return whether the estimator, fitted or not, has a method."""

    def check(search: "ClusterSearch") -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


class ClusterSearch(MetaEstimatorMixin, ClusterMixin, BaseEstimator):
    r"""Search over a grid of parameters of a clusterer, without labels.

    Every candidate is fitted from several random starts, the same ones for all candidates. A rule
    takes one of the candidates, and one of its starts:

    * ``"consensus"``: the one of all labellings, of all candidates and starts, that agrees best
      with all others, by the mean of the normalized mutual information with them;
    * ``"stability"``: the candidate whose starts agree best with one another, likewise;
    * ``"objective_spread"``: the candidate whose starts come to the most similar objectives, by
      their standard deviation over their mean.

    The last two take the start with the smallest objective, among those that leave no cluster empty
    if there are any. A candidate whose start has an empty cluster, or one that is tiny, is passed
    over unless all are such: to tell next to nothing apart is what starts agree upon most easily.
    Of candidates with the same score the first is taken.

    Parameters
    ----------
    estimator : estimator
        One of `bagwise.cluster`, such as ``M3IC(n_clusters=3)``, another with their ``labels_``,
        ``result_``, ``n_clusters`` and ``random_state``, or a `Pipeline` that ends with one. Its
        ``n_init`` and ``random_state`` are replaced.
    param_grid : dict or list of dict
        Values to try for each parameter.
    select_by : {"consensus", "stability", "objective_spread"} or callable
        The rule; a function takes ``results_`` and returns the index of a candidate, of which the
        start with the smallest objective is taken.
    n_runs : int
        Number of starts.
    warm_start : bool
        Whether fits that differ in ``C`` alone follow one another, from small to large values, each
        beginning with the weights that the one before it has found (if these leave no cluster
        empty). It takes less time and ends in lower objectives. Only for `M3IC` with the linear
        kernel and `CPM3C`, which take first weights; the others always begin anew.
    min_size : float
        The smallest cluster must have this share of the bags that clusters have on average.
    random_state : int, RandomState or None
        Where the starts come from.
    n_jobs : int or None
        Fits at the same time, in threads; None means one. Their number does not change the result.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen candidate with its best start: ``n_init`` is 1, ``random_state`` a number, and
        ``init`` the weights it began with, as lists, if they came from another candidate.
    best_params_ : dict
        Its parameters of the grid.
    best_index_ : int
        Its place among the candidates.
    labels_ : ndarray of int of shape (n_bags,)
        Its clusters of the training bags.
    results_ : dict
        Arrays with one entry for each candidate: ``params`` and ``param_NAME``; the ``objective``
        of the start that would be taken, and those of all starts as ``run0_objective`` and so on;
        ``n_empty``, the number of empty clusters, and ``smallest_cluster``, in units of the average
        one, of that start; ``consensus`` (the highest of its starts), ``stability`` and ``spread``;
        the ``score`` and ``rank`` by the rule, unless that is a function; ``fit_time``, the seconds
        of all starts.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, if the data had any.

    See Also
    --------
    BagGridSearchCV : Search by cross-validation, where there are labels.

    Notes
    -----
    No rule is a proof of quality. What each of them costs against a choice by the true labels,
    measured on eleven data sets, is in the user guide.

    Objectives for different parameters cannot be compared, which is why none of the rules does.
    Labellings with different numbers of clusters can, but agree the better by chance, the more
    clusters they have.

    Examples
    --------
    >>> from bagwise.cluster import M3IC
    >>> from bagwise.model_selection import ClusterSearch
    >>> bags = [[[0, 5], [1, 1]], [[5, 0], [1, 1], [1, 2]], [[1, 1], [0, 4]], [[4, 0]]]
    >>> grid = {"C": [0.1, 1.0, 10.0], "balance": [0.1, 1.0]}
    >>> search = ClusterSearch(M3IC(n_clusters=2), grid, random_state=0).fit(bags)
    >>> search.labels_[0] == search.labels_[2], search.labels_[1] == search.labels_[3]
    (np.True_, np.True_)
    >>> len(search.results_["stability"])
    6
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"])],
        "param_grid": [dict, list],
        "select_by": [StrOptions({*_RULES}), callable],
        "n_runs": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "min_size": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        select_by: Any = "consensus",
        n_runs: int = 5,
        warm_start: bool = True,
        min_size: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.select_by = select_by
        self.n_runs = n_runs
        self.warm_start = warm_start
        self.min_size = min_size
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit all candidates from all starts, and choose one of them.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : ClusterSearch
            The fitted search.
        """
        with all_or_nothing(self):
            self._validate_params()
            forget_fit(self)
            candidates = self._candidates()
            bags = as_bags(X, allow_nan=takes_nan(self.estimator)) if holds_bags(X) else X
            seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_runs)
            chains = Chains(self.estimator, candidates, seeds, warm_start=self.warm_start)
            with warnings.catch_warnings():  # of one fit among hundreds they say nothing
                warnings.simplefilter("ignore", ConvergenceWarning)
                runs = chains.run(bags, n_threads=self._n_threads())
                self.results_, starts = self._compare(candidates, runs)
                index = self._choose(self.results_)
                best = chains.estimator_of(index, seeds[starts[index]], bags)
            # Fitted once more: to keep all of them would take memory, and this one may warn.
            self.best_estimator_ = best.fit(bags)
            self.best_index_, self.best_params_ = index, candidates[index]
            self.labels_ = last_step(best).labels_
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self.best_estimator_, name):
                    setattr(self, name, getattr(self.best_estimator_, name))
        return self

    # -------------------------------------------------------------------------- the candidates

    def _candidates(self) -> list[dict[str, Any]]:
        prefix = prefix_of(self.estimator)
        if prefix + "random_state" not in self.estimator.get_params():
            msg = (
                "estimator of ClusterSearch must have a random_state. Got "
                f"{type(last_step(self.estimator)).__name__}."
            )
            raise TypeError(msg)
        candidates = list(ParameterGrid(self.param_grid))
        if not any(candidates):
            msg = "param_grid of ClusterSearch must have at least one parameter. Got none."
            raise ValueError(msg)
        for name in ("n_init", "random_state"):
            if any(prefix + name in candidate for candidate in candidates):
                msg = f"param_grid of ClusterSearch cannot have {name}: the search itself sets it."
                raise ValueError(msg)
        if self.n_runs == 1 and self.select_by in ("stability", "objective_spread"):
            msg = f"n_runs of ClusterSearch must be at least 2 for {self.select_by!r}. Got 1."
            raise ValueError(msg)
        return candidates

    def _n_threads(self) -> int:
        return 1 if self.n_jobs is None else effective_n_jobs(self.n_jobs)

    # -------------------------------------------------------------------------------- the choice

    def _compare(
        self, candidates: list[dict[str, Any]], runs: list[list[Run]]
    ) -> tuple[dict[str, Any], NDArray[np.intp]]:
        """Return the results, and which start of each candidate would be taken."""
        objectives = np.array([[run.objective for run in of_one] for of_one in runs])
        n_empty = np.array([[run.n_empty for run in of_one] for of_one in runs])
        smallest = np.array([[run.smallest for run in of_one] for of_one in runs])
        is_fit = (n_empty == 0) & (smallest >= self.min_size)
        medoidness = _mean_with_others(runs)
        if self.select_by == "consensus":
            starts = _first_among(medoidness, is_fit)
        else:
            starts = _first_among(-objectives, n_empty == 0)
        taken = np.arange(len(runs)), starts
        results: dict[str, Any] = {
            "params": candidates,
            **_columns(candidates),
            "objective": objectives[taken],
            **{f"run{i}_objective": column for i, column in enumerate(objectives.T)},
            "n_empty": n_empty[taken],
            "smallest_cluster": smallest[taken],
            "consensus": medoidness[np.arange(len(runs)), _first_among(medoidness, is_fit)],
            "stability": np.array([_mean_of_pairs(of_one) for of_one in runs]),
            "spread": _spread(objectives),
            "fit_time": np.array([sum(run.seconds for run in of_one) for of_one in runs]),
        }
        if not callable(self.select_by):
            value = results[_RULES[self.select_by]]
            score = -value if self.select_by == "objective_spread" else value
            may_be_taken = is_fit[taken] if is_fit[taken].any() else np.ones(len(runs), bool)
            results["score"] = np.where(may_be_taken, score, -np.inf)
            results["rank"] = rankdata(-results["score"], method="min").astype(np.int64)
        return results, starts

    def _choose(self, results: dict[str, Any]) -> int:
        if not callable(self.select_by):
            return int(np.argmax(results["score"]))
        index, n = self.select_by(results), len(results["params"])
        if not isinstance(index, int | np.integer) or not 0 <= index < n:
            msg = (
                "select_by of ClusterSearch must return the index of one of the "
                f"{n} candidates. Got {index!r}."
            )
            raise ValueError(msg)
        return int(index)

    # ------------------------------------------------------------------------------ delegation

    def fit_predict(self, X: Any, y: Any = None) -> Integers:
        """Fit, and return the clusters of the training bags.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : ignored
            There for pipelines.

        Returns
        -------
        labels : ndarray of int of shape (n_bags,)
            Clusters, counted from 0.
        """
        return self.fit(X).labels_

    @available_if(_has("predict"))
    def predict(self, X: Any) -> Integers:
        """Return the cluster of each bag, by the chosen candidate.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        labels : ndarray of int of shape (n_bags,)
            Clusters, counted from 0.
        """
        return self._best("predict", X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """Return the scores of bags for the clusters, by the chosen candidate.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_clusters)
            One column for each cluster.
        """
        return self._best("decision_function", X)

    @available_if(_has("transform"))
    def transform(self, X: Any) -> Floats:
        """Return what the chosen candidate measures between bags and clusters.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_clusters)
            One column for each cluster.
        """
        return self._best("transform", X)

    @available_if(_has("key_instances"))
    def key_instances(self, X: Any) -> Integers:
        """Return which instance of each bag speaks most for its cluster.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        places : ndarray of int of shape (n_bags,)
            Place inside the bag, counted from 0.
        """
        return self._best("key_instances", X)

    def _best(self, method: str, X: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        return getattr(self.best_estimator_, method)(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.three_d_array = inner.three_d_array
        tags.input_tags.pairwise = inner.pairwise
        return tags


def _first_among(scores: Floats, is_fit: Booleans) -> NDArray[np.intp]:
    """Return where each row is highest, among the entries that are fit if there are any."""
    nobody = ~is_fit.any(axis=1, keepdims=True)
    best: NDArray[np.intp] = np.where(is_fit | nobody, scores, -np.inf).argmax(axis=1)
    return best


def _columns(candidates: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a column for each parameter, masked where a candidate does not have it."""
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for candidate in candidates for name in candidate):
        column = np.ma.masked_all(len(candidates), dtype=object)
        for i, candidate in enumerate(candidates):
            if name in candidate:
                column[i] = candidate[name]
        columns[f"param_{name}"] = column
    return columns


def _spread(objectives: Floats) -> Floats:
    """Return the standard deviation of each row in units of its mean; NaN for one number."""
    if objectives.shape[1] == 1:
        return np.full(len(objectives), np.nan)
    deviation, mean = objectives.std(axis=1, ddof=1), np.abs(objectives.mean(axis=1))
    return np.divide(deviation, mean, out=np.zeros_like(mean), where=deviation > 0)


def _mean_of_pairs(runs: Sequence[Run]) -> float:
    """Return how well the labellings of runs agree on average; NaN for one."""
    if len(runs) == 1:
        return np.nan
    labellings = [run.labels for run in runs]
    mean = agreement(labellings)[np.triu_indices(len(labellings), 1)].mean()
    return round(float(mean), _DIGITS)


def _mean_with_others(runs: Sequence[Sequence[Run]]) -> Floats:
    """Return how well each labelling agrees on average with all others; 1 if there are none."""
    labellings = [run.labels for of_candidate in runs for run in of_candidate]
    if len(labellings) == 1:
        return np.ones((1, 1))
    pairs = agreement(labellings)
    np.fill_diagonal(pairs, 0.0)
    mean = pairs.sum(axis=1) / (len(labellings) - 1)
    return mean.round(_DIGITS).reshape(len(runs), -1)
