"""Cross-validation with a bar: how well a model does, and which parameters are best."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, isnan, nan, prod, sqrt
from typing import TYPE_CHECKING, Any

from bagwise.cli._output import CommandError, Output, bad_input
from bagwise.cli._words import did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bagwise.bags import Bags
    from bagwise.model_selection import BagGridSearchCV

Grid = Mapping[str, Sequence[Any]]
Advance = Callable[[int], None]

#: Folds for choosing parameters where the user asked for no others.
SEARCH_FOLDS = 5
#: What is measured of labels, and what scikit-learn calls it; the last with two classes alone.
_USUAL = {"accuracy": "accuracy", "balanced accuracy": "balanced_accuracy", "AUC": "roc_auc"}
#: Of these, what is not defined on a fold that lacks a class.
_OF_ALL_CLASSES = ("balanced accuracy", "AUC")
#: For label lists.
_RANKING = "average precision"
_OF_ONE_LABEL = ("f1", "jaccard", "precision", "recall")  # scores with averages over all labels


@dataclass(frozen=True)
class Scores:
    """The values of a metric on the folds.

    Parameters
    ----------
    metric : str
        What is measured: accuracy, average precision (of label lists), or what the user named.
    values : tuple of float
        One for each fold; NaN where it is not defined.
    protocol : str
        How the folds were made, in words.
    others : tuple of Scores
        Other metrics on the same folds.
    """

    metric: str
    values: tuple[float, ...]
    protocol: str
    others: tuple["Scores", ...] = ()

    @property
    def known(self) -> tuple[float, ...]:
        """The values of the folds where there is one."""
        return tuple(value for value in self.values if not isnan(value))

    @property
    def mean(self) -> float:
        """Mean over the folds where there is a value; NaN if there is none."""
        return sum(self.known) / len(self.known) if self.known else nan

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, the folds taken as independent; NaN of fewer than two."""
        n = len(self.known)
        if n < 2:
            return nan
        variance = sum((value - self.mean) ** 2 for value in self.known) / (n - 1)
        return sqrt(variance / n)

    @property
    def mean_text(self) -> str:
        """The mean in words: shares in percent, everything else as it is."""
        return f"{self.mean:.1%}" if self._is_share else f"{self.mean:.3f}"

    @property
    def text(self) -> str:
        """The mean and its standard error in words, and of how many folds if not of all."""
        n, n_folds, error = len(self.known), len(self.values), self.standard_error
        if not n:
            return "not defined on any fold"
        text = self.mean_text
        if not isnan(error):
            text += f" ± {f'{100 * error:.1f}' if self._is_share else f'{error:.3f}'}"
        return text if n == n_folds else f"{text} ({n} of {n_folds} folds, others: not defined)"

    @property
    def _is_share(self) -> bool:
        return self.metric in ("accuracy", "balanced accuracy", _RANKING)


