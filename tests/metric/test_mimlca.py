"""MIMLCA: labels of instances, the metric, both rules, rejection, kernels, stores."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score

import bagwise
from bagwise import Bags
from bagwise.datasets import make_key_instance_bags, make_ring_bags, make_weak_label_bags
from bagwise.metric import MIMLCA, MLCA


@pytest.fixture(scope="module")
def data():
    return make_weak_label_bags(250, n_labels=12, n_features=15, noisy=False, random_state=1)


@pytest.fixture(scope="module")
def model(data):
    return MIMLCA().fit(data.bags, data.y)


def test_assignments_keep_to_the_lists(data, model):
    labels = model.assignments_
    for i in range(len(data.bags)):
        own = labels[data.bags.offsets[i] : data.bags.offsets[i + 1]]
        named = own[own >= 0]
        assert len(set(named)) == len(named) == min(len(own), data.y[i].sum())
        assert data.y[i][named].all()


@pytest.mark.parametrize("separation", [3.3, 1.0, 0.5])
def test_instances_are_named_as_well_as_can_be(separation):
    """Precision in bags of several instances; the prototype had .970, .956 and .925."""
    data = make_weak_label_bags(
        1800, n_labels=587, n_features=500, separation=separation, noisy=False, random_state=0
    )
    model = MIMLCA().fit(data.bags, data.y)
    several = np.repeat(data.bags.sizes > 1, data.bags.sizes) & (model.assignments_ >= 0)
    right = (model.assignments_ == data.instance_y)[several].mean()
    assert right >= {3.3: 0.95, 1.0: 0.93, 0.5: 0.90}[separation]


def test_with_one_instance_and_one_label_per_bag_it_is_mlca(data):
    named = data.instance_y >= 0
    X, y = data.bags.instances[named], data.instance_y[named]
    several, one = MIMLCA().fit(X, y), MLCA().fit(X, y)
    np.testing.assert_array_equal(several.assignments_, y)
    np.testing.assert_allclose(several.components_, one.components_, rtol=1e-9)


def test_metric_is_the_pseudo_inverse_of_the_named_instances(data, model):
    named = model.assignments_ >= 0
    H = np.eye(12)[model.assignments_[named]][:, model.used_]
    L = np.linalg.pinv(data.bags.instances[named]) @ (H / np.sqrt(H.mean(axis=0)))
    np.testing.assert_allclose(model.components_, L.T, rtol=1e-7)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), L @ L.T, rtol=1e-7)
    x, y = data.bags.instances[:2]
    assert model.metric()(x, y) == pytest.approx(np.linalg.norm((x - y) @ L))
    mapped = model.transform(data.bags)
    assert isinstance(mapped, Bags)
    np.testing.assert_allclose(mapped.instances[:5], data.bags.instances[:5] @ L, rtol=1e-7)


def test_rule_of_distances_is_equation_15(data, model):
    X, M = data.bags.instances, model.get_mahalanobis_matrix()
    d2 = np.array([[(x - z) @ M @ (x - z) for z in model.centroids_] for x in X])
    expected = model.used_[d2.argmin(axis=1)]
    np.testing.assert_array_equal(model.instance_predict(data.bags).argmax(axis=1), expected)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_rule_of_similarities_is_equation_16(data, alpha):
    model = MIMLCA(rule="similarity", alpha=alpha).fit(data.bags, data.y)
    named = model.assignments_ >= 0
    X = data.bags.instances
    H = np.eye(12)[model.assignments_[named]]
    L = np.linalg.pinv(X[named]) @ (H / np.sqrt(H.sum(axis=0)))  # as printed
    z = (H.T @ X[named]) / H.sum(axis=0)[:, None]
    scores = X @ L - alpha * ((z @ L) ** 2).sum(axis=1)
    expected = scores.argmax(axis=1)
    np.testing.assert_array_equal(model.instance_predict(data.bags).argmax(axis=1), expected)


def test_instances_are_rejected_below_a_score(data, model):
    mapped = model.transform(data.bags).instances
    best = -((mapped[:, None] - model.mapped_centroids_) ** 2).sum(axis=2).min(axis=1)
    limit = float(np.sort(best)[150:152].mean())
    picky = MIMLCA(reject=limit).fit(data.bags, data.y)
    named = picky.instance_predict(data.bags).sum(axis=1)
    np.testing.assert_array_equal(named, best >= limit)
    assert (picky.instance_decision_function(data.bags) > 0).sum() == (best > limit).sum()
    assert picky.predict(data.bags).sum() < model.predict(data.bags).sum()


@pytest.mark.parametrize(
    ("names", "none"), [(np.array([3, 5]), -1), (np.array(["a", "b"]), "none")], ids=["int", "str"]
)
def test_what_an_instance_is_called_that_is_none_of_these(names, none):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 3)) + 4.0 * y[:, None]
    model = MIMLCA(center=True, reject=-4.0, pos_label=names[1]).fit(X, names[y])
    far = model.instance_predict(np.full((1, 3), 100.0))
    assert far.tolist() == [none]
    other = 7 if none == -1 else "nobody"
    assert model.instance_predict(np.full((1, 3), 100.0), none_label=other).tolist() == [other]
    with pytest.raises(ValueError, match="none_label must not be one of the classes"):
        model.instance_predict(X, none_label=names[0])


def test_labels_that_nobody_bears_are_never_predicted(data):
    y = np.column_stack([data.y, np.zeros(len(data.y), int)])
    model = MIMLCA().fit(data.bags, y)
    assert 12 not in model.used_
    assert not model.predict(data.bags)[:, 12].any()
    assert not model.instance_predict(data.bags)[:, 12].any()


def test_kernels_need_fewer_directions(data):
    with pytest.raises(ValueError, match="needs n_components or ridge"):
        MIMLCA(kernel="rbf").fit(data.bags, data.y)
    model = MIMLCA(kernel="rbf", n_components=60).fit(data.bags, data.y)
    named = model.assignments_ >= 0
    assert (model.assignments_ == data.instance_y)[named].mean() > 0.9
    with pytest.raises(AttributeError, match="no matrix between features"):
        model.get_mahalanobis_matrix()
    x, y = data.bags.instances[:2]
    mapped = model.transform(np.stack([x, y]))
    assert model.metric()(x, y) == pytest.approx(np.linalg.norm(mapped[0] - mapped[1]))


def test_a_linear_kernel_by_another_way_is_the_linear_kernel(data):
    """A polynomial of degree 1 in all its directions."""
    plain = MIMLCA().fit(data.bags, data.y)
    other = MIMLCA(kernel="poly", degree=1, gamma=1.0, n_components=15).fit(data.bags, data.y)
    np.testing.assert_array_equal(other.assignments_, plain.assignments_)
    np.testing.assert_allclose(
        other.decision_function(data.bags), plain.decision_function(data.bags), atol=1e-6
    )


def test_as_many_directions_as_instances_are_warned_of():
    data = make_weak_label_bags(40, n_labels=5, n_features=80, random_state=0)
    with pytest.warns(UserWarning, match="the less the labels of instances are determined"):
        MIMLCA().fit(data.bags, data.y)


@pytest.mark.parametrize("limit", [None, 200_000])
def test_from_a_store_it_is_the_same_to_the_last_bit(data, tmp_path, limit):
    data.bags.write(tmp_path / "store")
    stored = Bags.open(tmp_path / "store")
    inside = MIMLCA().fit(data.bags, data.y)
    outside = MIMLCA(max_memory=limit).fit(stored, data.y)
    np.testing.assert_array_equal(outside.assignments_, inside.assignments_)
    np.testing.assert_array_equal(outside.components_, inside.components_)


def test_more_starts_never_end_higher(data):
    one = MIMLCA(solver="lloyd").fit(data.bags, data.y)
    many = MIMLCA(solver="lloyd", n_init=5, random_state=0).fit(data.bags, data.y)
    assert many.result_.objective <= one.result_.objective
    assert len(many.result_.ends) == 5
    assert MIMLCA().fit(data.bags, data.y).result_.objective <= one.result_.objective


def test_bags_that_are_alike_are_one_bag_of_their_weight(data):
    often = np.r_[np.arange(len(data.bags)), np.arange(0, len(data.bags), 3)]
    weight = np.ones(len(data.bags))
    weight[::3] = 2.0
    twice = MIMLCA().fit(data.bags[often], data.y[often])
    once = MIMLCA().fit(data.bags, data.y, weight)
    assert twice.result_.objective == pytest.approx(once.result_.objective, rel=1e-9)
    np.testing.assert_array_equal(twice.assignments_[: data.bags.n_instances], once.assignments_)


@pytest.mark.parametrize("center", [False, True])
def test_more_features_than_instances(center):
    """The directions that no instance has do not matter."""
    data = make_weak_label_bags(60, n_labels=5, n_features=8, noisy=False, random_state=0)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 8)))[0].T
    wide = data.bags.map_instances(lambda x: x @ turn)
    plain = MIMLCA(center=center).fit(data.bags, data.y)
    model = MIMLCA(center=center).fit(wide, data.y)
    np.testing.assert_array_equal(model.assignments_, plain.assignments_)
    np.testing.assert_allclose(model.components_, plain.components_ @ turn, atol=1e-8)
    np.testing.assert_allclose(model.centroids_, plain.centroids_ @ turn, atol=1e-8)


# ------------------------------------------------------------------------------- two classes


@pytest.fixture(scope="module")
def keys():
    return make_key_instance_bags(120, random_state=3)


def test_of_two_classes_one_instance_of_each_positive_bag_is_positive(keys):
    model = MIMLCA(center=True).fit(keys.bags, keys.y)
    named = np.add.reduceat(model.assignments_, keys.bags.offsets[:-1])
    np.testing.assert_array_equal(named, keys.y)
    positive = keys.bags[keys.y == 1]
    found = model.key_instances(positive)
    is_key = positive.instance_labels[positive.offsets[:-1] + found] == 1
    assert is_key.mean() > 0.9
    assert model.score(keys.bags, keys.y) > 0.9


def test_bags_of_one_instance_give_the_direction_of_discriminant_analysis():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) + y[:, None] * [1.0, 0.0, 2.0, -1.0]
    ours = MIMLCA(center=True, centers="learned").fit(X, y.astype(int)).decision_function(X)
    other = LinearDiscriminantAnalysis().fit(X, y).decision_function(X)
    assert np.corrcoef(ours, other)[0, 1] == pytest.approx(1.0, abs=1e-9)


def test_names_of_classes_do_not_matter(keys):
    numbers = MIMLCA().fit(keys.bags, keys.y)
    for negative, positive in (("a", "b"), ("b", "a")):
        y = np.where(keys.y == 1, positive, negative)
        names = MIMLCA(pos_label=positive).fit(keys.bags, y)
        side = 1.0 if positive == "b" else -1.0
        np.testing.assert_array_equal(
            names.predict(keys.bags) == positive, numbers.predict(keys.bags) == 1
        )
        np.testing.assert_allclose(
            names.decision_function(keys.bags), side * numbers.decision_function(keys.bags)
        )
        np.testing.assert_array_equal(
            names.key_instances(keys.bags), numbers.key_instances(keys.bags)
        )
        np.testing.assert_array_equal(
            names.instance_predict(keys.bags) == positive, numbers.instance_predict(keys.bags) == 1
        )


def test_three_classes_and_lists_treat_labels_alike(data):
    assert MIMLCA().fit(data.bags, data.y).pos_label_ is None
    with pytest.raises(ValueError, match="pos_label of MIMLCA is for two classes"):
        MIMLCA(pos_label=1).fit(data.bags, data.y)


@pytest.mark.parametrize("positive", [1, 0])
def test_gaussian_classes_around_one_place_are_told_apart(positive, tmp_path):
    """Scores are those of Gaussians; no line tells a ring from its centre."""
    data, new = make_ring_bags(200, random_state=0), make_ring_bags(200, random_state=1)
    y, truth = (data.y, new.y) if positive else (1 - data.y, 1 - new.y)
    model = MIMLCA(pos_label=positive).fit(data.bags, y)
    of_rows = np.repeat(y, data.bags.sizes)
    laws = []
    for label in (0, 1):
        rows = data.bags.instances[of_rows == label]
        laws.append(multivariate_normal(rows.mean(axis=0), rows.var(axis=0).mean()))
    at = new.bags.instances
    ahead = 2.0 * (laws[1].logpdf(at) - laws[0].logpdf(at))
    scores = model.instance_decision_function(new.bags)
    np.testing.assert_allclose(scores - model.intercept_shift_[0], ahead)
    assert roc_auc_score(truth, model.decision_function(new.bags)) > 0.95
    seen = model.decision_function(data.bags) * (2 * positive - 1)
    wrong = [((seen > level) != (y == positive)).sum() for level in (*seen, seen.min() - 1)]
    assert ((seen > 0) != (y == positive)).sum() <= min(wrong)
    bagwise.save(model, tmp_path / "m.model")
    again = bagwise.load(tmp_path / "m.model")
    np.testing.assert_array_equal(
        again.decision_function(new.bags), model.decision_function(new.bags)
    )


def test_gaussians_of_classes_leave_the_metric_as_it_is():
    data = make_ring_bags(100, random_state=0)
    metric, model = (MIMLCA(centers=how).fit(data.bags, data.y) for how in ("learned", "auto"))
    assert not hasattr(metric, "spreads_")
    assert hasattr(model, "spreads_")
    np.testing.assert_array_equal(model.assignments_, metric.assignments_)
    np.testing.assert_array_equal(model.components_, metric.components_)
    np.testing.assert_array_equal(model.mapped_centroids_, metric.mapped_centroids_)
    scores = model.decision_function(data.bags)
    model.set_params(centers="learned")  # for the next fit
    np.testing.assert_array_equal(model.decision_function(data.bags), scores)


def test_gaussians_that_rank_left_out_bags_no_better_do_not_score(keys):
    plain, model = (MIMLCA(centers=how).fit(keys.bags, keys.y) for how in ("learned", "auto"))
    assert not hasattr(model, "spreads_")
    np.testing.assert_array_equal(
        model.decision_function(keys.bags), plain.decision_function(keys.bags)
    )
    forced = MIMLCA(centers="classes").fit(keys.bags, keys.y)
    assert hasattr(forced, "spreads_")


@pytest.mark.parametrize(
    "options",
    [{"reject": -4.0}, {"rule": "similarity"}, {"kernel": "rbf", "n_components": 8}],
    ids=str,
)
def test_gaussians_are_for_plain_distances(options):
    data = make_ring_bags(40, random_state=0)
    assert not hasattr(MIMLCA(centers="classes", **options).fit(data.bags, data.y), "spreads_")


def test_gaussians_need_a_spread_of_each_class():
    points = np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0)
    model = MIMLCA(centers="classes").fit(points, np.repeat([0, 1], 5))
    assert not hasattr(model, "spreads_")
    assert np.isfinite(model.decision_function(points)).all()


@pytest.mark.parametrize("kind", ["float32", "sparse", "stored"])
def test_gaussians_are_the_same_wherever_instances_lie(kind, tmp_path):
    data = make_ring_bags(60, random_state=0)
    bags = data.bags
    plain = MIMLCA(centers="classes").fit(bags, data.y)
    if kind == "float32":
        other = Bags(bags.instances.astype(np.float32), bags.offsets)
    elif kind == "sparse":
        other = Bags(csr_matrix(bags.instances), bags.offsets)
    else:
        bags.write(tmp_path / "rings")
        other = Bags.open(tmp_path / "rings")
    model = MIMLCA(centers="classes").fit(other, data.y)
    np.testing.assert_allclose(model.spreads_, plain.spreads_, rtol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(other), plain.decision_function(bags), rtol=1e-3, atol=1e-3
    )
