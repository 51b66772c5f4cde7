"""Labels of instances: against all assignments, scipy's assignments and the printed algorithm."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from bagwise.datasets import make_weak_label_bags
from bagwise.solvers import LabelLists, solve_label_assignments
from bagwise.solvers.metric._label_assignment_kernels import best_assignment


def ways(offsets, indicator):
    """Return every way to label a bag, for each bag: lists of labels of its rows."""
    out = []
    for bag, has in enumerate(indicator):
        n, names = offsets[bag + 1] - offsets[bag], np.flatnonzero(has)
        number = min(n, len(names))
        some = []
        for labels in product([-1, *names], repeat=n):
            used = [label for label in labels if label >= 0]
            if len(used) == number and len(set(used)) == number:
                some.append(labels)
        out.append(some)
    return out


def scatter(rows, labels):
    """Sum the squared distances from the means of labels."""
    means = [rows[labels == c] for c in np.unique(labels[labels >= 0])]
    return sum(((own - own.mean(axis=0)) ** 2).sum() for own in means)


def toy(seed, n_labels=3):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 6)
    offsets = np.r_[0, np.cumsum(sizes)]
    indicator = rng.random((6, n_labels)) < 0.6
    centers = 3.0 * rng.normal(size=(n_labels + 1, 2))
    rows = centers[rng.integers(0, n_labels + 1, offsets[-1])] + rng.normal(size=(offsets[-1], 2))
    return rows, offsets, indicator


@pytest.mark.parametrize("seed", range(40))
def test_best_assignment_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    m = n + int(rng.integers(0, 4))
    cost = rng.normal(size=(n, m)).round(1)  # with ties
    row_of = np.empty(m, np.int64)
    best_assignment(cost, row_of, np.empty((4, m + 1)))
    columns = np.flatnonzero(row_of >= 0)
    assert sorted(row_of[columns]) == list(range(n))
    expected = cost[linear_sum_assignment(cost)].sum()
    assert cost[row_of[columns], columns].sum() == pytest.approx(expected, abs=1e-12)


def test_most_toys_end_at_the_best_of_all_assignments():
    found = 0
    for seed in range(30):
        rows, offsets, indicator = toy(seed)
        lists = LabelLists.from_indicator(offsets, indicator)
        every = ways(offsets, indicator)
        best = min(scatter(rows, np.concatenate(choice)) for choice in product(*every))
        starts = ["means", *["random"] * 5]
        rng = np.random.default_rng(seed)
        ends = [
            solve_label_assignments(rows, lists, start=start, rng=rng).objective for start in starts
        ]
        assert min(ends) >= best - 1e-9
        found += min(ends) <= best + 1e-9
    assert found >= 27


@pytest.mark.parametrize("seed", range(5))
def test_no_bag_alone_can_do_better(seed):
    rows, offsets, indicator = toy(seed, n_labels=4)
    lists = LabelLists.from_indicator(offsets, indicator)
    result = solve_label_assignments(rows, lists)
    assert result.converged
    assert result.objective == pytest.approx(scatter(rows, result.labels))
    for bag, some in enumerate(ways(offsets, indicator)):
        for labels in some:
            other = result.labels.copy()
            other[offsets[bag] : offsets[bag + 1]] = labels
            assert scatter(rows, other) >= result.objective - 1e-9


def test_lloyd_is_the_printed_algorithm():
    rows, offsets, indicator = toy(7, n_labels=4)
    lists = LabelLists.from_indicator(offsets, indicator)
    start = solve_label_assignments(rows, lists, start="random", max_iter=0).labels
    labels = start.copy()
    for _ in range(100):
        before = labels.copy()
        means = [rows[before == c].sum(axis=0) / max(1, (before == c).sum()) for c in range(4)]
        for bag, has in enumerate(indicator):
            inside = slice(offsets[bag], offsets[bag + 1])
            names = np.flatnonzero(has)
            cost = ((rows[inside, None] - np.array(means)[names]) ** 2).sum(axis=2)
            row, column = linear_sum_assignment(cost)
            labels[inside] = -1
            labels[offsets[bag] + row] = names[column]
        if (labels == before).all():
            break
    result = solve_label_assignments(rows, lists, start=start, method="lloyd")
    np.testing.assert_array_equal(result.labels, labels)


def test_exact_steps_go_where_lloyd_is_stuck():
    """Each instance is half of the mean of its label: Lloyd keeps all as they are."""
    rows = np.array([[0.0], [1.0], [0.0], [1.0]])
    lists = LabelLists.from_indicator(np.array([0, 2, 4]), np.ones((2, 2)))
    start = np.array([0, 1, 1, 0])
    stuck = solve_label_assignments(rows, lists, start=start, method="lloyd")
    assert (stuck.converged, stuck.objective) == (True, 1.0)
    assert np.isnan(stuck.residual)  # a bag alone can lower the objective
    exact = solve_label_assignments(rows, lists, start=start)
    assert (exact.objective, exact.residual) == (0.0, 0.0)


def test_blocks_are_one_matrix():
    rows, offsets, indicator = toy(3)
    lists = LabelLists.from_indicator(offsets, indicator)
    whole = solve_label_assignments(rows, lists)

    def walk():
        return [
            (slice(0, 4), rows[: offsets[4]]), (slice(4, 6), rows[offsets[4] :])
        ]  # fmt: skip

    parts = solve_label_assignments(walk, lists, n_features=2)
    np.testing.assert_array_equal(parts.labels, whole.labels)
    np.testing.assert_array_equal(parts.sums, whole.sums)
    with pytest.raises(ValueError, match="n_features"):
        solve_label_assignments(walk, lists)


def test_a_weight_is_a_repetition_of_rows_that_move_together():
    rows, offsets, indicator = toy(5)
    lists = LabelLists.from_indicator(offsets, indicator)
    weight = np.array([1.0, 3.0, 1.0, 2.0, 1.0, 1.0])
    result = solve_label_assignments(rows, lists, sample_weight=weight)
    often = np.repeat(weight, np.diff(offsets)).astype(int)
    assert result.objective == pytest.approx(
        scatter(np.repeat(rows, often, axis=0), np.repeat(result.labels, often))
    )


def test_random_starts_are_allowed_and_differ():
    data = make_weak_label_bags(50, n_labels=8, random_state=0)
    lists = LabelLists.from_indicator(data.bags.offsets, data.y)
    rng = np.random.default_rng(0)
    starts = [
        solve_label_assignments(data.bags.instances, lists, start="random", max_iter=0, rng=rng)
        for _ in range(3)
    ]
    for result in starts:  # as a start they are checked
        solve_label_assignments(data.bags.instances, lists, start=result.labels, max_iter=0)
    assert len({result.labels.tobytes() for result in starts}) == 3


@pytest.mark.parametrize(
    "labels", [[0, 0, 1], [0, -1, 1], [2, 1, 0], [0, 1]], ids=["twice", "few", "other", "short"]
)
def test_a_start_that_the_lists_forbid_is_refused(labels):
    lists = LabelLists.from_indicator(np.array([0, 2, 3]), np.array([[1, 1, 0], [1, 1, 1]]))
    with pytest.raises(ValueError, match="start must"):
        solve_label_assignments(np.eye(3), lists, start=np.array(labels))


@pytest.mark.parametrize("name", ["method", "start"])
def test_words_that_mean_nothing_are_refused(name):
    lists = LabelLists.from_indicator(np.array([0, 1]), np.ones((1, 1)))
    with pytest.raises(ValueError, match=f"{name} of solve_label_assignments must be one of"):
        solve_label_assignments(np.eye(1), lists, **{name: "other"})


def test_bags_without_labels_bear_none():
    lists = LabelLists.from_indicator(np.array([0, 2, 3]), np.array([[0, 0], [1, 1]]))
    result = solve_label_assignments(np.eye(3), lists)
    assert (result.labels[:2] == -1).all()
    assert result.labels[2] >= 0
    assert result.objective == 0.0
