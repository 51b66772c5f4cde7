"""Distances between bags against scipy's distances between all pairs of instances."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, directed_hausdorff

import bagwise.kernels._distance_blocks as distance_blocks
from bagwise.kernels._distances import directed, hausdorff, nearest
from bagwise.kernels._metrics import InstanceMetric

LEARNED = np.random.default_rng(5).normal(size=(4, 2))


def _cosine(A, B):
    """Return scipy's distances; what is NaN there belongs to a row of zeros."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(cdist(A, B, "cosine"), nan=1.0)


METRICS = {
    "euclidean": (InstanceMetric("euclidean"), cdist),
    "sqeuclidean": (InstanceMetric("sqeuclidean"), lambda A, B: cdist(A, B, "sqeuclidean")),
    "cityblock": (InstanceMetric("cityblock"), lambda A, B: cdist(A, B, "cityblock")),
    "cosine": (InstanceMetric("cosine"), _cosine),
    "factor": (
        InstanceMetric("mahalanobis", factor=LEARNED),
        lambda A, B: cdist(A @ LEARNED, B @ LEARNED),
    ),
    "matrix": (
        InstanceMetric("mahalanobis", matrix=LEARNED @ LEARNED.T + np.eye(4)),
        lambda A, B: cdist(A, B, "mahalanobis", VI=LEARNED @ LEARNED.T + np.eye(4)),
    ),
    "sqmahalanobis": (
        InstanceMetric("sqmahalanobis", matrix=LEARNED @ LEARNED.T),
        lambda A, B: cdist(A @ LEARNED, B @ LEARNED, "sqeuclidean"),
    ),
    "callable": (
        InstanceMetric(lambda A, B: cdist(A, B, "chebyshev")),
        lambda A, B: cdist(A, B, "chebyshev"),
    ),
}
SIZES = [3, 1, 30, 2, 7, 1, 1, 16, 4]

each_metric = pytest.mark.parametrize("name", METRICS)


@pytest.fixture(params=[7, 512], ids=["small blocks", "real blocks"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(distance_blocks, "BLOCK", request.param)


def _bags(sizes, seed=0, d=4):
    """Return rows and bags in another order than the rows, with overlaps, and rows in no bag."""
    rng = np.random.default_rng(seed)
    stops = np.cumsum(sizes) + 2
    starts = stops - sizes
    order = rng.permutation(len(sizes))
    starts, stops = starts[order], stops[order]
    starts[0] = max(0, starts[0] - 2)
    return rng.normal(size=(int(np.sum(sizes)) + 5, d)), starts, stops


def _pairs(peer, X, starts, stops, Y, y_starts, y_stops, reduce):
    distances = peer(X, Y)
    return np.array(
        [
            [reduce(distances[a:b, c:d]) for c, d in zip(y_starts, y_stops, strict=True)]
            for a, b in zip(starts, stops, strict=True)
        ]
    )


HAUSDORFF = {
    "min": np.min,
    "max": lambda D: max(D.min(axis=0).max(), D.min(axis=1).max()),
    "average": lambda D: (D.min(axis=0).sum() + D.min(axis=1).sum()) / sum(D.shape),
}
DIRECTED = {
    "minmin": np.min,
    "meanmin": lambda D: D.min(axis=1).mean(),
    "maxmin": lambda D: D.min(axis=1).max(),
    "meanmin_back": lambda D: D.min(axis=0).mean(),
    "maxmin_back": lambda D: D.min(axis=0).max(),
}


def _assert_pairs(result, reductions, peer, left, right, tol=1e-12):
    for field, reduce in reductions.items():
        expected = _pairs(peer, *left, *right, reduce)
        np.testing.assert_allclose(
            getattr(result, field), expected, rtol=tol, atol=tol, err_msg=field
        )


@each_metric
def test_between_two_sets_of_bags(blocks, name):
    metric, peer = METRICS[name]
    left, right = _bags(SIZES), _bags([5, 20, 1], seed=1)
    _assert_pairs(hausdorff(metric, *left, *right), HAUSDORFF, peer, left, right)
    _assert_pairs(directed(metric, *left, *right), DIRECTED, peer, left, right)


@each_metric
def test_bags_among_themselves(blocks, name):
    metric, peer = METRICS[name]
    left = _bags(SIZES)
    both = hausdorff(metric, *left)
    _assert_pairs(both, HAUSDORFF, peer, left, left, tol=1e-7)
    for values in both:
        np.testing.assert_array_equal(values, values.T)
        np.testing.assert_array_equal(values.diagonal(), 0.0)
    ways = directed(metric, *left)
    _assert_pairs(ways, DIRECTED, peer, left, left, tol=1e-7)
    np.testing.assert_array_equal(ways.minmin, both.min)
    np.testing.assert_array_equal(np.maximum(ways.maxmin, ways.maxmin.T), both.max)
    np.testing.assert_array_equal(ways.meanmin_back, ways.meanmin.T)


@each_metric
def test_nearest_instance_of_each_bag(blocks, name):
    metric, peer = METRICS[name]
    X, starts, stops = _bags(SIZES)
    Y = np.random.default_rng(3).normal(size=(23, 4))
    distances = peer(X, Y)
    expected = np.array([distances[a:b].min(axis=0) for a, b in zip(starts, stops, strict=True)])
    index = [distances[a:b].argmin(axis=0) for a, b in zip(starts, stops, strict=True)]
    np.testing.assert_allclose(nearest(metric, X, starts, stops, Y), expected, rtol=1e-12)
    found, where = nearest(metric, X, starts, stops, Y, return_index=True)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(where, index)


def test_ties_go_to_the_first_instance(blocks):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 17))
    X = np.concatenate([rows, rows[::-1], rows, rows + 10.0, rows])  # the last bag: five rows twice
    starts, stops = np.array([0, 10, 15]), np.array([15, 20, 25])
    Y = np.concatenate([rng.normal(size=(40, 17)), rows, rows + 1e-9])
    for metric in ("euclidean", "cosine", "cityblock"):
        _, where = nearest(InstanceMetric(metric), X, starts, stops, Y, return_index=True)
        assert where[0].max() < 5
        np.testing.assert_array_equal(where[0, 40:45], np.arange(5))
        np.testing.assert_array_equal(where[0, 45:], np.arange(5))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ties_but_for_rounding_go_to_the_first_instance(dtype):
    rng = np.random.default_rng(0)
    middle, way = rng.normal(size=(2, 100, 40))
    X = np.stack([middle + way, middle - way], axis=1).reshape(200, 40).astype(dtype)
    starts = np.arange(0, 200, 2)
    metric = InstanceMetric("euclidean")
    _, where = nearest(metric, X, starts, starts + 2, middle.astype(dtype), return_index=True)
    np.testing.assert_array_equal(where.diagonal(), 0)


