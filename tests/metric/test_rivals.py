"""MildML, MIML and MC2B: objectives by plain loops, maps, labels, pairs that are drawn."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import bagwise
from bagwise import Bags
from bagwise.base._target import encode_target
from bagwise.datasets import make_ring_bags, make_weak_label_bags
from bagwise.metric import MC2B, MIML, MIMLCA, MildML
from bagwise.metric._lists import distinct
from bagwise.neighbors import CitationKNN

DATA = make_weak_label_bags(60, n_labels=5, n_features=8, noisy=False, random_state=1)
BAGS = [DATA.bags[i] for i in range(60)]
RIVALS = [MildML(), MIML(), MC2B()]


@pytest.fixture(scope="module", params=RIVALS, ids=lambda model: type(model).__name__)
def model(request):
    return clone(request.param).fit(DATA.bags, DATA.y)


def test_map_distance_and_matrix_agree(model):
    x, y = DATA.bags.instances[:2]
    mapped = model.transform(DATA.bags)
    assert isinstance(mapped, Bags)
    np.testing.assert_allclose(np.average(mapped.instances, axis=0), 0.0, atol=1e-9)
    between = mapped.instances[0] - mapped.instances[1]
    assert model.metric()(x, y) == pytest.approx(np.linalg.norm(between))
    M = model.get_mahalanobis_matrix()
    assert (x - y) @ M @ (x - y) == pytest.approx(between @ between)
    spread = mapped.instances.T @ mapped.instances
    np.testing.assert_allclose(spread, np.diag(np.diag(spread)), atol=1e-8 * spread.max())
    assert (np.diff(np.diag(spread)) <= 1e-8 * spread.max()).all()


def test_labels_are_those_of_the_nearest_centre(model):
    mapped = model.transform(DATA.bags.instances)
    centres = model.transform(model.centroids_)
    np.testing.assert_allclose(centres, model.mapped_centroids_, atol=1e-9)
    nearest = ((mapped[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    named = model.instance_predict(DATA.bags).argmax(axis=1)
    np.testing.assert_array_equal(named, model.used_[nearest])
    right = named == DATA.instance_y
    assert right[DATA.instance_y >= 0].mean() > 0.7


def test_history_never_rises(model):
    assert (np.diff(model.result_.history) <= 0.0).all()
    assert model.result_.history[-1] == model.result_.objective


def test_labels_of_instances_are_on_the_lists():
    for model in (MildML(), MC2B()):
        labels = model.fit(DATA.bags, DATA.y).assignments_
        for i in range(60):
            own = labels[DATA.bags.offsets[i] : DATA.bags.offsets[i + 1]]
            named = own[own >= 0]
            assert len(set(named)) == len(named) == min(len(own), DATA.y[i].sum())
            assert DATA.y[i][named].all()


def test_centres_of_classes_are_the_means_of_all_their_instances():
    y = np.where(DATA.y[:, 0] > 0, "first", "other")
    of_rows = np.repeat(y, DATA.bags.sizes)
    means = [DATA.bags.instances[of_rows == label].mean(axis=0) for label in ("first", "other")]
    for model in (MildML(), MC2B()):
        model.fit(DATA.bags, y)
        np.testing.assert_allclose(model.centroids_, means, atol=1e-9)
        np.testing.assert_array_equal(model.classes_[model.assignments_], of_rows)


def test_means_of_classes_stand_for_them_in_miml_unless_its_centres_are_asked_for():
    y = np.where(DATA.y[:, 0] > 0, "first", "other")
    of_rows = np.repeat(y, DATA.bags.sizes)
    means = [DATA.bags.instances[of_rows == label].mean(axis=0) for label in ("first", "other")]
    model = MIML().fit(DATA.bags, y)
    np.testing.assert_allclose(model.centroids_, means, atol=1e-9)
    learned = MIML(centers="learned").fit(DATA.bags, y)
    np.testing.assert_array_equal(learned.components_, model.components_)
    assert learned.spreads_.tolist() == [1.0, 1.0]
    A, Z = learned.components_, learned.centroids_
    within = sum(
        (((bag - Z[int(label == "other")]) @ A.T) ** 2).sum(axis=1).min()
        for bag, label in zip(BAGS, y, strict=True)
    )
    between = 2.0 * (((Z[0] - Z[1]) @ A.T) ** 2).sum()
    assert learned.result_.objective == pytest.approx(within / between)


@pytest.mark.parametrize("is_turned", [False, True])
def test_two_classes_around_one_place_differ_by_their_spread(is_turned, tmp_path):
    """Scores are those of Gaussians; no line tells a ring from its centre."""
    data, new = make_ring_bags(200, random_state=0), make_ring_bags(200, random_state=1)
    y, truth = (1 - data.y, 1 - new.y) if is_turned else (data.y, new.y)
    model = MIML().fit(data.bags, y)
    of_rows = np.repeat(y, data.bags.sizes)
    mapped = [model.transform(data.bags.instances[of_rows == c]) for c in (0, 1)]
    spreads = [rows.var(axis=0).mean() for rows in mapped]
    np.testing.assert_allclose(model.spreads_, spreads)
    laws = [
        multivariate_normal(rows.mean(axis=0), spread)
        for rows, spread in zip(mapped, spreads, strict=True)
    ]
    at = model.transform(new.bags.instances)
    ahead = 2.0 * (laws[1].logpdf(at) - laws[0].logpdf(at))
    np.testing.assert_allclose(model.instance_decision_function(new.bags), ahead)
    assert roc_auc_score(truth, model.decision_function(new.bags)) > 0.9
    bagwise.save(model, tmp_path / "m.model")
    again = bagwise.load(tmp_path / "m.model")
    scores = model.decision_function(new.bags)
    np.testing.assert_array_equal(again.decision_function(new.bags), scores)


def test_spreads_that_rank_no_better_and_scores_of_rejection_are_left_alone():
    """One feature tells all bags apart; the wider class has one feature more, of noise."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = np.column_stack([10.0 * y + rng.normal(size=40), rng.normal(size=40) * (1 + 2 * y)])
    assert MIML().fit(X, y).spreads_.tolist() == [1.0, 1.0]
    data = make_ring_bags(random_state=0)
    assert MIML(reject=-1.0).fit(data.bags, data.y).spreads_.tolist() == [1.0, 1.0]
    points = np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0)  # of no spread at all
    model = MIML().fit(points, np.repeat([0, 1], 5))
    assert np.isfinite(model.decision_function(points)).all()


