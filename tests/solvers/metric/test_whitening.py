"""Bases, Gram matrices over chunks, and the metric of labels: against numpy's pseudo-inverse."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise import Bags
from bagwise.bags import BagSource
from bagwise.solvers import FeaturePasses, learn_cluster_metric, row_space, whitening


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(40, 7)) * np.arange(1, 8)


def test_rows_become_orthonormal(rows):
    U = whitening(rows.T @ rows).whiten(rows)
    np.testing.assert_allclose(U.T @ U, np.eye(7), atol=1e-12)
    np.testing.assert_allclose(U @ U.T, rows @ np.linalg.pinv(rows), atol=1e-12)


def test_directions_without_rows_are_left_out(rows):
    short = np.hstack([rows, rows[:, :3] @ np.ones((3, 2))])
    basis = whitening(short.T @ short)
    assert basis.n_components == 7
    U = basis.whiten(short)
    np.testing.assert_allclose(U @ U.T, rows @ np.linalg.pinv(rows), atol=1e-9)


def test_the_longest_directions_are_kept(rows):
    U = whitening(rows.T @ rows, n_components=3).whiten(rows)
    left = np.linalg.svd(rows, full_matrices=False)[0][:, :3]
    np.testing.assert_allclose(U @ U.T, left @ left.T, atol=1e-12)


@pytest.mark.parametrize("n_components", [None, 7])
def test_a_ridge_shortens(rows, n_components):
    shift = 0.3 * (rows**2).sum() / 7
    U = whitening(rows.T @ rows, n_components=n_components, shift=shift).whiten(rows)
    expected = rows @ np.linalg.solve(rows.T @ rows + shift * np.eye(7), rows.T)
    np.testing.assert_allclose(U @ U.T, expected, atol=1e-12)


def test_nothing_becomes_nothing():
    U = whitening(np.zeros((3, 3))).whiten(np.zeros((4, 3)))
    assert np.isfinite(U).all()
    assert not U.any()


@pytest.mark.parametrize("kind", ["dense", "wide", "sparse", "float32"])
def test_gram_of_chosen_rows(kind, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 30))
    if kind == "wide":
        monkeypatch.setattr("bagwise.solvers.metric._feature_passes._WIDE", 8)
        monkeypatch.setattr("bagwise.solvers.metric._feature_passes._TILE", 7)
        monkeypatch.setattr("bagwise.solvers.metric._feature_passes._ROWS", 50)
    if kind == "float32":
        X = X.astype(np.float32)
    weight = rng.random(100) + 0.5
    bags = Bags(sp.csr_array(X) if kind == "sparse" else X, np.arange(0, 301, 3))
    passes = FeaturePasses(BagSource(bags), weight)
    chosen = rng.random(300) < 0.5
    w = np.repeat(weight, 3)
    expected = (X[chosen] * w[chosen, None]).T @ X[chosen]
    gram = passes.gram(chosen)
    assert gram.dtype == X.dtype
    np.testing.assert_allclose(gram, expected, rtol=1e-4 if kind == "float32" else 1e-12, atol=1e-4)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(passes.mean(), w @ X / w.sum(), atol=1e-6)


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_metric_is_least_squares(rows, few, ridge):
    """Rows without a label are subtracted if they are few; else those with one are added up."""
    labels = np.arange(40) % 3
    labels[: 10 if few else 28] = -1
    bags = Bags(rows, np.arange(0, 41, 2))
    weight = np.linspace(0.5, 2.0, 20)
    passes = FeaturePasses(BagSource(bags), weight)
    basis = whitening(passes.gram(), shift=100.0 * ridge)
    metric = learn_cluster_metric(passes, labels, 4, basis)
    np.testing.assert_array_equal(metric.used, [0, 1, 2])
    w = np.repeat(weight, 2)
    H = (labels[:, None] == np.arange(3)).astype(float)
    n_c = w @ H
    J = H * np.sqrt(n_c.sum() / n_c)
    named = labels >= 0
    G = (rows[named] * w[named, None]).T @ rows[named] + basis.shift * np.eye(7)
    L = np.linalg.solve(G, (rows[named] * w[named, None]).T @ J[named])
    np.testing.assert_allclose(metric.components, L.T, rtol=1e-8)
    means = (H * w[:, None]).T @ rows / n_c[:, None]
    np.testing.assert_allclose(metric.centroids, means, rtol=1e-12)
    np.testing.assert_allclose(metric.mapped, means @ L, rtol=1e-8)


def test_metric_of_fewer_rows_than_features_is_the_shortest():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 9))
    labels = np.r_[0, 1, 0, 1, np.full(8, -1)]
    passes = FeaturePasses(BagSource(Bags(X, np.arange(13))), np.ones(12))
    metric = learn_cluster_metric(passes, labels, 2, whitening(passes.gram()))
    J = np.eye(2)[labels[:4]] * np.sqrt(2.0)
    np.testing.assert_allclose(metric.components, (np.linalg.pinv(X[:4]) @ J).T, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_few_rows_of_many_features(sparse):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 20))
    X[5] = X[0] - X[1]
    rows = sp.csr_array(X) if sparse else X
    space = row_space(rows, rng.random(6) + 0.5)
    basis = space.lift(np.eye(5), rows)
    np.testing.assert_allclose(basis @ basis.T, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(space.coordinates @ basis, X, atol=1e-10)
