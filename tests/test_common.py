"""Both batteries on every estimator: scikit-learn's own checks, and the checks of bags."""

from contextlib import nullcontext

import pytest
from sklearn.base import is_classifier, is_clusterer
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from bagwise import all_estimators
from bagwise.testing import make_toy_bags, parametrize_with_bag_checks, yield_bag_checks
from bagwise.testing._compare import assert_same_state, snapshot
from bagwise.testing._expect import remarks_are_no_matter
from bagwise.testing._models import fitted, fresh
from instances import (
    DEFAULTS,
    EXPECTED_BAG_FAILURES,
    EXPECTED_SKLEARN_FAILURES,
    LIGHT_DEFAULTS,
    VARIANTS,
    expected_bag_failures,
    expected_sklearn_failures,
)


# They have labels such as 1 and 2, which do not say which class is positive, and noise to learn.
@pytest.mark.filterwarnings("ignore::bagwise.exceptions.PositiveClassWarning")
@pytest.mark.filterwarnings("ignore::bagwise.exceptions.ConstantModelWarning")
@parametrize_with_checks(LIGHT_DEFAULTS, expected_failed_checks=expected_sklearn_failures)
def test_sklearn_checks(estimator, check):
    # The data are noise, in which a cluster may stay empty, or have no scale or position.
    with remarks_are_no_matter() if is_clusterer(estimator) else nullcontext():
        check(estimator)


@parametrize_with_bag_checks(
    LIGHT_DEFAULTS, variants=VARIANTS, expected_failures=expected_bag_failures
)
def test_bag_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_fit_after_one_with_other_parameters_is_a_fresh_one(variant):
    bags, y = make_toy_bags()
    default = next(model for model in DEFAULTS if type(model) is type(variant))
    expected = snapshot(fitted(default, bags, y))
    model = fitted(variant, bags, y)
    model.set_params(**fresh(default).get_params(deep=False)).fit(bags, y)
    assert_same_state(model, expected, "a fit with other parameters")


def name_of(estimator):
    return type(estimator).__name__


# scikit-learn runs 1 check, and stays green, on an estimator whose tags it does not like.
@pytest.mark.parametrize("estimator", DEFAULTS, ids=name_of)
def test_number_of_sklearn_checks(estimator):
    checks = list(estimator_checks_generator(estimator, legacy=True))
    assert len(checks) >= (50 if is_classifier(estimator) else 40)
    if is_clusterer(estimator):
        names = {check.func.__name__ for _, check in checks}
        assert len(checks) >= 50
        assert names >= {"check_clustering", "check_transformer_general"}


@pytest.mark.parametrize("estimator", DEFAULTS, ids=name_of)
def test_number_of_bag_checks(estimator):
    names = [name for name, _ in yield_bag_checks(estimator)]
    assert len(names) == len(set(names))
    learns = is_classifier(estimator) or is_clusterer(estimator)
    assert len(names) >= (60 if learns else 40)
    known = {
        "SIL": 87,
        "MIKernelSVM": 83,
        "InstanceTransformer": 45,
        "M3IC": 72,
        "CPM3C": 70,
        "BAMIC": 67,
        "BagKMeans": 70,
    }
    assert len(names) == known.get(name_of(estimator), len(names))


@pytest.mark.parametrize("estimator", VARIANTS, ids=name_of)
def test_number_of_checks_of_a_variant(estimator):
    names = dict(yield_bag_checks(estimator, of_the_class=False))
    assert len(names) >= (33 if is_classifier(estimator) or is_clusterer(estimator) else 20)
    assert name_of(estimator) in {name_of(default) for default in DEFAULTS}


def test_every_estimator_is_tested():
    tested = {name_of(estimator) for estimator in DEFAULTS}
    assert tested == {name for name, _ in all_estimators()} | {"InstanceTransformer"}


@pytest.mark.parametrize("table", [EXPECTED_SKLEARN_FAILURES, EXPECTED_BAG_FAILURES])
def test_expected_failures_have_estimator_and_reason(table):
    assert table.keys() <= {name_of(estimator) for estimator in DEFAULTS + VARIANTS}
    assert all(len(reason) > 20 for checks in table.values() for reason in checks.values())
    assert sum(map(len, table.values())) <= 5