def test_objective_of_class_to_bag_distances_is_that_of_the_loops():
    """Class by class, as the formula has it."""
    model = MC2B(n_components=3).fit(DATA.bags, DATA.y)
    L = model.components_
    np.testing.assert_allclose(L @ L.T, np.eye(3), atol=1e-12)
    near = far = 0.0
    for c in range(5):
        for i in np.flatnonzero(DATA.y[:, c]):
            for e in range(60):
                if e == i:
                    continue
                steps = BAGS[i][:, None] - BAGS[e]
                chosen = (steps**2).sum(axis=2).argmin(axis=1)
                total = np.linalg.norm(steps[np.arange(len(steps)), chosen] @ L.T, axis=1).sum()
                near, far = near + total * DATA.y[e, c], far + total * (1 - DATA.y[e, c])
    assert model.result_.objective == pytest.approx(near / far)


def test_objective_of_centres_is_that_of_the_loops():
    model = MIML(n_components=3).fit(DATA.bags, DATA.y)
    A, Z = model.components_, model.centroids_
    np.testing.assert_allclose(A @ A.T, np.eye(3), atol=1e-12)
    within = sum(
        (((BAGS[i] - Z[c]) @ A.T) ** 2).sum(axis=1).min()
        for i in range(60)
        for c in np.flatnonzero(DATA.y[i])
    )
    between = sum((((z - other) @ A.T) ** 2).sum() for z in Z for other in Z)
    assert model.result_.objective == pytest.approx(within / between)


