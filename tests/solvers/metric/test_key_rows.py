"""Key rows beside all choices, and the objective beside its definition."""

from itertools import product

import numpy as np
import pytest

from bagwise.solvers import Status, solve_key_rows


def made(seed, n_bags=7, n_features=3):
    """Return rows, offsets, which bags are positive, and weights."""
    rng = np.random.default_rng(seed)
    offsets = np.r_[0, np.cumsum(rng.integers(1, 4, n_bags))]
    is_positive = np.arange(n_bags) % 2 == 1
    return rng.normal(size=(offsets[-1], n_features)), offsets, is_positive, rng.uniform(1, 3, 7)


def scatter(rows, weight):
    """Return the weighted sum of squared distances from the mean."""
    return float(weight @ ((rows - np.average(rows, axis=0, weights=weight)) ** 2).sum(axis=1))


def value(rows, offsets, weight, chosen):
    """Return the objective by its definition."""
    is_key = np.isin(np.arange(len(rows)), chosen)
    spread = np.repeat(weight, np.diff(offsets))
    return scatter(rows[is_key], spread[is_key]) + scatter(rows[~is_key], spread[~is_key])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("method", ["exact", "lloyd"])
def test_no_bag_can_do_better_and_the_objective_is_as_defined(seed, method):
    rows, offsets, is_positive, weight = made(seed)
    result = solve_key_rows(rows, offsets, is_positive, sample_weight=weight, method=method)
    assert result.status == Status.CONVERGED
    assert result.objective == pytest.approx(value(rows, offsets, weight, result.chosen))
    assert (np.diff(result.history) <= 0).all()
    own = [range(offsets[i], offsets[i + 1]) for i in np.flatnonzero(is_positive)]
    assert all(row in bag for row, bag in zip(result.chosen, own, strict=True))
    every = [value(rows, offsets, weight, choice) for choice in product(*own)]
    assert min(every) - 1e-9 <= result.objective <= max(every)
    if method == "exact":
        for k, bag in enumerate(own):
            for row in bag:
                other = result.chosen.copy()
                other[k] = row
                assert value(rows, offsets, weight, other) >= result.objective - 1e-9


def test_starts_that_are_many_find_the_best_of_all_choices():
    rows, offsets, is_positive, weight = made(3)
    rng = np.random.default_rng(0)
    found = min(
        solve_key_rows(
            rows, offsets, is_positive, sample_weight=weight, start="random", rng=rng
        ).objective
        for _ in range(50)
    )
    own = [range(offsets[i], offsets[i + 1]) for i in np.flatnonzero(is_positive)]
    assert found == pytest.approx(min(value(rows, offsets, weight, c) for c in product(*own)))


def test_rows_by_passes_and_rows_far_from_zero_give_the_same_choice():
    rows, offsets, is_positive, weight = made(1)
    whole = solve_key_rows(rows, offsets, is_positive, sample_weight=weight)

    def walk():
        for i in range(0, 7, 2):
            stop = min(i + 2, 7)
            yield slice(i, stop), rows[offsets[i] : offsets[stop]]

    parts = solve_key_rows(walk, offsets, is_positive, sample_weight=weight, n_features=3)
    moved = solve_key_rows(rows + 100.0, offsets, is_positive, sample_weight=weight)
    np.testing.assert_array_equal(parts.chosen, whole.chosen)
    np.testing.assert_array_equal(moved.chosen, whole.chosen)
    assert parts.objective == pytest.approx(whole.objective)
    assert moved.objective == pytest.approx(whole.objective)


def test_weights_are_repetitions():
    rows, offsets, is_positive, _ = made(2)
    weight = np.array([1.0, 2.0, 3.0, 1.0, 1.0, 2.0, 1.0])
    weighted = solve_key_rows(rows, offsets, is_positive, sample_weight=weight)
    bags = [rows[offsets[i] : offsets[i + 1]] for i in np.repeat(np.arange(7), weight.astype(int))]
    repeated = np.r_[0, np.cumsum([len(bag) for bag in bags])]
    again = is_positive.repeat(weight.astype(int))
    chosen = np.repeat(weighted.chosen - offsets[:-1][is_positive], weight[is_positive].astype(int))
    assert value(
        np.vstack(bags), repeated, np.ones(len(bags)), repeated[:-1][again] + chosen
    ) == pytest.approx(weighted.objective)


def test_what_cannot_be_chosen_is_refused():
    rows, offsets, is_positive, _ = made(0)
    with pytest.raises(ValueError, match="needs a positive bag"):
        solve_key_rows(rows, offsets, np.zeros(7, bool))
    with pytest.raises(ValueError, match="a row that is not chosen"):
        solve_key_rows(rows[:3], np.arange(4), np.ones(3, bool))
    with pytest.raises(ValueError, match="needs n_features"):
        solve_key_rows(list, offsets, is_positive)
    with pytest.raises(ValueError, match="sample_weight must be positive"):
        solve_key_rows(rows, offsets, is_positive, sample_weight=np.zeros(7))
    with pytest.raises(ValueError, match="rows"):
        solve_key_rows(rows[:-1], offsets, is_positive)
