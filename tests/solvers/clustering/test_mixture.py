"""Mixtures of Gaussians: scikit-learn's steps, weights, bounds of variances."""

import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import bagwise.solvers.clustering._mixture as module
from bagwise.solvers import Mixture, solve_mixture

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(c, s, size=(40, 3)) for c, s in ((0, 1), (4, 0.5), (-3, 2))])
START = Mixture(X[[0, 50, 100]], np.ones((3, 3)), np.full(3, 1 / 3))


def test_posteriors_are_those_of_independent_features():
    mixture = Mixture(RNG.normal(size=(4, 3)), RNG.uniform(0.5, 2.0, (4, 3)), np.full(4, 0.25))
    p = np.array(
        [
            norm.pdf(X, mean, np.sqrt(variance)).prod(axis=1) / 4
            for mean, variance in zip(mixture.means, mixture.variances, strict=True)
        ]
    ).T
    np.testing.assert_allclose(mixture.posteriors(X), p / p.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(mixture.log_densities(X), np.log(p), rtol=1e-9)


@pytest.mark.parametrize(("n_steps", "n_rows"), [(1, 4096), (5, 7), (60, 4096)])
def test_steps_are_those_of_scikit_learn(n_steps, n_rows, monkeypatch):
    """However many rows are held at a time."""
    monkeypatch.setattr(module, "_ROWS", n_rows)
    peer = GaussianMixture(
        3, covariance_type="diag", tol=0.0, reg_covar=0.0, max_iter=n_steps,
        means_init=START.means, weights_init=START.shares, precisions_init=1.0 / START.variances,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(X)
    ours = solve_mixture(X, START, tol=0.0, max_iter=n_steps, min_variance=1e-300).mixture
    np.testing.assert_allclose(ours.means, peer.means_, rtol=1e-7)
    np.testing.assert_allclose(ours.variances, peer.covariances_, rtol=1e-7)
    np.testing.assert_allclose(ours.shares, peer.weights_, rtol=1e-7)


def test_a_weight_is_a_repetition():
    weight = np.arange(len(X)) % 3
    weighted = solve_mixture(X, START, weight=weight)
    repeated = solve_mixture(np.repeat(X, weight, axis=0), START)
    np.testing.assert_allclose(weighted.x, repeated.x, atol=1e-9)
    assert weighted.objective == pytest.approx(repeated.objective)


def test_no_step_raises_the_objective_and_no_variance_is_below_the_bound():
    """Thirty components for forty rows would shrink to single ones."""
    start = Mixture(X[:30], np.ones((30, 3)), np.full(30, 1 / 30))
    result = solve_mixture(X[:40], start, min_variance=0.05, tol=0.0, max_iter=50)
    assert (np.diff(result.history) <= 1e-12).all()
    assert result.mixture.variances.min() == 0.05
    assert result.mixture.shares.sum() == pytest.approx(1.0)


def test_a_component_without_rows_stays():
    start = Mixture(np.r_[X[:2], [[1e3] * 3]], np.ones((3, 3)), np.full(3, 1 / 3))
    result = solve_mixture(X, start)
    assert result.mixture.shares[2] == 0.0
    np.testing.assert_array_equal(result.x[2], 1e3)
    assert np.isfinite(result.mixture.posteriors(X)).all()
