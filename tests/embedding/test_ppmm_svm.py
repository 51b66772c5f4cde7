"""PPMM kernel: scikit-learn's posteriors and machine, powers, no look at new bags."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bagwise.base import dealt_folds
from bagwise.datasets import make_key_instance_bags
from bagwise.embedding import PPMMSVM
from bagwise.testing import make_toy_bags
from svm.naive import scaled_bags


@pytest.fixture(scope="module")
def toy():
    return make_toy_bags(24, kind="close", max_size=6)


def counts(bags, model):
    """Return sums of the posteriors that scikit-learn computes for the mixture of the model."""
    peer = GaussianMixture(len(model.means_), covariance_type="diag")
    peer.means_, peer.covariances_ = model.means_, model.variances_
    peer.weights_ = model.shares_
    peer.precisions_cholesky_ = 1.0 / np.sqrt(model.variances_)
    return np.array([peer.predict_proba(bag).sum(axis=0) for bag in bags])


def gram(A, B, p):
    """Return the kernel of the paper, with 1 on the diagonal."""
    K = (A**p) @ (B**p).T
    return K / np.sqrt(np.outer((A ** (2 * p)).sum(axis=1), (B ** (2 * p)).sum(axis=1)))


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_is_the_machine_of_scikit_learn_on_the_kernel(toy, power):
    bags, y = toy
    new = make_toy_bags(10, kind="close", random_state=1)[0]
    model = PPMMSVM(20.0, n_components=8, power=power, random_state=0).fit(bags, y)
    A, B = counts(bags, model), counts(new, model)
    peer = SVC(C=20.0, kernel="precomputed", tol=1e-9).fit(gram(A, A, power), y)
    expected = peer.decision_function(gram(B, A, power))
    np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-5)
    np.testing.assert_array_equal(model.powers_, power)
    assert model.result_.relative_gap <= 1e-6


def test_the_power_has_the_best_alignment(toy):
    bags, y = toy
    model = PPMMSVM(n_components=8, power="aligned", random_state=0).fit(bags, y)
    A, sign = counts(bags, model), np.where(y == 1, 1.0, -1.0)

    def alignment(p):
        K = gram(A, A, p)
        return sign @ K @ sign / (np.linalg.norm(K) * len(sign))

    best = max(np.linspace(0.1, 3.0, 30), key=alignment)
    assert model.powers_[0] == pytest.approx(best)


def test_the_power_ranks_bags_best_that_are_left_out_of_the_machine():
    """In the folds of the library, with scikit-learn's machine."""
    data = make_key_instance_bags(60, min_size=10, max_size=20, random_state=1)
    y, sign = data.y, np.where(data.y == 1, 1.0, -1.0)
    model = PPMMSVM(n_components=20, random_state=0).fit(data.bags, y)
    A = counts(data.bags, model)
    rows = StandardScaler().fit_transform(data.bags.instances)
    far = np.add.reduceat((rows**2).mean(axis=1), data.bags.offsets[:-1]) / data.bags.sizes
    fold, _ = dealt_folds(far, sign, 3)
    assert [np.bincount(fold[y == c]).tolist() for c in (0, 1)] == [[10, 10, 10]] * 2
    ranked = {}
    for p in (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0):
        K, scores = gram(A, A, p), np.zeros(60)
        for k in range(3):
            out, some = fold == k, fold != k
            machine = SVC(C=10.0, kernel="precomputed", tol=1e-9).fit(
                K[np.ix_(some, some)], y[some]
            )
            scores[out] = machine.decision_function(K[np.ix_(out, some)])
        ranked[p] = roc_auc_score(sign, scores)
    assert ranked[model.powers_[0]] == pytest.approx(max(ranked.values()), abs=1e-3)
    assert max(ranked.values()) > min(ranked.values()) + 0.05


def test_one_key_instance_among_thirty_is_seen():
    """What is rare in a bag needs a small power; the alignment is highest for large ones."""
    parts = [
        make_key_instance_bags(60, min_size=20, max_size=40, random_state=seed) for seed in (7, 8)
    ]
    data, new = parts
    model = PPMMSVM(random_state=0).fit(data.bags, data.y)
    aligned = PPMMSVM(power="aligned", random_state=0).fit(data.bags, data.y)
    found, other = (roc_auc_score(new.y, m.decision_function(new.bags)) for m in (model, aligned))
    assert found > 0.65
    assert found > other


def test_a_class_of_one_bag_has_the_power_of_the_alignment(toy):
    bags, y = toy
    few = [bags[k] for k in np.append(np.flatnonzero(y == 0), np.flatnonzero(y == 1)[0])]
    labels = np.arange(len(few)) == len(few) - 1
    powers = [
        PPMMSVM(n_components=8, power=how, random_state=0).fit(few, labels.astype(int)).powers_[0]
        for how in ("left_out", "aligned")
    ]
    assert powers[0] == powers[1]


def test_variances_have_a_bound(toy):
    bags, y = toy
    variance = np.concatenate(bags).var(axis=0)
    for least in (0.1, 0.5):
        model = PPMMSVM(n_components=60, min_variance=least, random_state=0).fit(bags, y)
        np.testing.assert_allclose(model.variances_.min(axis=0), least * variance)


def test_fewer_instances_than_components(toy):
    bags, y = toy
    model = PPMMSVM(n_components=10_000, random_state=0).fit(bags, y)
    assert len(model.means_) == len(np.concatenate(bags))


def test_seeds_make_other_mixtures(toy):
    bags, y = toy
    first, again, other = (
        PPMMSVM(n_components=5, random_state=seed).fit(bags, y).means_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(np.sort(first, axis=0), np.sort(other, axis=0))


def test_default_parameters_on_musk1(load_set):
    bags, y = scaled_bags(load_set("musk1"))
    train = np.arange(len(y)) % 4 > 0
    model = PPMMSVM(random_state=0).fit(bags[train], y[train])
    assert model.score(bags[~train], y[~train]) >= 0.65
