"""k-medoids against all subsets of the points, and against every exchange of one medoid."""

import dataclasses
from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import bagwise.solvers.clustering._kmedoids as kmedoids
from bagwise import _threads
from bagwise._threads import Abandoned
from bagwise.solvers._result import Status
from bagwise.solvers.clustering._kmedoids import solve_k_medoids

METHODS = ["fasterpam", "alternate"]
INITS = ["random", "lab", "build"]


def _symmetric(values):
    upper = np.triu(values, 1)
    return upper + upper.T


def _points(n, seed, scale=1.0):
    points = np.random.default_rng(seed).normal(size=(n, 2)) * scale
    return cdist(points, points)


#: Functions of a number of points and a seed.
KINDS = {
    "euclidean": _points,
    "no metric": lambda n, seed: _symmetric(np.random.default_rng(seed).random((n, n))),
    "ties and zeros": lambda n, seed: _symmetric(
        np.random.default_rng(seed).integers(0, 3, (n, n)).astype(float)
    ),
    "float32": lambda n, seed: _points(n, seed).astype(np.float32),
    "duplicates": lambda n, seed: np.kron(_points(n, seed), np.ones((2, 2)))[:n, :n],
    "all zero": lambda n, seed: np.zeros((n, n)),
}

each_kind = pytest.mark.parametrize("kind", KINDS)
each_method = pytest.mark.parametrize("method", METHODS)


def _cost(D, medoids):
    return D[list(medoids)].min(axis=0).sum(dtype=np.float64)


def _assert_consistent(D, k, result):
    assert np.array_equal(result.medoids, np.unique(result.medoids))
    assert result.medoids.shape == (k,)
    assert result.objective == pytest.approx(_cost(D, result.medoids), rel=1e-12)
    assert np.array_equal(result.labels, D[result.medoids].argmin(axis=0))
    assert (np.diff(result.history) <= 0).all()
    assert result.history[-1] == pytest.approx(result.objective, rel=1e-12)
    assert result.objective == pytest.approx(result.objectives.min(), rel=1e-12)
    assert result.status is Status.CONVERGED
    assert result.residual == 0.0


@each_kind
@each_method
@pytest.mark.parametrize("init", INITS)
def test_never_below_the_best_subset(kind, method, init):
    for seed, (n, k) in enumerate(product((2, 5, 8), (1, 2, 4, 8))):
        if k > n:
            continue
        D = KINDS[kind](n, seed)
        best = min(_cost(D, subset) for subset in combinations(range(n), k))
        rng = np.random.default_rng(seed)
        result = solve_k_medoids(D, k, method=method, init=init, n_init=3, rng=rng)
        _assert_consistent(D, k, result)
        assert result.objective >= best * (1 - 1e-12)
        if k in (1, n):
            assert result.objective == pytest.approx(best, rel=1e-12)


@each_kind
def test_many_starts_find_the_best_subset(kind):
    for seed in range(4):
        D = KINDS[kind](9, seed)
        best = min(_cost(D, subset) for subset in combinations(range(9), 3))
        result = solve_k_medoids(D, 3, n_init=30)
        assert result.objective == pytest.approx(best, rel=1e-12)


@each_kind
@pytest.mark.parametrize("init", INITS)
def test_no_exchange_is_left(kind, init):
    for seed, k in product(range(3), (2, 5)):
        D = KINDS[kind](40, seed)
        result = solve_k_medoids(D, k, init=init, n_init=1, rng=np.random.default_rng(seed))
        _assert_consistent(D, k, result)
        for slot, x in product(range(k), np.setdiff1d(np.arange(40), result.medoids)):
            other = result.medoids.copy()
            other[slot] = x
            assert _cost(D, other) >= result.objective * (1 - 1e-12)