def test_small_distances_of_float32_have_all_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 20_000)).astype(np.float32)
    X = np.concatenate([X, -X])  # about 0, to where rows are moved
    Y = X + 1e-3 * rng.random(X.shape, np.float32)
    places = np.arange(4)
    found = nearest(InstanceMetric("sqeuclidean"), X, places, places + 1, Y).diagonal()
    exact = np.square(X.astype(np.float64) - Y).sum(axis=1)
    np.testing.assert_allclose(found, exact, rtol=2e-7)


def test_a_row_at_the_same_place_beats_one_close_by():
    X = np.array([[3.0, 1.0 + 1e-8], [3.0, 1.0], [0.0, 9.0]])
    for origin in (0.0, 1e4):
        found, where = nearest(
            InstanceMetric("euclidean"),
            X + origin,
            np.array([0]),
            np.array([3]),
            X[1:2] + origin,
            return_index=True,
        )
        assert (found[0, 0], where[0, 0]) == (0.0, 1)


@pytest.mark.parametrize("name", ["euclidean", "sqeuclidean", "cityblock", "cosine", "matrix"])
@pytest.mark.parametrize("density", [0.05, 0.6])
def test_sparse_instances(blocks, name, density):
    metric, peer = METRICS[name]
    X, starts, stops = _bags(SIZES)
    Y, y_starts, y_stops = _bags([5, 20, 1], seed=1)
    for rows in (X, Y):
        rows[np.random.default_rng(0).random(rows.shape) > density] = 0.0
    X[starts[0]], Y[y_starts[1]] = X[starts[2]], X[starts[3]]
    left, right = (X, starts, stops), (Y, y_starts, y_stops)
    for A, B in [
        (sp.csr_array, sp.csr_array),
        (sp.csr_array, np.asarray),
        (np.asarray, sp.csr_array),
    ]:
        result = hausdorff(metric, A(X), starts, stops, B(Y), y_starts, y_stops)
        _assert_pairs(result, HAUSDORFF, peer, left, right)
        np.testing.assert_allclose(
            nearest(metric, A(X), starts, stops, B(Y)),
            nearest(metric, X, starts, stops, Y),
            rtol=1e-12,
            atol=1e-12,
        )
    if name != "cosine":  # rows of zeros are apart, but a bag is not apart from itself
        own = hausdorff(metric, sp.csr_array(X), starts, stops)
        _assert_pairs(own, HAUSDORFF, peer, left, left, tol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_of_zeros_have_cosine_distance_one(form):
    X = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0], [2.0, 4.0]])
    starts = np.arange(4)
    distance = hausdorff(InstanceMetric("cosine"), form(X), starts, starts + 1).min
    expected = np.ones((4, 4)) - np.eye(4)
    expected[1, 3] = expected[3, 1] = 0.0
    np.testing.assert_allclose(distance, expected, atol=1e-15)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ["euclidean", "cosine", "cityblock", "factor"])
