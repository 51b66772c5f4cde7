"""The checks pass on an estimator that keeps the contract and see each way of breaking it."""

import inspect
import subprocess
import sys
import warnings
from unittest import SkipTest

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import bagwise.testing
from bagwise.base import BagTags
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL
from bagwise.testing import (
    _battery,
    check_bag_estimator,
    parametrize_with_bag_checks,
    yield_bag_checks,
)
from testing import broken, broken_clusterers, broken_positive
from testing.sound import BagClustersOnly, BagsOnly, MeanClusters, NearestMean, UnitFree

EVERY_CHECK = {check.__name__: check for _, checks in _battery._BATTERY for check in checks}
TABLES = [broken.BROKEN, broken_clusterers.BROKEN, broken_positive.BROKEN]
BROKEN = {
    name: [entry for table in TABLES for entry in table.get(name, ())]
    for name in dict.fromkeys(name for table in TABLES for name in table)
}
SOUND = [
    NearestMean(),
    NearestMean("max"),
    UnitFree(),
    BagsOnly(),
    MeanClusters(),
    BagClustersOnly(),
]


@parametrize_with_bag_checks(SOUND)
def test_sound_estimator_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("name", "cls", "params", "error"),
    [
        pytest.param(name, cls, params, error, id=f"{name}-{cls.__name__}")
        for name, entries in BROKEN.items()
        for cls, params, error in entries
    ],
)
def test_broken_estimator_is_caught(name, cls, params, error):
    estimator = cls(**params)
    with warnings.catch_warnings():
        if cls in (broken.NeverConverges, broken_clusterers.NeverSettles):
            warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises(error) as caught:
            EVERY_CHECK[name](estimator)
    assert str(caught.value)


class Drifts(NearestMean):
    """Finds an optimum that depends on the order, and says by how much the objective varies."""

    def _means(self, bags, sign, weight):
        coef, intercept = super()._means(bags, sign, weight)
        return coef, intercept + 0.01 * bags[0].mean()

    def __bagwise_tags__(self):
        return BagTags(order_tolerance=0.01)


@pytest.mark.parametrize("name", ["check_bag_order", "check_instance_order"])
def test_stated_dependence_on_order_is_accepted(name):
    EVERY_CHECK[name](Drifts())


def test_every_check_catches_something():
    assert EVERY_CHECK.keys() == BROKEN.keys()


def test_every_check_is_in_the_battery():
    modules = [module for name, module in vars(_battery).items() if name.startswith("_checks_")]
    written = {
        name
        for module in modules
        for name, value in vars(module).items()
        if name.startswith("check_") and inspect.isfunction(value)
        if value.__module__ == module.__name__
    }
    assert len(modules) == 12
    assert written == EVERY_CHECK.keys()
    assert all(check.__doc__ for check in EVERY_CHECK.values())


def test_number_of_checks():
    assert len(EVERY_CHECK) == 102


def test_check_bag_estimator_returns_outcomes():
    outcomes = check_bag_estimator(NearestMean())
    assert outcomes == dict.fromkeys(dict(yield_bag_checks(NearestMean())), "passed")


def test_check_bag_estimator_names_class_and_check():
    cls, params, _ = BROKEN["check_bag_order"][0]
    with pytest.raises(AssertionError, match=r"PrefersFirstBag fails check_bag_order: .*differ by"):
        check_bag_estimator(cls(**params))


def test_expected_failure_is_accepted():
    cls, params, _ = BROKEN["check_thread_count"][0]
    outcomes = check_bag_estimator(
        cls(**params), expected_failures={"check_thread_count": "it counts threads"}
    )
    assert outcomes["check_thread_count"] == "expected failure: it counts threads"


def test_expected_failure_that_passes_is_an_error():
    with pytest.raises(AssertionError, match="passes check_pickle: take it out"):
        check_bag_estimator(NearestMean(), expected_failures={"check_pickle": "none"})


def test_expected_failure_must_exist():
    with pytest.raises(ValueError, match=r"must name checks .*\['check_nothing'\]"):
        check_bag_estimator(NearestMean(), expected_failures={"check_nothing": "none"})


def test_skipped_check_is_told(monkeypatch):
    def check_missing(estimator):
        raise SkipTest("no such package")

    monkeypatch.setattr(_battery, "_BATTERY", (((lambda estimator: True), (check_missing,)),))
    assert check_bag_estimator(NearestMean()) == {"check_missing": "skipped: no such package"}


def test_parametrize_marks_expected_failures():
    decorator = parametrize_with_bag_checks(
        [NearestMean("max")], expected_failures=lambda estimator: {"check_pickle": "a reason"}
    )
    params = {param.id: param for param in decorator.args[1]}
    marked = params.pop("NearestMean(rule='max')-check_pickle")
    assert [mark.kwargs for mark in marked.marks] == [{"reason": "a reason", "strict": True}]
    assert not any(param.marks for param in params.values())


def test_variants_get_the_checks_that_parameters_can_change():
    decorator = parametrize_with_bag_checks([NearestMean()], variants=[NearestMean("max")])
    names = {"NearestMean()": set(), "NearestMean(rule='max')": set()}
    for param in decorator.args[1]:
        estimator, _, name = param.id.rpartition("-")
        names[estimator].add(name)
    whole, part = names.values()
    assert whole == set(dict(yield_bag_checks(NearestMean())))
    of_the_class = {check.__name__ for check in _battery._OF_THE_CLASS}
    assert of_the_class <= EVERY_CHECK.keys()
    assert len(of_the_class) == 44
    assert part == whole - of_the_class | {"check_max_rule", "check_positive_class"}
    assert part >= {"check_learns", "check_ties", "check_float32", "check_certificate"}


def test_checks_follow_what_the_estimator_is():
    names = {
        type(estimator).__name__: dict(yield_bag_checks(estimator))
        for estimator in (NearestMean(), BagsOnly(), SIL(), InstanceTransformer(StandardScaler()))
    }
    assert "check_key_instances" in names["NearestMean"]
    assert "check_instance_scores_refused" in names["BagsOnly"]
    assert "check_key_instances" not in names["BagsOnly"]
    assert "check_supervised_analogue" in names["SIL"]
    assert "check_save_and_load" in names["SIL"]
    assert "check_save_and_load" not in names["NearestMean"]
    assert "check_label_types" not in names["InstanceTransformer"]
    assert "check_sparse_agrees" not in names["InstanceTransformer"]


def test_public_names():
    assert bagwise.testing.__all__ == sorted(bagwise.testing.__all__)
    assert all(hasattr(bagwise.testing, name) for name in bagwise.testing.__all__)
    assert set(dir(bagwise.testing)) == {*bagwise.testing.__all__, "strategies"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bagwise.testing.nothing  # noqa: B018


def test_import_needs_neither_pytest_nor_hypothesis():
    code = "import bagwise.testing, sys; print(*{'pytest', 'hypothesis'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
