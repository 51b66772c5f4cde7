"""BagKMeans against scikit-learn's KMeans and votes counted in a loop."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from bagwise import Bags
from bagwise.base import get_bag_tags
from bagwise.cluster import BagKMeans
from bagwise.exceptions import ModelFileError
from bagwise.metrics import clustering_accuracy
from bagwise.persistence import load, save
from bagwise.testing._checks_invariance import check_feature_units

each_vote = pytest.mark.parametrize("vote", ["majority", "mil"])


def _bags(n=30, seed=0, n_features=3):
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(rng.integers(1, 8), n_features))
        + 3 * rng.normal(size=(3, n_features))[rng.integers(0, 3)]
        for _ in range(n)
    ]


def _votes(bags, centers, weights):
    """Return the votes of all bags, one instance after another."""
    votes = np.zeros((len(bags), len(centers)))
    for i, bag in enumerate(bags):
        for x in bag:
            c = ((x - centers) ** 2).sum(axis=1).argmin()
            votes[i, c] += weights[c] / len(bag)
    return votes


@each_vote
def test_votes_are_counted(vote):
    bags = _bags()
    model = BagKMeans(4, vote=vote, random_state=0).fit(bags)
    shares = _votes(bags, model.cluster_centers_, np.ones(4))
    weights = np.ones(4) if vote == "majority" else 1.0 / shares.mean(axis=0)
    np.testing.assert_allclose(model.vote_weights_, weights, rtol=1e-12)
    new = _bags(20, seed=1)
    expected = _votes(new, model.cluster_centers_, weights)
    np.testing.assert_allclose(model.transform(new), expected, rtol=1e-12)
    assert np.array_equal(model.predict(new), model.transform(new).argmax(axis=1))
    assert np.array_equal(model.labels_, model.predict(bags))


def test_centres_are_those_of_scikit_learn():
    bags = _bags()
    instances = np.concatenate(bags)
    peer = KMeans(4, n_init=50, random_state=1).fit(instances)
    model = BagKMeans(4, n_init=50, random_state=0).fit(bags)
    assert model.inertia_ == pytest.approx(peer.inertia_, rel=1e-3)
    nearest = ((instances[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    assert model.inertia_ == pytest.approx(nearest.min(axis=1).sum(), rel=1e-9)
    assert np.array_equal(model.instance_labels_, nearest.argmin(axis=1))
    np.testing.assert_allclose(model.instance_decision_function(bags), -nearest, atol=1e-9)


@each_vote
def test_bags_of_one_are_plain_k_means(vote):
    X = np.random.default_rng(0).normal(size=(80, 2))
    start = X[:3]
    peer = KMeans(3, init=start, n_init=1).fit(X)
    model = BagKMeans(3, vote=vote, init=start).fit(X)
    assert np.array_equal(model.labels_, peer.labels_)
    np.testing.assert_allclose(model.cluster_centers_, peer.cluster_centers_, rtol=1e-12)
    assert model.n_iter_ == peer.n_iter_
    assert not model.key_instances(X).any()


def test_ties_go_to_the_lowest_cluster():
    centers = np.array([[0.0], [1.0], [2.0]])
    bags = [[[0.0]], [[1.0]], [[2.0]], [[2.0], [1.0]], [[1.0], [0.0]], [[2.0], [0.0], [1.0]]]
    model = BagKMeans(3, init=centers).fit(bags)
    np.testing.assert_array_equal(model.cluster_centers_, centers)
    assert model.labels_.tolist() == [0, 1, 2, 1, 0, 0]


@pytest.mark.parametrize(("dtype", "far"), [("float32", 1e3), ("float64", 1e6)])
def test_a_far_cluster_does_not_blur_the_others(dtype, far):
    X = np.array([[0.0], [0.1], [3.0], [3.1], [far], [far]], dtype)
    model = BagKMeans(3, init=[[0.0], [3.0], [far]]).fit(X)
    assert model.labels_.tolist() == model.predict(X).tolist() == [0, 0, 1, 1, 2, 2]


def test_given_centres_are_checked():
    with pytest.raises(ValueError, match=r"init of BagKMeans .* \(2, 1\). Got shape \(3, 1\)"):
        BagKMeans(2, init=[[0.0], [1.0], [2.0]]).fit([[[0.0]], [[1.0]]])
    with pytest.raises(ValueError, match=r"init of BagKMeans .* Got NaN or infinity"):
        BagKMeans(2, init=[[0.0], [np.nan]]).fit([[[0.0]], [[1.0]]])


def test_background_is_outvoted_by_what_is_rare():
    """Four of five instances of each bag are background; the fifth says where the bag belongs."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    bags = [
        rng.normal(size=(5, 2)) + np.outer(np.arange(5) == 4, [30.0, 60.0 * c - 30.0]) for c in y
    ]
    majority, mil = (BagKMeans(3, vote=v, random_state=0) for v in ("majority", "mil"))
    with pytest.warns(ConvergenceWarning, match="into 1 of n_clusters=3"):
        assert not majority.fit(bags).labels_.any()
    with pytest.warns(ConvergenceWarning, match="into 2 of n_clusters=3"):
        mil.fit(bags)
    assert clustering_accuracy(y, mil.labels_) == 1.0
    assert np.array_equal(mil.key_instances_, np.full(40, 4))
    assert np.array_equal(mil.key_instances(bags), mil.key_instances_)
    assert mil.vote_weights_[2] == pytest.approx(1 / 0.8)  # the background stands last