@dataclass(frozen=True)
class Evaluation:
    """Cross-validation of models on labelled bags.

    Parameters
    ----------
    output : Output
        Where the bar is shown.
    bags : Bags
        The bags.
    y : ndarray
        Their labels or label lists.
    seed : int
        Seed of the folds.
    scoring : str or None
        What to measure first and to choose by, as scikit-learn calls it. Default: the accuracy, or
        the average precision of label lists.
    groups : str or None
        Regular expression that finds the group of a bag in its name. Bags of a group stay in one
        fold.
    positive : label or None
        The label that the score is about, if it is about one of two. None: the positive one of
        the model.
    """

    output: Output
    bags: "Bags"
    y: "NDArray[Any]"
    seed: int
    scoring: str | None = None
    groups: str | None = None
    positive: Any = None

    def choose(self, estimator: Any, grid: Grid, folds: int) -> tuple[dict[str, Any], Scores]:
        """Return the parameters of the grid with the best mean over the folds, and their scores."""
        self._check_folds(folds)
        metric = next(iter(self._metrics))
        with self.output.counting("Choosing parameters", grid_size(grid) * folds) as advance:
            search = self._search(estimator, grid, folds, advance, refit=False)
            search.fit(self.bags, self.y)
        places, best = range(folds), search.best_index_
        values = tuple(float(search.cv_results_[f"split{i}_test_score"][best]) for i in places)
        return search.best_params_, Scores(metric, values, self._protocol(folds))

    def validate(self, estimator: Any, grid: Grid, folds: int) -> Scores:
        """Score on the folds; parameters of a grid are chosen anew inside each training part."""
        from sklearn.base import clone
        from sklearn.model_selection import ParameterGrid, cross_validate

        self._check_folds(folds)
        n_settings, inner = grid_size(grid), min(folds, SEARCH_FOLDS)
        is_nested = n_settings > 1
        if is_nested:
            self._check_folds(inner, inside=folds)
        n_fits = folds * (1 + is_nested * n_settings * inner)
        with self.output.counting("Cross-validating", n_fits) as advance:
            if is_nested:
                model = self._search(estimator, grid, inner, advance)
            else:
                model = clone(estimator).set_params(**ParameterGrid(dict(grid))[0])
            found = cross_validate(
                model,
                self.bags,
                self.y,
                scoring=self._scorer(advance),
                cv=self._splitter(folds),
                error_score="raise",
            )
        protocol = self._protocol(folds, inner if is_nested else None)
        first, *others = (
            Scores(metric, tuple(found[f"test_{metric}"].tolist()), protocol)
            for metric in self._metrics
        )
        return replace(first, others=tuple(others))

    def _search(
        self, estimator: Any, grid: Grid, folds: int, advance: Advance, *, refit: bool = True
    ) -> "BagGridSearchCV":
        from bagwise.model_selection import BagGridSearchCV

        return BagGridSearchCV(
            estimator,
            dict(grid),
            scoring=self._first_scorer(advance),
            refit=refit,
            cv=self._splitter(folds),
            error_score="raise",
        )

    def _scorer(self, advance: Advance) -> Callable[..., dict[str, float]]:
        """Return the scorer of all metrics; every fit is scored once, which moves the bar."""
        import numpy as np

        metrics, n_classes = self._metrics, self._n_labels

        def score(model: Any, bags: "Bags", y: "NDArray[Any]") -> dict[str, float]:
            lacks_some = len(np.unique(y)) < n_classes
            values = {
                name: nan
                if lacks_some and name in _OF_ALL_CLASSES
                else float(scorer(model, bags, y))
                for name, scorer in metrics.items()
            }
            advance(1)
            return values

        return score

    def _first_scorer(self, advance: Advance) -> Callable[..., float]:
        """Return the scorer of the first metric alone, by which to choose."""
        name, scorer = next(iter(self._metrics.items()))

        def score(model: Any, bags: "Bags", y: "NDArray[Any]") -> float:
            value = float(scorer(model, bags, y))
            if isnan(value):
                msg = (
                    f"parameters cannot be chosen by {name}, which is not defined on every fold: "
                    "lower --cv, or choose by another --scoring."
                )
                raise CommandError(msg, code="usage", where="--scoring")
            advance(1)
            return value

        return score

    @cached_property
    def _metrics(self) -> dict[str, Callable[..., float]]:
        """The scorers by name; the first is the one that counts."""
        from bagwise.metrics import average_precision_scorer

        if self._is_multilabel:
            first = {} if self.scoring is None else {self.scoring: self._named(self.scoring)}
            return first | {_RANKING: average_precision_scorer}
        usual = dict(_USUAL)
        if self._n_labels > 2:
            del usual["AUC"]
        known = {name: ours for ours, name in usual.items()}
        wanted = self.scoring or "accuracy"
        names = {known.get(wanted, wanted): wanted} | usual
        return {name: self._named(scoring) for name, scoring in names.items()}

    def _named(self, scoring: str) -> Callable[..., float]:
        """Return the scorer that scikit-learn has by a name, about the positive label."""
        from sklearn.metrics import get_scorer

        from bagwise.metrics import OF_POSITIVE_CLASS, make_positive_scorer

        if scoring in OF_POSITIVE_CLASS and not self._is_multilabel and self._n_labels == 2:
            return make_positive_scorer(scoring, pos_label=self.positive)
        if scoring in _OF_ONE_LABEL:
            there = "lists of labels" if self._is_multilabel else f"{self._n_labels} labels"
            msg = (
                f"{scoring} is about one of two labels, and there are {there}: choose "
                f"{scoring}_macro or {scoring}_weighted."
            )
            raise CommandError(msg, code="usage", where="--scoring")
        scorer: Callable[..., float] = get_scorer(scoring)
        return scorer

    def _splitter(self, folds: int) -> Any:
        from sklearn.model_selection import KFold, StratifiedKFold

        from bagwise.model_selection import StratifiedBagKFold

        seed = self.seed % 2**32
        if self.groups is not None:
            splitter = StratifiedBagKFold(folds, shuffle=True, random_state=seed)
            return _NamedGroups(splitter, self.groups)
        kind = KFold if self._is_multilabel else StratifiedKFold
        return kind(folds, shuffle=True, random_state=seed)

    def _check_folds(self, folds: int, *, inside: int | None = None) -> None:
        """Refuse more folds than there are bags, of all or of the training part of so many."""
        import numpy as np

        what, most = "bags", len(self.y)
        if not self._is_multilabel:
            what = "bags with the same label"
            most = int(np.unique(self.y, return_counts=True)[1].max())
        if inside is not None:
            what, most = f"{what} in each training part", most - ceil(most / inside)
        if folds > most:
            msg = f"{folds} folds need at least {folds} {what}. There are {most}: lower --cv."
            raise CommandError(msg, code="usage", where="--cv")

    @property
    def _is_multilabel(self) -> bool:
        return self.y.ndim == 2

    @cached_property
    def _n_labels(self) -> int:
        import numpy as np

        return len(np.unique(self.y))

    def _protocol(self, folds: int, inner: int | None = None) -> str:
        how = "shuffled" if self._is_multilabel else "stratified, shuffled"
        if self.groups is not None:
            how = "groups of bags together, stratified, shuffled"
        text = f"{folds}-fold cross-validation, {how} with seed {self.seed}"
        if inner is not None:
            text += (
                f"; parameters chosen anew inside each training part by {inner}-fold "
                "cross-validation"
            )
        return text


