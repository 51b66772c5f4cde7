"""The SVM with a cone beside other solvers, closed forms, and in its limits."""

import numpy as np
import pytest

from bagwise.solvers import (
    FeatureRows,
    Status,
    solve_cone_svm,
    solve_cone_svm_by_program,
    solve_svm_dual,
)


def problem(seed, *, C=1.0, price=0.3, n_contrasts=5):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, 8))
    points[:12] += 0.5
    sign = np.where(np.arange(40) < 12, 1.0, -1.0)
    contrasts = np.zeros((n_contrasts, 60))
    for k in range(n_contrasts):
        inside = slice(40 + 4 * k, 44 + 4 * k)
        part = rng.normal(size=4)
        part -= part.mean()
        contrasts[k, inside] = part / np.linalg.norm(part)
    radius = rng.uniform(0.2, 1.2, n_contrasts)
    cost = np.full(40, C)
    return points, (np.arange(40), sign, cost, contrasts, radius, np.full(n_contrasts, price * C))


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("price", [0.03, 0.3, 3.0])
def test_an_interior_point_method_finds_the_same(C, price):
    points, parts = problem(int(10 * price), C=C, price=price)
    gram = points @ points.T
    ours, theirs = solve_cone_svm(gram, *parts), solve_cone_svm_by_program(gram, *parts)
    assert ours.converged
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-5)
    assert ours.objective <= theirs.objective * (1 + 1e-9)
    assert theirs.lower_bound <= ours.objective * (1 + 1e-9)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_without_contrasts_it_is_an_ordinary_machine(C):
    points, (index, sign, cost, *_) = problem(0, C=C)
    gram = points @ points.T
    ours = solve_cone_svm(gram, index, sign, cost, np.zeros((0, 60)), [], [])
    plain = solve_svm_dual(gram[:40, :40], sign, cost)
    np.testing.assert_allclose(ours.objective, plain.objective, rtol=1e-9)
    np.testing.assert_allclose(ours.projections[:40] + ours.intercept, plain.decision, atol=1e-6)


def test_without_radius_a_contrast_is_a_half_space():
    # e = 0 and a high price: <w, g> >= 0, which the machine of -g violates.
    points = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    sign, cost = [1.0, -1.0], [10.0, 10.0]
    for g, w in ((1.0, 1.0), (-1.0, 0.0)):
        result = solve_cone_svm(points @ points.T, [0, 1], sign, cost, [[g, 0, 0]], 0.0, 1e3)
        np.testing.assert_allclose(result.norm, w, atol=1e-6)


def test_a_direction_that_is_asked_for_and_useless_is_bought_up_to_the_price():
    # min w1^2/2 + w2^2/2 + 2 C (1 - w1)_+ + P (e |w| - w2)_+: with e = 1 the shortfall is 0 only
    # at w1 = 0; the optimum over w = r (cos t, sin t) is found on a grid.
    points = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    price, C = 0.4, 1.0
    result = solve_cone_svm(
        points @ points.T, [0, 1], [1.0, -1.0], [C, C], [[0, 0, 1.0]], 1.0, price
    )
    r, t = np.meshgrid(np.linspace(0.0, 2.0, 2001), np.linspace(0.0, np.pi / 2, 2001))
    w1, w2 = r * np.cos(t), r * np.sin(t)
    values = 0.5 * r**2 + 2 * C * np.maximum(1 - w1, 0) + price * np.maximum(r - w2, 0)
    assert values.min() * (1 - 1e-4) <= result.objective <= values.min()
    assert result.projections[2] > 0.1


def test_weights_vanish_where_no_constraint_can_be_met():
    points, (index, sign, cost, contrasts, *_) = problem(2)
    result = solve_cone_svm(points @ points.T, index, sign, cost, contrasts, 10.0, 100.0)
    assert result.norm == 0.0
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.objective, 24.0)  # both signs at 0: twice the rarer one


def test_features_and_their_inner_products_are_the_same_points():
    points, parts = problem(3, C=10.0)
    by_gram = solve_cone_svm(points @ points.T, *parts)
    by_rows = solve_cone_svm(FeatureRows(points), *parts)
    np.testing.assert_allclose(by_rows.objective, by_gram.objective, rtol=1e-9)
    weights = points.T @ by_rows.coef
    np.testing.assert_allclose(np.linalg.norm(weights), by_rows.norm, rtol=1e-9)
    np.testing.assert_allclose(points @ weights, by_rows.projections, atol=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contrasts": np.zeros((1, 3))}, "one column for each of the 60 points"),
        ({"radius": -1.0}, "must not be negative"),
        ({"sign": np.ones(40)}, "both of them"),
        ({"price": np.nan}, "finite"),
    ],
)
def test_bad_input_is_refused(changes, message):
    points, parts = problem(0)
    names = ("index", "sign", "cost", "contrasts", "radius", "price")
    arguments = dict(zip(names, parts, strict=True)) | changes
    with pytest.raises(ValueError, match=message):
        solve_cone_svm(points @ points.T, **arguments)
