"""Warnings point at the line of the user, whatever lies between."""

import warnings
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise
from bagwise import Bags
from bagwise._warnings import warn
from bagwise.cluster import BagKMeans
from bagwise.model_selection import BagGridSearchCV, StratifiedBagKFold
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL
from bagwise.testing import make_toy_bags

LISTS, Y = make_toy_bags(24, kind="close", random_state=3)
BAGS = Bags.from_list(LISTS)
SLOW = SIL(max_iter=1)


def _scaled(estimator):
    return make_pipeline(InstanceTransformer(StandardScaler()), estimator)


def _search(cls):
    return cls(SLOW, {"C": [1.0, 10.0]}, cv=2)


@pytest.mark.parametrize(
    "estimator",
    [
        SLOW,
        BagKMeans(max_iter=1),
        _scaled(SLOW),
        _search(GridSearchCV),
        _search(BagGridSearchCV),
        _scaled(_search(GridSearchCV)),
    ],
    ids=["classifier", "clusterer", "pipeline", "search", "bag_search", "nested"],
)
def test_warnings_of_fit_point_here(estimator):
    with pytest.warns(ConvergenceWarning) as caught:
        estimator.fit(BAGS, Y)
    assert {warning.filename for warning in caught} == {__file__}


def test_warnings_of_splitters_point_here():
    with pytest.warns(UserWarning, match="rarest class") as caught:
        list(StratifiedBagKFold(3).split(BAGS, [0] * 22 + [1] * 2))
    assert caught[0].filename == __file__


def _line(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return caught[0].filename, caught[0].lineno


def test_the_line_is_that_of_the_caller():
    here = test_the_line_is_that_of_the_caller.__code__.co_firstlineno
    assert _line(lambda: warn("now")) == (__file__, here + 2)


@pytest.mark.parametrize("package", ["bagwise.svm", "sklearn.pipeline", "joblib", "bagwise"])
def test_packages_that_are_passed_over(package):
    module = {"__name__": package, "warn": warn}
    exec(compile("def call():\n    warn('now')", "elsewhere.py", "exec"), module)
    assert _line(lambda: module["call"]())[0] == __file__


def test_others_are_not():
    for package in ("sklearn_extra", "bagwisely", "mine"):
        module = {"__name__": package, "warn": warn}
        exec(compile("def call():\n    warn('now')", "elsewhere.py", "exec"), module)
        assert _line(module["call"]) == ("elsewhere.py", 2)


def test_nothing_else_counts_frames():
    for path in Path(bagwise.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert path.name == "_warnings.py" or not ("stacklevel" in text or "_getframe" in text), (
            path
        )