def test_objective_of_pairs_is_that_of_the_loops():
    model = MildML(n_components=3, alpha=0.0).fit(DATA.bags, DATA.y)
    losses = {True: [], False: []}
    for i in range(60):
        for j in range(i):
            steps = (BAGS[i][:, None] - BAGS[j]) @ model.components_.T
            lead = (steps**2).sum(axis=2).min() - model.threshold_
            shares = bool((DATA.y[i] & DATA.y[j]).any())
            losses[shares].append(np.logaddexp(0.0, lead if shares else -lead))
    expected = 0.5 * np.mean(losses[True]) + 0.5 * np.mean(losses[False])
    assert model.result_.objective == pytest.approx(expected)


@pytest.mark.parametrize("model", RIVALS, ids=lambda model: type(model).__name__)
def test_a_direction_that_only_disturbs_is_left_out(model):
    """One feature tells the labels, another one varies more and tells nothing."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = np.column_stack([y + 0.1 * rng.normal(size=80), 5.0 * rng.normal(size=80)])
    learned = clone(model).set_params(n_components=1).fit(X, y)
    a, b = np.abs(learned.components_[0])
    assert a > 10.0 * b
    assert learned.score(X, y) > 0.95


@pytest.mark.parametrize("cls", [MildML, MC2B])
def test_few_pairs_are_drawn_at_random(cls):
    first, again, other = (
        cls(max_pairs=50, random_state=seed).fit(DATA.bags, DATA.y) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.components_, again.components_)
    assert (first.components_ != other.components_).any()
    named = DATA.instance_y >= 0
    for model in (first, other):
        right = model.instance_predict(DATA.bags).argmax(axis=1) == DATA.instance_y
        assert right[named].mean() > 0.6


@pytest.mark.parametrize("model", RIVALS, ids=lambda model: type(model).__name__)
def test_more_features_than_instances(model):
    """The directions that no instance has do not matter."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(150, 8)))[0].T
    wide = DATA.bags.map_instances(lambda x: x @ turn)
    plain = clone(model).fit(DATA.bags, DATA.y).decision_function(DATA.bags)
    scores = clone(model).fit(wide, DATA.y).decision_function(wide)
    np.testing.assert_allclose(scores, plain, rtol=1e-4)


@pytest.mark.parametrize("model", [*RIVALS, MIMLCA()], ids=lambda model: type(model).__name__)
def test_lists_without_any_label_are_refused(model):
    lists, weight = np.zeros((60, 5), int), np.ones(60)
    with pytest.raises(ValueError, match="needs a label on some list"):
        clone(model).fit(DATA.bags, lists)
    lists[3, 1], weight[3] = 1, 0.0
    with pytest.raises(ValueError, match="needs a label on some list"):
        clone(model).fit(DATA.bags, lists, sample_weight=weight)


@pytest.mark.parametrize("cls", [MildML, MC2B])
def test_bags_that_all_share_a_label_are_pairs_of_one_kind(cls):
    lists = DATA.y.copy()
    lists[:, 0] = 1
    assert np.isfinite(cls().fit(DATA.bags, lists).components_).all()


@pytest.mark.parametrize("model", RIVALS, ids=lambda model: type(model).__name__)
def test_weights_matter_by_their_ratios(model):
    plain, heavy = (
        clone(model).fit(DATA.bags, DATA.y, sample_weight=np.full(60, weight))
        for weight in (1.0, 4.0)
    )
    np.testing.assert_allclose(heavy.components_, plain.components_, atol=1e-12)
    np.testing.assert_allclose(heavy.centroids_, plain.centroids_, atol=1e-12)


def test_neighbours_take_them_as_metrics():
    for model in RIVALS:
        voter = CitationKNN(5, 5, metric=model).fit(DATA.bags, DATA.y)
        assert voter.decision_function(DATA.bags).shape == (60, 5)


def test_repeated_bags_are_one_whatever_stands_between_them():
    bag = np.array([[1.0, 2.0], [3.0, 4.0]])
    bags = Bags.from_list([bag, bag, bag[::-1], bag, bag])
    lists = np.array([[1, 0], [0, 1], [1, 0], [1, 0], [0, 1]])
    target = encode_target(MildML(), lists, np.ones(5))
    found = distinct(bags, target, np.arange(1.0, 6.0))
    np.testing.assert_array_equal(found.kept, [0, 1, 2])
    np.testing.assert_array_equal(found.weight, [1.0 + 4.0, 2.0 + 5.0, 3.0])
