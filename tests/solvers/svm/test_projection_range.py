"""For which bounds projection constraints say something and can be met."""

import numpy as np
import pytest

from bagwise.solvers import DenseGram, projection_range


def bags(seed, n_bags=6, d=3):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_bags * 4, d)) * rng.uniform(0.5, 2.0, d)
    starts = 4 * np.arange(n_bags)
    return points, starts, starts + 4


def mean_squared_distances(points, starts, stops, w, *, centred):
    """Return, for each bag, the mean squared distance of its instances from a line along w."""
    out = []
    for start, stop in zip(starts, stops, strict=True):
        A = points[start:stop] - (points[start:stop].mean(axis=0) if centred else 0.0)
        out.append(((A - np.outer(A @ w, w)) ** 2).sum() / len(A))
    return np.array(out)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_range_holds_for_all_directions_of_the_plane(seed, centred):
    points, starts, stops = bags(seed, d=2)
    angles = np.linspace(0, np.pi, 4001)
    worst = [
        mean_squared_distances(
            points, starts, stops, np.array([np.cos(a), np.sin(a)]), centred=centred
        )
        for a in angles
    ]
    best, spreads = np.max(worst, axis=1).min(), []
    for start, stop in zip(starts, stops, strict=True):
        A = points[start:stop] - (points[start:stop].mean(axis=0) if centred else 0.0)
        spreads.append((A**2).sum())
    found = projection_range(
        DenseGram(points @ points.T), starts, stops, np.array(spreads), centred=centred
    )
    assert found.impossible <= best + 1e-9
    assert found.met >= best - 1e-4
    np.testing.assert_allclose(found.vacuous, max(spreads) / 4)
    assert found.impossible <= found.met <= found.vacuous


def test_one_bag_is_bounded_by_its_first_principal_component():
    points, *_ = bags(0, n_bags=1)
    A = points - points.mean(axis=0)
    values = np.linalg.eigvalsh(A.T @ A)
    found = projection_range(
        DenseGram(points @ points.T), np.array([0]), np.array([4]),
        np.array([values.sum()]), centred=True,
    )  # fmt: skip
    np.testing.assert_allclose(found.impossible, values[:-1].sum() / 4, rtol=1e-3)
    np.testing.assert_allclose(found.met, values[:-1].sum() / 4, rtol=1e-3)


def test_bags_without_spread_leave_nothing_to_ask_for():
    found = projection_range(
        DenseGram(np.ones((2, 2))), np.array([0, 1]), np.array([1, 2]), np.zeros(2), centred=True
    )
    assert found.vacuous == 0.0