def test_single_precision(blocks, form, name):
    metric, peer = METRICS[name]
    X, starts, stops = _bags(SIZES)
    X[starts[0]] = X[starts[2]]
    X = X.astype(np.float32)
    result = hausdorff(metric, form(X), starts, stops)
    left = X.astype(np.float64), starts, stops
    _assert_pairs(result, HAUSDORFF, peer, left, left, tol=3e-4)
    assert {values.dtype for values in result} == {np.dtype(np.float64)}
    assert nearest(metric, form(X), starts, stops, form(X[:3])).dtype == np.float32
    assert nearest(metric, form(X), starts, stops, X[:3].astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("name", ["euclidean", "sqeuclidean", "cityblock", "factor", "matrix"])
@pytest.mark.parametrize("sparse", [False, True])
def test_far_from_the_origin(blocks, name, sparse):
    metric, peer = METRICS[name]
    X, starts, stops = _bags(SIZES)
    X += 1e4
    X[starts[2]] = X[starts[0]]
    X[starts[4]] = X[starts[0]] + 1e-5
    result = hausdorff(metric, sp.csr_array(X) if sparse else X, starts, stops)
    _assert_pairs(result, HAUSDORFF, peer, (X, starts, stops), (X, starts, stops), tol=1e-7)


def test_a_tight_group_far_from_the_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[:30] = 1e5 + 1e-3 * X[:30]  # the mean of all rows is far from both groups
    starts = np.arange(0, 60, 5)
    left = X, starts, starts + 5
    result = hausdorff(InstanceMetric("euclidean"), *left)
    _assert_pairs(result, HAUSDORFF, cdist, left, left, tol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["euclidean", "sqeuclidean", "cityblock", "cosine"])
def test_bags_with_the_same_instances_are_at_distance_zero(blocks, form, dtype, name):
    rng = np.random.default_rng(0)
    bag = rng.normal(size=(11, 19)) + 3.0
    X = np.concatenate([bag, rng.normal(size=(4, 19)), bag[rng.permutation(11)], bag[:3]])
    starts, stops = np.array([0, 15, 26]), np.array([11, 26, 29])
    result = hausdorff(InstanceMetric(name), form(X.astype(dtype)), starts, stops)
    tol = 0.0 if name != "cityblock" or form is np.asarray else 1e-5
    np.testing.assert_allclose(result.min, 0.0, atol=tol)
    np.testing.assert_allclose(result.max[:2, :2], 0.0, atol=tol)
    np.testing.assert_allclose(result.average[:2, :2], 0.0, atol=tol)
    assert result.max[0, 2] > 0.01


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ["euclidean", "cosine", "cityblock", "factor"])
@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_do_not_change_a_bit(monkeypatch, form, name, n_threads):
    monkeypatch.setattr(distance_blocks, "BLOCK", 20)
    metric, _ = METRICS[name]
    X, starts, stops = _bags(SIZES * 2)
    Y, *other = _bags([5, 20, 1], seed=1)
    for function in (hausdorff, directed):
        for rest in ((), (Y, *other)):
            one = function(metric, form(X), starts, stops, *rest, n_threads=1)
            many = function(metric, form(X), starts, stops, *rest, n_threads=n_threads)
            np.testing.assert_array_equal(many, one)
    one = nearest(metric, form(X), starts, stops, Y, return_index=True, n_threads=1)
    many = nearest(metric, form(X), starts, stops, Y, return_index=True, n_threads=n_threads)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)


def test_bags_larger_than_several_blocks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    starts, stops = np.array([0, 1300, 100, 1400]), np.array([1300, 1302, 101, 3000])
    left = X, starts, stops
    right = rng.normal(size=(700, 2)), np.array([0, 10, 690]), np.array([10, 690, 700])
    metric = InstanceMetric("euclidean")
    _assert_pairs(hausdorff(metric, *left), HAUSDORFF, cdist, left, left, tol=1e-8)
    _assert_pairs(hausdorff(metric, *left, *right), HAUSDORFF, cdist, left, right, tol=1e-8)
    _assert_pairs(directed(metric, *right, *left), DIRECTED, cdist, right, left, tol=1e-8)
    found, where = nearest(metric, *left, right[0], return_index=True)
    distances = cdist(X, right[0])
    for i, (a, b) in enumerate(zip(starts, stops, strict=True)):
        np.testing.assert_allclose(found[i], distances[a:b].min(axis=0), rtol=1e-8)
        np.testing.assert_array_equal(where[i], distances[a:b].argmin(axis=0))


