"""Diverse density and EM-DD as classifiers."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import bagwise
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


def make_texts(n_bags, seed):
    """Return bags of posts of few words each: one post of positive bags has a word of a topic."""
    rng = np.random.default_rng(seed)
    y, posts = np.arange(n_bags) % 2, np.zeros((n_bags, 20, 100))
    for bag in range(n_bags):
        for post in posts[bag]:
            post[rng.integers(15, 100, 3)] = rng.exponential(1.0, 3)
        if y[bag]:
            posts[bag, 4, rng.integers(0, 15, 3)] = 3.0
    return list(posts), y


@pytest.mark.parametrize("cls", [DiverseDensity, EMDD])
def test_a_far_concept_ranks_texts_that_no_point_is_near_to(cls, tmp_path):
    (bags, y), (others, truth) = make_texts(60, 0), make_texts(200, 1)
    near, far = cls(search="density", tol=0.01).fit(bags, y), cls(tol=0.01).fit(bags, y)
    assert far.far_.all()
    assert not near.far_.any()
    scores = far.decision_function(others)
    assert roc_auc_score(truth, scores) > 0.9
    assert roc_auc_score(truth, near.decision_function(others)) < 0.7
    assert not cls(threshold="half", tol=0.01).fit(bags, y).far_.any()
    assert far.result_.objective == near.result_.objective
    # Spheres that are nearly planes: scores of instances are a linear function of these.
    rows = np.concatenate(others)
    parts = far.instance_decision_function(others)
    X = np.column_stack([rows, np.ones(len(rows))])
    fitted = X @ np.linalg.lstsq(X, parts, rcond=None)[0]
    assert np.corrcoef(fitted, parts)[0, 1] > 0.999
    np.testing.assert_array_equal(scores, parts.reshape(len(others), -1).max(axis=1))
    bagwise.save(far, tmp_path / "far")
    np.testing.assert_array_equal(bagwise.load(tmp_path / "far").decision_function(others), scores)


@pytest.mark.parametrize("model", [DiverseDensity(), EMDD()], ids=str)
def test_a_concept_that_ranks_well_is_kept(model, data):
    scores = model.fit(data.bags, data.y).decision_function(data.bags)
    assert not model.far_.any()
    published = model.set_params(search="density").fit(data.bags, data.y)
    np.testing.assert_array_equal(published.decision_function(data.bags), scores)
