"""Searches answer for instances as their best estimator does, through pipelines too."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bagwise.model_selection import BagGridSearchCV, BagHalvingGridSearchCV, BagRandomizedSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL, MinimaxKernelSVM
from bagwise.testing import make_toy_bags

BAGS, Y = make_toy_bags(24)
METHODS = ("instance_decision_function", "instance_predict", "key_instances")
GRID = {"C": [0.1, 1.0]}


@pytest.mark.parametrize(
    "search",
    [
        BagGridSearchCV(SIL(), GRID, cv=2),
        BagRandomizedSearchCV(SIL(), GRID, n_iter=2, cv=2, random_state=0),
        BagHalvingGridSearchCV(SIL(), GRID, cv=2, random_state=0),
    ],
    ids=lambda search: type(search).__name__,
)
@pytest.mark.parametrize("method", METHODS)
def test_answers_are_those_of_the_best_estimator(search, method):
    search.fit(BAGS, Y)
    expected = getattr(search.best_estimator_, method)(BAGS)
    np.testing.assert_array_equal(getattr(search, method)(BAGS), expected)


@pytest.mark.parametrize("method", METHODS)
def test_instances_go_through_the_steps_before(method):
    pipeline = make_pipeline(InstanceTransformer(StandardScaler()), SIL())
    search = BagGridSearchCV(pipeline, {"sil__C": [0.1, 1.0]}, cv=2).fit(BAGS, Y)
    scaler = InstanceTransformer(StandardScaler()).fit(BAGS)
    model = SIL(C=search.best_params_["sil__C"]).fit(scaler.transform(BAGS), Y)
    expected = getattr(model, method)(scaler.transform(BAGS))
    np.testing.assert_allclose(getattr(search, method)(BAGS), expected)


@pytest.mark.parametrize("method", METHODS)
def test_only_where_there_are_such_answers(method):
    assert hasattr(BagGridSearchCV(SIL(), GRID), method)
    assert hasattr(BagGridSearchCV(make_pipeline(SIL()), {}), method)
    for bags_only in (MinimaxKernelSVM(), SVC(), make_pipeline(SVC())):
        assert not hasattr(BagGridSearchCV(bags_only, {}), method)
    with pytest.raises(NotFittedError):
        getattr(BagGridSearchCV(SIL(), GRID), method)(BAGS)
