"""Diverse density: values by loops, gradients by differences, and what the searches come to."""

import numpy as np
import pytest

from bagwise.solvers import (
    Density,
    log_odds,
    maximize_density,
    maximize_density_by_rounds,
)

OFFSETS = np.array([0, 3, 8, 12, 15, 20, 30])
SIGN = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
CAUSES = ["noisy_or", "most_likely"]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[[1, 10, 17]] = [2.0, 2.0, 0.0] + 0.1 * rng.normal(size=(3, 3))
    return X


def by_loops(X, weight, cause, h, s):
    total = 0.0
    for i, sign in enumerate(SIGN):
        p = np.exp(-((s**2) * (X[OFFSETS[i] : OFFSETS[i + 1]] - h) ** 2).sum(axis=1))
        P = 1.0 - np.prod(1.0 - p) if cause == "noisy_or" else p.max()
        total -= weight[i] * np.log(P if sign > 0 else 1.0 - P)
    return total


@pytest.mark.parametrize("cause", CAUSES)
def test_values_and_gradients(rows, cause):
    rng = np.random.default_rng(1)
    weight = rng.random(6) + 0.5
    density = Density(rows, OFFSETS, SIGN, weight, cause)
    concepts = np.hstack([rng.normal(size=(4, 3)), rng.random((4, 3)) + 0.2])
    every = np.arange(4)
    expected = [by_loops(rows, weight, cause, c[:3], c[3:]) for c in concepts]
    np.testing.assert_allclose(density.values(concepts, every), expected, rtol=1e-9)
    slopes = density.gradients(every)
    for k in range(6):
        step = 1e-5 * np.eye(6)[k]
        ahead, behind = (density.values(concepts + sign * step, every) for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, k], (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-6)


def test_far_from_all_instances_there_is_a_slope(rows):
    """Where probabilities are below the smallest number, their logarithms are not."""
    density = Density(rows, OFFSETS, SIGN)
    far = np.r_[100.0, 0.0, 0.0, 1.0, 1.0, 1.0][None]
    value = density.values(far, np.array([0]))[0]
    slope = density.gradients(np.array([0]))[0]
    q = ((rows - far[0, :3]) ** 2).sum(axis=1)
    least = [q[OFFSETS[i] : OFFSETS[i + 1]].min() for i in (0, 2, 4)]
    assert value == pytest.approx(sum(least), rel=1e-3)
    step = 1e-4 * np.eye(6)[0]
    ahead, behind = (density.values(far + k * step, np.array([0]))[0] for k in (1, -1))
    assert slope[0] == pytest.approx((ahead - behind) / 2e-4, rel=1e-5)


@pytest.mark.parametrize("block", [1.0, 1e9])
def test_blocks_of_starts_change_nothing(rows, block, monkeypatch):
    monkeypatch.setattr("bagwise.solvers.density._diverse_density._BLOCK", block)
    density = Density(rows, OFFSETS, SIGN)
    starts = np.hstack([rows, np.ones_like(rows)])
    values = density.values(starts, np.arange(30))
    alone = [density.values(start[None], np.array([0]))[0] for start in starts]
    np.testing.assert_allclose(values, alone, rtol=1e-12)


@pytest.mark.parametrize("cause", CAUSES)
def test_searches_end_below_the_planted_concept(rows, cause):
    density = Density(rows, OFFSETS, SIGN, cause=cause)
    starts = np.hstack([rows[:3], np.full((3, 3), 0.3)])
    searches = [maximize_density]
    searches += [maximize_density_by_rounds] if cause == "most_likely" else []
    for search in searches:
        results = search(density, starts)
        best = min(results, key=lambda result: result.objective)
        assert best.objective < by_loops(rows, np.ones(6), cause, np.array([2.0, 2.0, 0.0]), 1.0)
        for result in results:
            assert (np.diff(result.history) <= 1e-12).all()
            value = density.values(result.x[None], np.array([0]))[0]
            assert result.objective == pytest.approx(value)


def test_rounds_are_minima_for_the_instances_that_they_chose(rows):
    """Nothing near a converged concept is better for the nearest instances."""
    density = Density(rows, OFFSETS, SIGN, cause="most_likely")
    start = np.hstack([rows[1], np.full(3, 0.3)])[None]
    result = maximize_density_by_rounds(density, start, tol=1e-9)[0]
    assert result.converged
    q = density.distances(result.x[None])[0]
    nearest = [OFFSETS[i] + q[OFFSETS[i] : OFFSETS[i + 1]].argmin() for i in range(6)]
    alone = Density(rows[nearest], np.arange(7), SIGN)
    alone.values(result.x[None], np.array([0]))
    assert np.abs(alone.gradients(np.array([0]))).max() < 1e-3


def test_rounds_need_the_most_likely_cause(rows):
    with pytest.raises(ValueError, match="needs a density whose cause is 'most_likely'"):
        maximize_density_by_rounds(Density(rows, OFFSETS, SIGN), np.ones((1, 6)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("sign", np.zeros(6)), ("weight", -1.0), ("weight", np.ones(5)), ("cause", "both"),
     ("rows", np.full((30, 3), np.nan)), ("rows", np.ones((29, 3)))],
)  # fmt: skip
def test_bad_bags_are_refused(rows, name, value):
    arguments = {"rows": rows, "offsets": OFFSETS, "sign": SIGN} | {name: value}
    with pytest.raises(ValueError, match=f"Density.*{name}|{name}.*Density"):
        Density(**arguments)


def test_log_odds():
    q = np.array([1e-3, 0.7, 30.0, 500.0])
    p = np.exp(-q[:3])
    np.testing.assert_allclose(log_odds(q)[:3], np.log(p / (1.0 - p)), rtol=1e-9)
    assert log_odds(np.array([500.0, 1e6])).tolist() == [-500.0, -1e6]
    assert np.isfinite(log_odds(np.zeros(1))).all()


def test_rounds_have_not_converged_if_their_last_steps_have_not(rows):
    density = Density(rows, OFFSETS, SIGN, cause="most_likely")
    start = np.hstack([rows[1], np.full(3, 0.3)])[None]
    cut = maximize_density_by_rounds(density, start, tol=1e-2, inner_max_iter=1)[0]
    assert not cut.converged
