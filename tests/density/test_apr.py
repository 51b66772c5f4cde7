"""APR as a classifier."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from bagwise import Bags
from bagwise.datasets import make_key_instance_bags
from bagwise.density import APR


@pytest.fixture(scope="module")
def data():
    return make_key_instance_bags(60, random_state=0)


def test_scores_are_distances_to_the_nearest_bound(data):
    model = APR().fit(data.bags, data.y)
    X = data.bags.instances
    unit = np.sqrt(X.var(axis=0).mean())
    assert model.scale_ == pytest.approx(unit)
    room = np.minimum(X - model.lower_[0], model.upper_[0] - X).min(axis=1) / unit
    np.testing.assert_allclose(model.instance_decision_function(data.bags), room)
    is_inside = ((model.lower_[0] <= X) & (model.upper_[0] >= X)).all(axis=1)
    np.testing.assert_array_equal(model.instance_predict(data.bags), is_inside)
    best = [part.max() for part in np.split(room, data.bags.offsets[1:-1])]
    np.testing.assert_allclose(model.decision_function(data.bags), best)


def test_every_positive_training_bag_is_positive(data):
    y = np.asarray(data.y)
    assert (
        APR(search="grow", epsilon=0.99).fit(data.bags, y).predict(data.bags)[y == 1] == 1
    ).all()


def test_a_rectangle_is_found_on_the_features_that_it_has():
    """One instance of each positive bag lies in [0, 1] x [0, 1], the others anywhere but there."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-4.0, 5.0, (200, 6, 5))
    X[..., 0] = np.where(np.abs(X[..., 0] - 0.5) < 1.0, -3.0, X[..., 0])
    y = np.arange(200) % 2
    X[y == 1, 2, :2] = rng.random((100, 2))
    model = APR(margin=0.1).fit(X, y)
    used = np.flatnonzero(np.isfinite(model.lower_[0]))
    assert 0 in used
    assert -0.4 < model.lower_[0, 0] < 0.0
    assert 1.0 < model.upper_[0, 0] < 1.4
    assert model.score(X, y) == 1.0
    np.testing.assert_array_equal(model.key_instances(X[y == 1]), 2)


def test_key_instances_further_out_than_others_are_found():
    """The bags to be predicted are other draws; chance is an area of 0.5."""
    areas = []
    for seed in range(5):
        seen, other = (make_key_instance_bags(random_state=k) for k in (10 + seed, 20 + seed))
        model = APR().fit(seen.bags, seen.y)
        areas.append(roc_auc_score(other.y, model.decision_function(other.bags)))
        assert model.cut_.tolist() == [True]
    assert np.mean(areas) > 0.9


def test_a_concept_narrow_in_many_features_is_grown():
    """Keys lie in a cube of 12 features, others anywhere: no few bounds hold it."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-3.0, 3.0, (60, 4, 12)), np.arange(60) % 2
    X[y == 1, 0] = rng.uniform(-1.0, 1.0, (30, 12))
    model = APR().fit(X, y)
    assert model.cut_.tolist() == [False]
    grown = APR(search="grow").fit(X, y)
    np.testing.assert_array_equal(model.lower_, grown.lower_)
    np.testing.assert_array_equal(model.upper_, grown.upper_)
    assert APR(search="cut").fit(X, y).cut_.tolist() == [True]


def test_each_label_has_its_own_search():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-3.0, 3.0, (60, 4, 12)), np.arange(60) % 2
    X[y == 1, 0] = rng.uniform(-1.0, 1.0, (30, 12))
    far = np.arange(60) % 3 == 0
    X[far, 1, 4] += 8.0
    X[[0, 3], 1, 4] -= 8.0  # two bags that have no key, which a grown rectangle has to hold
    model = APR().fit(X, np.column_stack([y, far]).astype(int))
    assert model.cut_.tolist() == [False, True]


def test_order_does_not_matter_even_with_ties():
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 3, (90, 4)).astype(float)
    parts, y = np.split(rows, 30), np.arange(30) % 2
    first = APR(margin=0.5).fit(parts, y)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(30)
        other = [parts[i][::-1] for i in order]
        model = APR(margin=0.5).fit(other, y[order])
        np.testing.assert_allclose(model.lower_, first.lower_)
        np.testing.assert_allclose(model.upper_, first.upper_)


def test_a_label_that_all_bags_have_or_none():
    rng = np.random.default_rng(0)
    bags = Bags.from_list([rng.normal(size=(3, 2)) for _ in range(8)])
    lists = np.column_stack([np.arange(8) % 2, np.ones(8), np.zeros(8)]).astype(int)
    model = APR().fit(bags, lists)
    np.testing.assert_array_equal(model.predict(bags)[:, 1:], lists[:, 1:])
    assert np.isfinite(model.decision_function(bags)).all()


def test_bags_far_from_the_origin_are_not_taken_for_one():
    rng = np.random.default_rng(0)
    bags = [10.0 * rng.normal(size=(5, 2)) for _ in range(20)]
    y = np.arange(20) % 2
    for bag in bags[1::2]:
        bag[2] = 5.0 + 0.1 * rng.normal(size=2)
    far = [bag + 1e10 for bag in bags]
    assert APR().fit(far, y).score(far, y) == APR().fit(bags, y).score(bags, y) == 1.0
