"""DD-SVM: prototypes are maxima of diverse density; vectors and machine as others compute them."""

import numpy as np
import pytest
from sklearn.svm import SVC

from bagwise.embedding import DDSVM
from bagwise.embedding import _dd_svm as module
from bagwise.testing import make_toy_bags
from svm.naive import scaled_bags


@pytest.fixture(scope="module")
def toy():
    return make_toy_bags(24, kind="close", max_size=5)


def log_density(bags, sign, h, s):
    """Return the logarithm of the noisy or density, bag by bag."""
    total = 0.0
    for bag, side in zip(bags, sign, strict=True):
        p = np.exp(-(((bag - h) * s) ** 2).sum(axis=1))
        missed = np.prod(1.0 - p)
        total += np.log(1.0 - missed) if side > 0 else np.log(missed)
    return total


def vectors(bags, model):
    """Return the distances of bags from prototypes, one pair at a time."""
    return np.array(
        [
            [
                np.sqrt((((bag - h) * s) ** 2).sum(axis=1)).min()
                for h, s in zip(model.prototypes_, model.scales_, strict=True)
            ]
            for bag in bags
        ]
    )


def test_prototypes_are_maxima_of_the_density_of_either_class(monkeypatch, toy):
    bags, y = toy
    sign = np.where(y == 1, 1.0, -1.0)
    monkeypatch.setattr(module, "_TOL", 1e-6)
    monkeypatch.setattr(module, "_MOST_STEPS", 500)
    model = DDSVM(n_candidates=10).fit(bags, y)
    assert set(model.prototype_signs_) == {-1.0, 1.0}
    rng = np.random.default_rng(0)
    deviation = np.concatenate(bags).std(axis=0)
    for side in (1.0, -1.0):
        values = []
        for k in np.flatnonzero(model.prototype_signs_ == side):
            h, s = model.prototypes_[k], model.scales_[k]
            values.append(log_density(bags, side * sign, h, s))
            for _ in range(20):  # no step nearby is much better
                near = h + 0.02 * deviation * rng.normal(size=len(h))
                scale = s * np.exp(0.02 * rng.normal(size=len(s)))
                assert log_density(bags, side * sign, near, scale) <= values[-1] + 1e-3
        assert values == sorted(values, reverse=True)


def test_is_the_machine_of_scikit_learn_on_distances(toy):
    bags, y = toy
    new = make_toy_bags(10, kind="close", random_state=1)[0]
    model = DDSVM(20.0, gamma=0.7, n_candidates=10).fit(bags, y)
    rows, new_rows = vectors(bags, model), vectors(new, model)
    units = rows.std(axis=0) * np.sqrt(rows.shape[1])
    np.testing.assert_allclose(model.units_, units, rtol=1e-6)
    peer = SVC(C=20.0, gamma=0.7, tol=1e-9).fit(rows / units, y)
    expected = peer.decision_function(new_rows / units)
    np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-5)
    np.testing.assert_array_equal(model.support_, np.sort(peer.support_))
    assert model.result_.relative_gap <= 1e-6


def test_low_maxima_and_copies_are_left_out(monkeypatch, toy):
    """Of four maxima one is low, and two of the others are alike."""
    bags, y = toy
    d = bags[0].shape[1]
    first = np.r_[np.full(d, 2.0), np.full(d, 0.5)]
    other = first.copy()
    other[:d] *= -1.0
    ends = [(other, 3.0), (first * 1.01, 2.0), (first, 1.0), (first * 3.0, 11.0)]

    class Ended:
        def __init__(self, x, objective):
            self.point, self.scale, self.objective = x[:d], -x[d:], objective

    monkeypatch.setattr(module, "maximize_density", lambda *_, **__: [Ended(*end) for end in ends])
    model = DDSVM().fit(bags, y)
    X = np.concatenate(bags)
    kept = np.array([first, other])
    points = kept[:, :d] * X.std(axis=0) + X.mean(axis=0)
    np.testing.assert_allclose(model.prototypes_, np.concatenate([points, points]))
    np.testing.assert_allclose(model.scales_, np.tile(kept[:, d:] / X.std(axis=0), (2, 1)))
    np.testing.assert_array_equal(model.prototype_signs_, [1.0, 1.0, -1.0, -1.0])


def test_each_class_has_prototypes_of_its_own():
    bags, y = make_toy_bags(24, n_classes=3)
    model = DDSVM(n_candidates=4).fit(bags, y)
    for k in range(3):
        alone = DDSVM(n_candidates=4).fit(bags, (y == k).astype(int))
        own = model.prototype_outputs_ == k
        np.testing.assert_allclose(model.prototypes_[own], alone.prototypes_)
        np.testing.assert_allclose(
            model.decision_function(bags)[:, k], alone.decision_function(bags), atol=1e-9
        )


def test_default_parameters_on_musk1(load_set):
    bags, y = scaled_bags(load_set("musk1"))
    train = np.arange(len(y)) % 4 > 0
    model = DDSVM(n_candidates=10).fit(bags[train], y[train])
    assert model.score(bags[~train], y[~train]) >= 0.7
