"""Cross-validation with a bar: how well a model does, and which parameters are best."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import TYPE_CHECKING, Any

from bagwise.cli._output import CommandError, Output

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bagwise.bags import Bags
    from bagwise.model_selection import BagGridSearchCV

Grid = Mapping[str, Sequence[Any]]
Advance = Callable[[int], None]

#: Folds for choosing parameters where the user asked for no others.
SEARCH_FOLDS = 5


@dataclass(frozen=True)
class Scores:
    """The values of a metric on the folds.

    Parameters
    ----------
    metric : {"accuracy", "average precision"}
        What is measured; the second with label lists.
    values : tuple of float
        One for each fold.
    protocol : str
        How the folds were made, in words.
    """

    metric: str
    values: tuple[float, ...]
    protocol: str

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return sum(self.values) / len(self.values)

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, the folds taken as independent."""
        n = len(self.values)
        variance = sum((value - self.mean) ** 2 for value in self.values) / (n - 1)
        return sqrt(variance / n)


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
    """

    output: Output
    bags: "Bags"
    y: "NDArray[Any]"
    seed: int

    def choose(self, estimator: Any, grid: Grid, folds: int) -> tuple[dict[str, Any], Scores]:
        """Return the parameters of the grid with the best mean over the folds, and their scores."""
        self._check_folds(len(self.y), folds)
        with self.output.counting("Choosing parameters", grid_size(grid) * folds) as advance:
            search = self._search(estimator, grid, folds, advance, refit=False)
            search.fit(self.bags, self.y)
        places, best = range(folds), search.best_index_
        values = tuple(float(search.cv_results_[f"split{i}_test_score"][best]) for i in places)
        return search.best_params_, Scores(self._metric, values, self._protocol(folds))

    def validate(self, estimator: Any, grid: Grid, folds: int) -> Scores:
        """Score on the folds; parameters of a grid are chosen anew inside each training part."""
        from sklearn.base import clone
        from sklearn.model_selection import ParameterGrid, cross_val_score

        self._check_folds(len(self.y), folds)
        n_settings, inner = grid_size(grid), min(folds, SEARCH_FOLDS)
        is_nested = n_settings > 1
        if is_nested:
            self._check_folds(len(self.y) - ceil(len(self.y) / folds), inner)
        n_fits = folds * (1 + is_nested * n_settings * inner)
        with self.output.counting("Cross-validating", n_fits) as advance:
            if is_nested:
                model = self._search(estimator, grid, inner, advance)
            else:
                model = clone(estimator).set_params(**ParameterGrid(dict(grid))[0])
            values = cross_val_score(
                model,
                self.bags,
                self.y,
                scoring=self._scorer(advance),
                cv=self._splitter(folds),
                error_score="raise",
            )
        protocol = self._protocol(folds, inner if is_nested else None)
        return Scores(self._metric, tuple(values.tolist()), protocol)

    def _search(
        self, estimator: Any, grid: Grid, folds: int, advance: Advance, *, refit: bool = True
    ) -> "BagGridSearchCV":
        from bagwise.model_selection import BagGridSearchCV

        return BagGridSearchCV(
            estimator,
            dict(grid),
            scoring=self._scorer(advance),
            refit=refit,
            cv=self._splitter(folds),
            error_score="raise",
        )

    def _scorer(self, advance: Advance) -> Callable[..., float]:
        """Return the scorer of the metric; every fit is scored once, which moves the bar."""
        from sklearn.metrics import get_scorer

        from bagwise.metrics import average_precision_scorer

        scorer = average_precision_scorer if self._is_multilabel else get_scorer("accuracy")

        def score(model: Any, bags: "Bags", y: "NDArray[Any]") -> float:
            value = float(scorer(model, bags, y))
            advance(1)
            return value

        return score

    def _splitter(self, folds: int) -> Any:
        from sklearn.model_selection import KFold, StratifiedKFold

        kind = KFold if self._is_multilabel else StratifiedKFold
        return kind(folds, shuffle=True, random_state=self.seed % 2**32)

    def _check_folds(self, n_bags: int, folds: int) -> None:
        import numpy as np

        what, most = "bags", n_bags
        if not self._is_multilabel:
            what = "bags with the same label"
            most = int(np.unique(self.y, return_counts=True)[1].max())
        if folds > most:
            msg = f"{folds} folds need at least {folds} {what}. There are {most}: lower --cv."
            raise CommandError(msg, code="usage", where="--cv")

    @property
    def _is_multilabel(self) -> bool:
        return self.y.ndim == 2

    @property
    def _metric(self) -> str:
        return "average precision" if self._is_multilabel else "accuracy"

    def _protocol(self, folds: int, inner: int | None = None) -> str:
        how = "shuffled" if self._is_multilabel else "stratified, shuffled"
        text = f"{folds}-fold cross-validation, {how} with seed {self.seed}"
        if inner is not None:
            text += (
                f"; parameters chosen anew inside each training part by {inner}-fold "
                "cross-validation"
            )
        return text


def grid_size(grid: Grid) -> int:
    """Return how many settings a grid holds: one if it is empty."""
    return prod(map(len, grid.values()))