def test_directed_hausdorff_of_scipy():
    X, starts, stops = _bags(SIZES)
    ways = directed(InstanceMetric("euclidean"), X, starts, stops)
    for i, j in np.ndindex(ways.maxmin.shape):
        a, b = X[starts[i] : stops[i]], X[starts[j] : stops[j]]
        np.testing.assert_allclose(ways.maxmin[i, j], directed_hausdorff(a, b)[0], rtol=1e-12)


def test_memory_stays_far_below_the_matrix_of_instances():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    starts = np.arange(0, 8000, 20)
    metric = InstanceMetric("euclidean")
    hausdorff(metric, X[:40], starts[:2], starts[:2] + 20, n_threads=1)
    tracemalloc.start()
    hausdorff(metric, X, starts, starts + 20, n_threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16e6  # the matrix of instances has 512 MB


def test_memory_of_a_huge_bag_against_single_instances():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8500, 2))
    singles = np.arange(8000, 8500)
    huge, one = (X, np.array([0]), np.array([8000])), (X, singles, singles + 1)
    metric = InstanceMetric("euclidean")
    for left, right in ((huge, one), (one, huge)):
        hausdorff(metric, X, singles[:2], singles[:2] + 1, n_threads=1)
        tracemalloc.start()
        hausdorff(metric, *left, *right, n_threads=1)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12e6  # 8000 x 500 minima take 32 MB


def test_read_only_and_integer_instances():
    X, starts, stops = _bags(SIZES)
    X = np.round(3 * X)
    X.flags.writeable = False
    expected = hausdorff(InstanceMetric("euclidean"), X, starts, stops)
    result = hausdorff(InstanceMetric("euclidean"), X.astype(np.int64), starts, stops)
    np.testing.assert_array_equal(result, expected)


def test_no_bags():
    X = np.ones((3, 2))
    none = np.array([], np.int64)
    assert hausdorff(InstanceMetric("euclidean"), X, none, none).min.shape == (0, 0)
    other = X, np.array([0]), np.array([3])
    assert hausdorff(InstanceMetric("cosine"), *other, X, none, none).max.shape == (1, 0)
    assert nearest(InstanceMetric("euclidean"), *other, X[:0]).shape == (1, 0)


def test_a_matrix_of_low_rank_ignores_directions():
    X = np.array([[0.0, 0.0], [0.0, 7.0], [3.0, 1.0]])
    metric = InstanceMetric("mahalanobis", matrix=np.diag([4.0, 0.0]))
    assert metric.factor.shape == (2, 1)
    starts = np.arange(3)
    distance = hausdorff(metric, X, starts, starts + 1).min
    np.testing.assert_allclose(distance, [[0, 0, 6], [0, 0, 6], [6, 6, 0]], atol=1e-14)
    nothing = InstanceMetric("mahalanobis", matrix=np.zeros((2, 2)))
    np.testing.assert_array_equal(hausdorff(nothing, X, starts, starts + 1).max, 0.0)


def test_metrics_can_be_pickled():
    metric = pickle.loads(pickle.dumps(InstanceMetric("mahalanobis", factor=LEARNED)))
    np.testing.assert_array_equal(metric.factor, LEARNED)
    assert pickle.loads(pickle.dumps(InstanceMetric("cosine"))).name == "cosine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "manhattan"}, r"must be one of \['cityblock', .* Got 'manhattan'"),
        ({"name": "mahalanobis"}, "takes either factor or matrix. Got 0 of the two"),
        ({"name": "mahalanobis", "factor": np.eye(2), "matrix": np.eye(2)}, "Got 2 of the two"),
        ({"name": "euclidean", "factor": np.eye(2)}, "takes neither factor nor matrix. Got 1"),
        (
            {"name": "mahalanobis", "factor": np.ones(3)},
            r"\(n_features, rank\). Got .*\(3,\)",
        ),
        ({"name": "mahalanobis", "matrix": np.ones((2, 3))}, r"square and finite. Got .*\(2, 3\)"),
        ({"name": "mahalanobis", "matrix": [[1.0, 1.0], [0.5, 1.0]]}, "symmetric. .* by 0.5"),
        ({"name": "mahalanobis", "matrix": np.diag([1.0, -2.0])}, "eigenvalue of -2 beside"),
    ],
    ids=["name", "none", "both", "needless", "vector", "oblong", "skew", "indefinite"],
)
def test_bad_metrics(arguments, message):
    with pytest.raises(ValueError, match=message):
        InstanceMetric(**arguments)