def test_exchanges_are_found_where_sums_would_cancel():
    """Clusters 1e12 times farther apart than they are wide: losses drown what is to be gained."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        parts = [_points(12, seed + 10 * c) * 1e-12 for c in range(3)]
        D = 1.0 + _symmetric(rng.random((36, 36)))
        for c, part in enumerate(parts):
            D[12 * c : 12 * (c + 1), 12 * c : 12 * (c + 1)] = part
        expected = [12 * c + part.sum(axis=0).argmin() for c, part in enumerate(parts)]
        result = solve_k_medoids(D, 3, n_init=1, rng=rng)
        assert result.medoids.tolist() == expected


@each_kind
def test_alternation_ends_at_its_fixed_point(kind):
    for seed in range(4):
        D = KINDS[kind](40, seed)
        rng = np.random.default_rng(seed)
        result = solve_k_medoids(D, 4, method="alternate", n_init=1, rng=rng)
        _assert_consistent(D, 4, result)
        labels = result.labels.copy()
        labels[result.medoids] = np.arange(4)
        for c, medoid in enumerate(result.medoids):
            members = np.flatnonzero(labels == c)
            totals = D[np.ix_(members, members)].sum(axis=1, dtype=np.float64)
            own = totals[members == medoid][0]
            assert own <= totals.min() + 1e-9 * max(1.0, own)


def test_build_takes_the_best_medoid_each_time():
    D = _points(25, 3)
    chosen = []
    for _ in range(4):
        chosen.append(min(range(25), key=lambda x: (_cost(D, [*chosen, x]), x)))
    start = kmedoids._starts(D, 4, "build", 10, np.random.default_rng(0))
    assert [first.medoids.tolist() for first in start] == [chosen]


def test_lab_starts_are_better_than_random_ones():
    D = _points(300, 0)
    firsts = {
        init: [
            _cost(D, start.medoids)
            for start in kmedoids._starts(D, 10, init, 20, np.random.default_rng(0))
        ]
        for init in ("lab", "random")
    }
    assert np.mean(firsts["lab"]) < np.mean(firsts["random"])


@each_method
def test_random_numbers_decide_and_threads_do_not(method):
    D = _points(200, 1)
    rngs = [np.random.default_rng(seed) for seed in (7, 7, 7, 8)]
    threads = [1, 1, 3, 1]
    results = [
        solve_k_medoids(D, 9, method=method, n_init=6, rng=rng, n_threads=n)
        for rng, n in zip(rngs, threads, strict=True)
    ]
    for other in results[1:3]:
        assert np.array_equal(other.medoids, results[0].medoids)
        assert np.array_equal(other.objectives, results[0].objectives)
        assert np.array_equal(other.history, results[0].history)
    assert not np.array_equal(results[3].objectives, results[0].objectives)


@each_method
def test_best_of_the_starts_is_kept(method):
    D = _points(120, 2)
    result = solve_k_medoids(D, 8, method=method, n_init=12)
    assert result.objectives.shape == (12,)
    assert result.objective == result.objectives.min() < result.objectives.max()


def test_ties_go_to_the_lowest_index():
    D = 1.0 - np.eye(6)
    for method in METHODS:
        assert solve_k_medoids(D, 1, method=method).medoids.tolist() == [0]
        result = solve_k_medoids(D, 3, method=method, init=[4, 2, 5])
        assert result.medoids.tolist() == [2, 4, 5]
        assert result.labels.tolist() == [0, 0, 0, 0, 1, 2]


def test_the_order_of_given_medoids_does_not_matter():
    """Distances that are small whole numbers tie often, and their sums are exact."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        D = np.triu(rng.integers(1, 4, size=(12, 12)), 1).astype(float)
        D += D.T
        start = rng.permutation(12)[:3]
        ends = [
            solve_k_medoids(D, 3, init=list(order), max_iter=1).medoids.tolist()
            for order in permutations(start)
        ]
        assert ends == [ends[0]] * 6