@dataclass(frozen=True)
class _NamedGroups:
    """A splitter that keeps groups of bags together, which it finds in their names.

    Parameters
    ----------
    splitter : object
        Takes groups.
    pattern : str
        Regular expression; see `bagwise.model_selection.groups_from_names`.
    """

    splitter: Any
    pattern: str

    def split(self, X: "Bags", y: Any, groups: Any = None) -> Iterator[Any]:
        """Yield the training and the test bags of each fold."""
        from bagwise.model_selection import groups_from_names

        found: Iterator[Any] = self.splitter.split(X, y, groups_from_names(X, self.pattern))
        return found

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return int(self.splitter.get_n_splits())


def check_scoring(name: str) -> None:
    """Refuse what scikit-learn does not know as a score."""
    from sklearn.metrics import get_scorer_names

    known = get_scorer_names()
    if name not in known:
        msg = f"scikit-learn has no score {name!r}. {did_you_mean(name, known)}"
        raise CommandError(msg, code="usage", where="--scoring")


def check_measurable(name: str, model: Any) -> None:
    """Refuse a score that asks a model for what it does not have."""
    from bagwise.metrics import check_scored

    with bad_input(code="usage", where="--scoring"):
        check_scored(name, model)


def check_pattern(pattern: str) -> None:
    """Refuse what is no regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        msg = f"--groups needs a regular expression for names of bags: {error}."
        raise CommandError(msg, code="usage", where="--groups") from error


def grid_size(grid: Grid) -> int:
    """Return how many settings a grid holds: one if it is empty."""
    return prod(map(len, grid.values()))
