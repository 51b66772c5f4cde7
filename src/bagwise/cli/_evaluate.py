"""Cross-validation with a bar: how well a model does, and which parameters are best."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

from bagwise.cli._output import CommandError, Output

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bagwise.bags import Bags

Params = dict[str, Any]

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


class Trial:
    """Fits and scores a model on parts of the data, and counts the fits.

    Parameters
    ----------
    make : callable
        Takes parameters, returns an estimator that is not fitted.
    bags : Bags
        The bags.
    y : ndarray
        Their labels or label lists.
    grid : mapping
        Parameters to choose, with their values; may be empty.
    seed : int
        Seed of the folds.
    """

    def __init__(
        self,
        make: Callable[[Params], Any],
        bags: "Bags",
        y: "NDArray[Any]",
        grid: Mapping[str, Sequence[Any]],
        seed: int,
    ) -> None:
        from sklearn.model_selection import ParameterGrid

        self.make, self.bags, self.y, self.seed = make, bags, y, seed
        self.candidates: list[Params] = list(ParameterGrid(dict(grid)))
        self.is_multilabel = y.ndim == 2
        self.metric = "average precision" if self.is_multilabel else "accuracy"

    def choose(self, output: Output, folds: int) -> tuple[Params, Scores]:
        """Return the parameters with the best mean over the folds of all bags."""
        import numpy as np

        n_fits = len(self.candidates) * folds
        with output.counting("Choosing parameters", n_fits) as advance:
            best, values = self._best(np.arange(len(self.y)), folds, advance)
        return best, Scores(self.metric, values, self._protocol(folds, folds, nested=False))

    def validate(self, output: Output, folds: int) -> Scores:
        """Cross-validate; parameters of a grid are chosen anew inside each training part."""
        import numpy as np

        searching = len(self.candidates) > 1
        inner = min(folds, SEARCH_FOLDS)
        n_fits = folds * (1 + (len(self.candidates) * inner if searching else 0))
        values = []
        with output.counting("Cross-validating", n_fits) as advance:
            for train, test in self._folds(np.arange(len(self.y)), folds):
                params = self.candidates[0]
                if searching:
                    params, _ = self._best(train, inner, advance)
                values.append(self._fit_and_score(params, train, test))
                advance(1)
        protocol = self._protocol(folds, inner, nested=searching)
        return Scores(self.metric, tuple(values), protocol)

    def _best(
        self, rows: "NDArray[np.intp]", folds: int, advance: Callable[[int], None]
    ) -> tuple[Params, tuple[float, ...]]:
        splits = list(self._folds(rows, folds))
        table: list[tuple[float, ...]] = []
        for params in self.candidates:
            values = []
            for train, test in splits:
                values.append(self._fit_and_score(params, train, test))
                advance(1)
            table.append(tuple(values))
        best = max(range(len(table)), key=lambda i: sum(table[i]))  # the first of equals
        return self.candidates[best], table[best]

    def _folds(
        self, rows: "NDArray[np.intp]", folds: int
    ) -> "Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]":
        from sklearn.model_selection import KFold, StratifiedKFold

        self._check_folds(len(rows), folds)
        kind = KFold if self.is_multilabel else StratifiedKFold
        splitter = kind(folds, shuffle=True, random_state=self.seed % 2**32)
        for train, test in splitter.split(rows, self.y[rows]):
            yield rows[train], rows[test]

    def _check_folds(self, n_bags: int, folds: int) -> None:
        import numpy as np

        most = n_bags
        if not self.is_multilabel:
            most = int(np.unique(self.y, return_counts=True)[1].max())
        if folds > most:
            what = "bags" if self.is_multilabel else "bags with the same label"
            msg = f"{folds} folds need at least {folds} {what}. There are {most}: lower --cv."
            raise CommandError(msg, code="usage", where="--cv")

    def _fit_and_score(
        self, params: Params, train: "NDArray[np.intp]", test: "NDArray[np.intp]"
    ) -> float:
        from bagwise.metrics import average_precision

        model = self.make(params).fit(self.bags[train], self.y[train])
        if self.is_multilabel:
            return float(average_precision(self.y[test], model.decision_function(self.bags[test])))
        return float((model.predict(self.bags[test]) == self.y[test]).mean())

    def _protocol(self, folds: int, inner: int, *, nested: bool) -> str:
        how = "shuffled" if self.is_multilabel else "stratified, shuffled"
        text = f"{folds}-fold cross-validation, {how} with seed {self.seed}"
        if nested:
            text += (
                f"; parameters chosen anew inside each training part by {inner}-fold "
                "cross-validation"
            )
        return text