def test_bad_bags():
    metric = InstanceMetric("euclidean")
    X, first, last = np.ones((4, 3)), np.array([0, 2]), np.array([2, 4])
    with pytest.raises(ValueError, match="hausdorff needs y_starts and y_stops"):
        hausdorff(metric, X, first, last, X)
    with pytest.raises(ValueError, match=r"directed needs an instance .* Bag 1 of X is empty"):
        directed(metric, X, first, np.array([2, 2]))
    with pytest.raises(ValueError, match="Bag 0 of Y is empty"):
        hausdorff(metric, X, first, last, X, first, np.array([0, 4]))
    with pytest.raises(ValueError, match="same number of features"):
        nearest(metric, X, first, last, np.ones((2, 2)))
    with pytest.raises(ValueError, match="Bag 1 of hausdorff must be a range"):
        hausdorff(metric, X, first, np.array([2, 5]))
    wide = InstanceMetric("mahalanobis", factor=np.eye(2))
    with pytest.raises(ValueError, match=r"nearest got instances of 3 features .* 2 rows"):
        nearest(wide, X, first, last, X)


@pytest.mark.parametrize("name", ["euclidean", "cosine", "mahalanobis"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(name, value):
    X = np.ones((4, 3))
    X[3, 1] = value
    metric = InstanceMetric(name, factor=np.eye(3) if name == "mahalanobis" else None)
    with pytest.raises(ValueError, match=r"needs finite instances .* Bag 1 of X"):
        hausdorff(metric, X, np.array([0, 2]), np.array([2, 4]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_without_squares(value):
    X, bags = np.ones((4, 3)), (np.array([0, 2]), np.array([2, 4]))
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"needs finite instances .* Bag 1 of X"):
        hausdorff(InstanceMetric("cityblock"), X, *bags)
    with pytest.raises(ValueError, match=r"A metric must return numbers. Got NaN"):
        hausdorff(InstanceMetric(lambda A, B: np.full((len(A), len(B)), np.nan)), X, *bags)


@pytest.mark.parametrize("name", ["euclidean", "mahalanobis"])
def test_the_bag_with_too_large_a_number_is_named(name):
    X = np.ones((4, 3))
    X[3, 1] = 1e300
    metric = InstanceMetric(name, factor=np.eye(3) if name == "mahalanobis" else None)
    with pytest.raises(ValueError, match=r"needs finite instances .* Bag 1 of X"):
        hausdorff(metric, X, np.array([0, 2]), np.array([2, 4]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_cosine_of_rows_whose_squares_do_not_fit(form):
    X = np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 1.0]])
    starts = np.arange(3)
    metric = InstanceMetric("cosine")
    expected = hausdorff(metric, X, starts, starts + 1).min
    scaled = form(X * np.array([[1e300], [1e-300], [1.0]]))
    np.testing.assert_allclose(
        hausdorff(metric, scaled, starts, starts + 1).min, expected, rtol=1e-12
    )


def test_squares_that_do_not_fit():
    X = np.array([[1e20], [0.0]], np.float32)
    starts = np.arange(2)
    with pytest.raises(ValueError, match=r"fit float32. Bag 0 of X has one of squared norm"):
        hausdorff(InstanceMetric("euclidean"), X, starts, starts + 1)
    result = hausdorff(InstanceMetric("euclidean"), X.astype(np.float64), starts, starts + 1)
    np.testing.assert_allclose(result.max[0, 1], 1e20, rtol=1e-6)


def test_a_metric_that_returns_the_wrong_shape():
    metric = InstanceMetric(lambda A, B: np.zeros(len(A)))
    with pytest.raises(ValueError, match=r"must return a matrix of shape \(3, 3\). Got .*\(3,\)"):
        hausdorff(metric, np.ones((3, 2)), np.array([0]), np.array([3]))


@each_metric
def test_one_of_the_hausdorff_distances(name):
    metric, left, right = METRICS[name][0], _bags(SIZES), _bags([2, 5, 1], seed=1)
    for sides in ((*left,), (*left, *right)):
        for kind, expected in hausdorff(metric, *sides)._asdict().items():
            assert np.array_equal(hausdorff(metric, *sides, only=kind), expected)
    with pytest.raises(ValueError, match=r"only of hausdorff .* Got 'mean'"):
        hausdorff(metric, *left, only="mean")
