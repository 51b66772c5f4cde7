"""Diverse density and EM-DD as classifiers."""

import numpy as np
import pytest

from bagwise.datasets import make_key_instance_bags
from bagwise.density import EMDD, DiverseDensity
from bagwise.embedding import DDSVM
from bagwise.testing import make_toy_bags

MODELS = [DiverseDensity(), DiverseDensity(cause="most_likely"), EMDD()]


@pytest.fixture(scope="module")
def data():
    return make_key_instance_bags(60, random_state=0)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_scores_are_log_odds_of_the_stated_probability(model, data):
    model.set_params(threshold="half").fit(data.bags, data.y)
    h, s = model.concepts_[0], model.scales_[0]
    p = np.exp(-((s * (data.bags.instances - h)) ** 2).sum(axis=1))
    with np.errstate(divide="ignore"):
        odds = np.log(p / (1.0 - p))
    np.testing.assert_allclose(model.instance_decision_function(data.bags), odds, rtol=1e-6)
    parts = np.split(p, data.bags.offsets[1:-1])
    if isinstance(model, EMDD) or model.cause == "most_likely":
        P = np.array([part.max() for part in parts])
    else:
        P = np.array([1.0 - np.prod(1.0 - part) for part in parts])
    known = (P > 1e-12) & (P < 1.0 - 1e-12)
    scores = model.decision_function(data.bags)
    np.testing.assert_allclose(scores[known], np.log(P / (1.0 - P))[known], rtol=1e-3, atol=1e-6)
    sign = np.where(np.asarray(data.y) == 1, 1.0, -1.0)
    assert model.result_.objective == pytest.approx(np.logaddexp(0.0, -sign * scores).sum())


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_learned_threshold_makes_no_more_errors(model, data):
    half = model.set_params(threshold="half").fit(data.bags, data.y).score(data.bags, data.y)
    assert (
        model.set_params(threshold="learned").fit(data.bags, data.y).score(data.bags, data.y)
        >= half
    )


@pytest.mark.parametrize("cls", [DiverseDensity, EMDD])
def test_more_starts_never_end_higher(cls, data):
    values = [cls(n_init=n).fit(data.bags, data.y).result_.objective for n in (1, 5, "all")]
    assert (np.diff(values) <= 1e-9 * values[0]).all()


def test_em_and_gradients_have_the_same_objective(data):
    """Both minimise the most likely cause; from all instances they end about equally low."""
    one = DiverseDensity(cause="most_likely", n_init="all").fit(data.bags, data.y)
    other = EMDD(n_init="all").fit(data.bags, data.y)
    low, high = sorted([one.result_.objective, other.result_.objective])
    assert high <= 1.3 * low + 1.0


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("cls", [DiverseDensity, EMDD, DDSVM])
def test_a_class_without_weight_is_none(cls, label):
    bags, y = make_toy_bags(12, kind="close")
    model = cls(class_weight={label: 1.0, 1 - label: 0.0}).fit(bags, y)
    np.testing.assert_array_equal(model.predict(bags), label)