def test_key_instance_is_nearest_to_the_centre():
    bags = _bags()
    model = BagKMeans(3, random_state=0).fit(bags)
    for bag, label, key in zip(bags, model.labels_, model.key_instances_, strict=True):
        distance = ((bag - model.cluster_centers_[label]) ** 2).sum(axis=1)
        assert key == distance.argmin()


@each_vote
def test_forms_of_bags_agree(vote):
    bags = Bags.from_list([bag * (bag > 0) for bag in _bags()])
    expected = BagKMeans(3, vote=vote, random_state=0).fit(bags)
    for matrix in (sp.csr_array(bags.instances), sp.csr_matrix(bags.instances.astype(np.float32))):
        other = Bags(matrix, bags.offsets)
        model = BagKMeans(3, vote=vote, random_state=0).fit(other)
        assert model.inertia_ == pytest.approx(expected.inertia_, rel=0.05)
        assert np.array_equal(model.predict(other), model.labels_)
        assert model.cluster_centers_.dtype == matrix.dtype


def test_threads_do_not_change_a_bit():
    bags = _bags(200, n_features=12)
    one, two = (BagKMeans(6, n_jobs=n, random_state=0).fit(bags) for n in (1, 2))
    assert np.array_equal(one.cluster_centers_, two.cluster_centers_)
    assert one.inertia_ == two.inertia_


def test_first_of_equal_centres_counts():
    bags = [np.full((2, 3), float(i % 2)) for i in range(8)]
    with pytest.warns(ConvergenceWarning, match="into 2 of n_clusters=4") as caught:
        model = BagKMeans(4, random_state=0).fit(bags)
    assert len(caught) == 1
    assert np.array_equal(model.predict(bags), model.labels_)
    assert len(np.unique(model.labels_)) == 2


def test_not_converged_warns():
    with pytest.warns(ConvergenceWarning, match="BagKMeans did not converge"):
        BagKMeans(5, max_iter=1, random_state=0).fit(_bags(100))


def test_saved_and_loaded(tmp_path):
    bags = _bags()
    model = BagKMeans(4, vote="mil", random_state=0).fit(bags)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert np.array_equal(loaded.transform(bags), model.transform(bags))
    assert np.array_equal(loaded.key_instances(bags), model.key_instances_)
    model.labels_ = model.labels_ + 4
    with pytest.raises(ModelFileError, match="labels_ must be below the number of clusters, 4"):
        save(model, tmp_path / "model")


@pytest.mark.parametrize(("name", "value"), [("vote", "all"), ("init", "best"), ("tol", -1.0)])
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of BagKMeans"):
        BagKMeans(**{name: value}).fit(_bags())


def test_units_of_given_centres():
    model = BagKMeans(init=np.array([[0.0, 0.5, 0.0], [2.0, 0.0, 1.0]]))
    assert get_bag_tags(model).scale_powers == {"init": 1}
    check_feature_units(model)
    assert get_bag_tags(BagKMeans(init=lambda X, k, random_state: X[:k])).scale_powers is None


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_stored_and_scattered_bags_are_those_in_memory(init, sparse, tmp_path, monkeypatch):
    monkeypatch.setattr("bagwise.bags._matrix._CHUNK_BYTES", 400)
    bags = Bags.from_list([bag * (bag > 0) for bag in _bags(60)])
    if sparse:
        bags = Bags(sp.csr_array(bags.instances), bags.offsets)
    bags.write(tmp_path / "some.bags")
    fold = np.random.default_rng(0).permutation(60)[:40]
    models = [
        BagKMeans(4, init=init, n_init=3, max_memory=limit, n_jobs=n_jobs, random_state=0).fit(x)
        for x, limit, n_jobs in [
            (bags[fold].compact(), None, 1),
            (bags[fold], None, 2),
            (Bags.open(tmp_path / "some.bags")[fold], "10KB", 2),
        ]
    ]
    for model in models[1:]:
        assert np.array_equal(model.cluster_centers_, models[0].cluster_centers_)
        assert np.array_equal(model.labels_, models[0].labels_)
        assert model.inertia_ == models[0].inertia_


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_starts_are_as_good_as_those_of_scikit_learn(init):
    """One start each, so that luck shows: the mean objective over many states is as low."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) + 6.0 * rng.normal(size=(8, 4))[rng.integers(0, 8, 300)]
    ours = [
        BagKMeans(8, init=init, n_init=1, random_state=state).fit(X).inertia_ for state in range(40)
    ]
    peer = [
        KMeans(8, init=init, n_init=1, random_state=state).fit(X).inertia_ for state in range(40)
    ]
    error = np.sqrt((np.var(ours) + np.var(peer)) / 40)
    assert np.mean(ours) <= np.mean(peer) + 3.0 * error
    assert min(ours) == pytest.approx(min(peer), rel=1e-3)


def test_a_function_gets_the_instances_as_they_are():
    bags = _bags()
    seen = []

    def first(instances, n_clusters, random_state):
        seen.append(np.array(instances))
        return instances[random_state.choice(len(instances), n_clusters, replace=False)]

    model = BagKMeans(3, init=first, n_init=2, random_state=0).fit(bags)
    assert len(seen) == 2
    assert np.array_equal(seen[0], np.concatenate(bags))
    assert len(model.cluster_centers_) == 3
    with pytest.raises(ValueError, match=r"init of BagKMeans .* Got shape \(2, 3\)"):
        BagKMeans(3, init=lambda X, k, random_state: X[:2]).fit(bags)