def test_given_start_at_an_optimum_stays():
    D = _points(60, 4)
    best = solve_k_medoids(D, 4, n_init=5)
    for method in METHODS:
        again = solve_k_medoids(D, 4, method=method, init=best.medoids[::-1])
        assert np.array_equal(again.medoids, best.medoids)
        assert again.objective == best.objective
        assert len(again.objectives) == 1


@each_method
def test_max_iter(method):
    D = _points(300, 5)
    result = solve_k_medoids(D, 12, method=method, n_init=1, max_iter=1)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 1
    assert np.isnan(result.residual)
    assert result.objective == pytest.approx(_cost(D, result.medoids), rel=1e-12)
    longer = solve_k_medoids(D, 12, method=method, n_init=1)
    assert longer.status is Status.CONVERGED
    assert longer.objective < result.objective


@each_method
def test_small_slices_change_nothing(method, monkeypatch):
    D = _points(80, 6)
    expected = solve_k_medoids(D, 5, method=method, n_init=2)
    monkeypatch.setattr(_threads, "_SLICE_SECONDS", 1e-7)
    got = solve_k_medoids(D, 5, method=method, n_init=2)
    assert np.array_equal(got.medoids, expected.medoids)
    assert np.array_equal(got.history, expected.history)


@each_method
def test_can_be_cut_between_slices(method, monkeypatch):
    calls = []

    def cut():
        calls.append(0)
        if len(calls) > 30:
            raise Abandoned

    monkeypatch.setattr(_threads, "_SLICE_SECONDS", 1e-7)
    for module in (_threads, kmedoids):
        monkeypatch.setattr(module, "checkpoint", cut)
    with pytest.raises(Abandoned):
        solve_k_medoids(_points(80, 6), 5, method=method, check_input=False)


def test_input_is_neither_copied_nor_changed():
    D = _points(30, 7)
    D.setflags(write=False)
    before = D.copy()
    solve_k_medoids(D, 3)
    assert np.array_equal(D, before)
    assert kmedoids._checked(D, check_input=True) is D
    single = D.astype(np.float32)
    assert kmedoids._checked(single, check_input=True) is single
    whole = np.asfortranarray(np.rint(10 * D).astype(np.int32))
    result = solve_k_medoids(whole, 3)
    assert result.objective == _cost(whole, result.medoids)


def test_result_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        solve_k_medoids(np.zeros((2, 2)), 1).medoids = None


GOOD = _points(6, 0)


def _with(value):
    D = GOOD.copy()
    D[4, 2] = value
    return D


@pytest.mark.parametrize(
    ("D", "k", "options", "message"),
    [
        (GOOD, 7, {}, "between 1 and the number of points, 6. Got 7"),
        (GOOD, 0, {}, "Got 0"),
        (GOOD[:4], 2, {}, r"square matrix of distances. Got shape \(4, 6\)"),
        (np.empty((0, 0)), 1, {}, "square matrix"),
        (_with(np.nan), 2, {}, "finite and not negative"),
        (_with(np.inf), 2, {}, "finite and not negative"),
        (_with(-1.0), 2, {}, "finite and not negative"),
        (_with(9.0), 2, {}, "symmetric distances"),
        (GOOD, 2, {"method": "pam"}, "method .* Got 'pam'"),
        (GOOD, 2, {"init": "best"}, "init .* Got 'best'"),
        (GOOD, 2, {"init": [0, 0]}, "n_clusters=2 different numbers"),
        (GOOD, 2, {"init": [0, 6]}, "from 0 to 5"),
        (GOOD, 2, {"init": [0.0, 1.0]}, "n_clusters=2 different numbers"),
        (GOOD, 2, {"init": [0, 1, 2]}, "n_clusters=2 different numbers"),
        (GOOD, 2, {"n_init": 0}, "n_init and max_iter of 1 at least"),
        (GOOD, 2, {"max_iter": 0}, "n_init and max_iter of 1 at least"),
    ],
)
def test_bad_input_is_refused(D, k, options, message):
    with pytest.raises(ValueError, match=message):
        solve_k_medoids(D, k, **options)
