"""Segment operations against plain loops; the same bits for any number of threads."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse, special

from bags.naive import FLOATS, loop, segmented
from bagwise import Bags
from bagwise.bags import (
    _segments,
    scan_max,
    segment_argmax,
    segment_argmin,
    segment_logsumexp,
    segment_max,
    segment_mean,
    segment_min,
    segment_moments,
    segment_range,
    segment_rows,
    segment_scatter,
    segment_softmax,
    segment_sum,
)
from bagwise.exceptions import InvalidBagsError

FEW = st.sampled_from([-1.0, 0.0, -0.0, 1.0, 2.0])  # ties in nearly every bag
PLAIN = st.floats(-1e3, 1e3, width=32)
ANY = st.floats(width=32)  # NaN and infinity too
REDUCTIONS = [
    segment_max, segment_min, segment_argmax, segment_argmin, segment_sum, segment_mean,
    segment_logsumexp, segment_softmax,
]  # fmt: skip
PIECES = st.sampled_from([1, 6, 2**16])  # values at which a long bag is cut
TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


@pytest.fixture
def small_ranges(monkeypatch):
    """Let small data be cut into many pieces and ranges, and handed to threads."""
    monkeypatch.setattr("bagwise.bags._segments._VALUES_PER_PIECE", 1000)
    monkeypatch.setattr("bagwise.bags._segments._VALUES_PER_RANGE", 64)
    monkeypatch.setattr("bagwise.bags._segments._SERIAL_VALUES", 0)


# ------------------------------------------------------------------------- largest, smallest

EXTREMES = [
    (segment_max, np.max), (segment_min, np.min), (segment_argmax, np.argmax),
    (segment_argmin, np.argmin),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "reference"), EXTREMES)
@given(st.one_of(segmented(FEW), segmented(ANY)), PIECES)
def test_extremes_equal_the_loop(ours, reference, case, values_per_piece):
    values, starts, stops = case
    expected = loop(lambda rows: reference(rows, axis=0), values, starts, stops)
    with patch.object(_segments, "_VALUES_PER_PIECE", values_per_piece):
        got = ours(values, starts, stops)
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == (np.int64 if "arg" in ours.__name__ else values.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_first_of_equal_values_and_first_nan(dtype):
    values = np.array([1, 3, 3, np.nan, 5, np.nan, -np.inf, -np.inf, np.inf, np.inf], dtype)
    starts, stops = [0, 0, 6, 8, 6, 5], [3, 6, 8, 10, 10, 6]
    assert segment_argmax(values, starts, stops).tolist() == [1, 3, 0, 0, 2, 0]
    assert segment_argmin(values, starts, stops).tolist() == [0, 3, 0, 0, 0, 0]
    np.testing.assert_array_equal(
        segment_max(values, starts, stops), [3, np.nan, -np.inf, np.inf, np.inf, np.nan]
    )


@given(st.one_of(segmented(FEW), segmented(ANY)), st.sampled_from([1, 3, 10**6]))
def test_both_extremes_in_one_read(case, piece_rows):
    with patch.object(_segments, "chunk_rows", lambda _: piece_rows):
        low, high = segment_range(*case)
    np.testing.assert_array_equal(low, segment_min(*case))
    np.testing.assert_array_equal(high, segment_max(*case))
    assert low.dtype == high.dtype == case[0].dtype


def test_empty_bags_do_not_get_a_neighbour_s_value():
    """`np.maximum.reduceat` gives the middle bag of [0, 2, 2] the value of the next one."""
    for operation in REDUCTIONS:
        with pytest.raises(ValueError, match="Bag 1 is rows 2 to 2"):
            operation([1.0, 5.0, 2.0, 7.0], [0, 2, 2], [2, 2, 4])


# ------------------------------------------------------------------------------ sums and means


@given(segmented(PLAIN))
def test_sums_and_means_equal_the_loop(case):
    values, starts, stops = case
    exact = values.astype(np.float64)
    tolerance = TOLERANCE[values.dtype]
    for ours, reference in ((segment_sum, np.sum), (segment_mean, np.mean)):
        expected = loop(lambda rows: reference(rows, axis=0), exact, starts, stops)  # noqa: B023
        got = ours(values, starts, stops)
        assert got.dtype == values.dtype
        scale = np.abs(exact).max()
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale)


@given(segmented(PLAIN), st.data())
def test_weighted_sums_and_means_equal_the_loop(case, data):
    values, starts, stops = case
    dtype = data.draw(st.sampled_from(FLOATS))
    weights = data.draw(hnp.arrays(dtype, len(values), elements=st.floats(0.5, 4, width=32)))
    exact = values.astype(np.float64)
    factors = weights.reshape(-1, *[1] * (values.ndim - 1)).astype(np.float64)
    tolerance = TOLERANCE[values.dtype]
    total = loop(lambda rows: rows.sum(axis=0), exact * factors, starts, stops)
    mass = loop(lambda rows: rows.sum(), weights.astype(np.float64), starts, stops)
    mass = mass.reshape(-1, *[1] * (values.ndim - 1))
    limits = {"rtol": tolerance, "atol": tolerance * 4 * np.abs(exact).max()}
    np.testing.assert_allclose(segment_sum(values, starts, stops, weights=weights), total, **limits)
    np.testing.assert_allclose(
        segment_mean(values, starts, stops, weights=weights), total / mass, **limits
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("first", [0.0, 1e4])
def test_moments_of_one_read_are_those_of_two(dtype, first):
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(30_000, 2)) + np.array([0.0, 100.0])).astype(dtype)
    values[0] = first  # an outlier where the bag begins
    values[25_000:] -= 50.0  # and a jump near its end
    starts, stops = np.array([0, 29_999, 100]), np.array([30_000, 30_000, 103])
    mean, squares = segment_moments(values, starts, stops)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(
        mean, loop(lambda rows: rows.mean(axis=0), exact, starts, stops), rtol=1e-12, atol=1e-12
    )
    expected = loop(lambda rows: len(rows) * rows.var(axis=0), exact, starts, stops)
    np.testing.assert_allclose(squares, expected, rtol=1e-11)
    for n_threads in (1, 3):
        again = segment_moments(values, starts, stops, n_threads=n_threads)
        assert np.array(again).tobytes() == np.array([mean, squares]).tobytes()
    alone = segment_moments(values[:, 1], starts, stops)
    np.testing.assert_allclose(alone, [mean[:, 1], squares[:, 1]], rtol=1e-11)


def test_float32_is_summed_in_float64():
    """Ones added to 2**24 would all be lost in float32."""
    values = np.concatenate([[2.0**24], np.ones(4096)]).astype(np.float32)
    assert segment_sum(values, [0], [4097])[0] == 2**24 + 4096


# ------------------------------------------------------------------------ logsumexp and softmax


@given(segmented(st.floats(-1e4, 1e4, width=32)), PIECES)
def test_logsumexp_equals_scipy(case, values_per_piece):
    values, starts, stops = case
    exact = values.astype(np.float64)
    expected = loop(lambda rows: special.logsumexp(rows, axis=0), exact, starts, stops)
    with patch.object(_segments, "_VALUES_PER_PIECE", values_per_piece):
        got = segment_logsumexp(values, starts, stops)
    assert got.dtype == values.dtype
    np.testing.assert_allclose(got, expected, rtol=TOLERANCE[values.dtype], atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1000.0, 1000.0], 1000 + np.log(2)), ([-1e30, -1e30], -1e30), ([-np.inf, 3.0], 3.0),
        ([-np.inf, -np.inf], -np.inf), ([np.inf, 3.0], np.inf), ([np.inf, -np.inf], np.inf),
        ([np.nan, 3.0], np.nan), ([3.0, np.nan], np.nan), ([np.inf, np.nan], np.nan),
        ([np.nan, np.inf], np.nan), ([-np.inf, np.nan], np.nan),
    ],
)  # fmt: skip
def test_logsumexp_at_the_extremes(values, expected, dtype):
    got = segment_logsumexp(np.array(values, dtype), [0], [2])
    np.testing.assert_allclose(got, [expected], rtol=1e-6)


@given(segmented(st.floats(-1e4, 1e4, width=32), disjoint=True))
def test_softmax_equals_scipy_and_sums_to_one(case):
    values, starts, stops = case
    got = segment_softmax(values, starts, stops)
    assert got.shape == values.shape
    assert got.dtype == values.dtype
    expected = np.zeros(values.shape)
    for a, b in zip(starts, stops, strict=True):
        expected[a:b] = special.softmax(values[a:b].astype(np.float64), axis=0)
    np.testing.assert_allclose(got, expected, rtol=TOLERANCE[values.dtype], atol=1e-7)
    sums = loop(lambda rows: rows.astype(np.float64).sum(axis=0), got, starts, stops)
    np.testing.assert_allclose(sums, 1, rtol=1e-5 if values.dtype == np.float32 else 1e-12)
    covered = np.zeros(len(values), dtype=bool)
    for a, b in zip(starts, stops, strict=True):
        covered[a:b] = True
    assert not got[~covered].any()


def test_softmax_refuses_shared_rows():
    with pytest.raises(ValueError, match="must not share rows"):
        segment_softmax([1.0, 2.0, 3.0], [0, 1], [2, 3])
    with pytest.raises(ValueError, match="must not share rows"):
        segment_softmax([1.0, 2.0, 3.0], [2, 0], [3, 3])


# ------------------------------------------------------------------------------------ scatter

INTEGERS = st.integers(-50, 50).map(float)


@given(segmented(INTEGERS), st.booleans(), st.data())
def test_scatter_is_the_adjoint_of_sum(case, weighted, data):
    """<scatter(b), v> = <b, sum(v)> exactly: small integers make every sum exact."""
    values, starts, stops = case
    n_rows, shape = len(values), (len(starts), *values.shape[1:])
    bag_values = data.draw(hnp.arrays(values.dtype, shape, elements=INTEGERS))
    weights = data.draw(hnp.arrays(np.float64, n_rows, elements=INTEGERS)) if weighted else None
    rows = segment_scatter(bag_values, starts, stops, n_rows, weights=weights)
    assert rows.shape == values.shape
    assert rows.dtype == values.dtype
    left = (rows.astype(np.float64) * values).sum()
    sums = segment_sum(values, starts, stops, weights=weights)
    right = (bag_values.astype(np.float64) * sums).sum()
    assert left == right


@given(segmented(INTEGERS))
def test_scatter_equals_the_loop(case):
    values, starts, stops = case
    bag_values = np.arange(1.0, len(starts) + 1)
    expected = np.zeros(len(values))
    for i, (a, b) in enumerate(zip(starts, stops, strict=True)):
        expected[a:b] += bag_values[i]
    np.testing.assert_array_equal(segment_scatter(bag_values, starts, stops, len(values)), expected)


# --------------------------------------------------------------------------------- the scan


def row_scores(matrix, coef, intercept):
    """Scores of single rows: what a row scores must not depend on its bag."""
    n = matrix.shape[0]
    return scan_max(matrix, coef, np.arange(n), np.arange(1, n + 1), intercept=intercept)[0]


@given(st.data())
@settings(max_examples=60)
def test_scan_equals_product_and_argmax(data):
    _, starts, stops = data.draw(segmented(PLAIN))
    n_rows, n_features = int(stops.max()), data.draw(st.integers(1, 20))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = data.draw(st.sampled_from(FLOATS))
    draw = data.draw(st.sampled_from([rng.normal, lambda size: rng.integers(-2, 3, size=size)]))
    X = draw(size=(n_rows, n_features)).astype(dtype)
    n_outputs = data.draw(st.sampled_from([None, 1, 3, 9]))
    coef = draw(size=n_features if n_outputs is None else (n_outputs, n_features)).astype(dtype)
    intercept = rng.normal() if n_outputs is None else rng.normal(size=n_outputs)
    best, where = scan_max(X, coef, starts, stops, intercept=intercept)
    assert best.dtype == dtype
    assert best.shape == where.shape == (len(starts), n_outputs)[: coef.ndim]
    scores = X.astype(np.float64) @ coef.T.astype(np.float64) + intercept
    expected = loop(lambda rows: rows.max(axis=0), scores, starts, stops)
    tolerance = TOLERANCE[np.dtype(dtype)] * (1 + np.abs(scores).max())
    np.testing.assert_allclose(best, expected, atol=tolerance)
    single = row_scores(X, coef, intercept)  # the same arithmetic, so here nothing is tolerated
    np.testing.assert_array_equal(best, segment_max(single, starts, stops))
    np.testing.assert_array_equal(where, segment_argmax(single, starts, stops))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n_outputs", [1, 3, 40])
@pytest.mark.usefixtures("small_ranges")
def test_scan_of_bags_cut_into_pieces_is_the_same(monkeypatch, layout, dtype, n_outputs):
    rng = np.random.default_rng(0)
    X = layout(rng.integers(-1, 2, size=(500, 6)).astype(dtype))  # many ties
    coef = rng.integers(-1, 2, size=(n_outputs, 6)).astype(dtype)
    starts, stops = np.array([0, 3, 490, 100]), np.array([500, 4, 500, 350])
    expected = scan_max(X, coef, starts, stops, n_threads=1)
    for chunk_bytes in (1, 200, 3000):
        monkeypatch.setattr("bagwise.bags._matrix._CHUNK_BYTES", chunk_bytes)
        for n_threads in (1, 2, 4):
            got = scan_max(X, coef, starts, stops, n_threads=n_threads)
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scan_of_csr_equals_dense(dtype):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 50)).astype(dtype)
    X[rng.random(X.shape) < 0.8] = 0
    coef, intercept = rng.normal(size=(4, 50)), rng.normal(size=4)
    starts = np.arange(0, 300, 6)
    best, where = scan_max(X, coef, starts, starts + 6, intercept=intercept)
    for index in (np.int32, np.int64):
        csr = sparse.csr_array(X)
        csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
        sparse_best, sparse_where = scan_max(csr, coef, starts, starts + 6, intercept=intercept)
        np.testing.assert_allclose(sparse_best, best, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(sparse_where, where)


def test_scan_of_empty_sparse_rows_scores_the_intercept():
    best, where = scan_max(sparse.csr_array((4, 3)), np.ones((2, 3)), [0], [4], intercept=[1, -1])
    assert best.tolist() == [[1, -1]]
    assert where.tolist() == [[0, 0]]


def test_scan_cuts_sparse_work_by_what_is_stored(monkeypatch):
    """The number of ranges follows the stored values, not their square."""
    counted = []

    def counting(function, items, **options):
        counted.extend(items)
        return map(function, counted)

    monkeypatch.setattr("bagwise.bags._segments.ordered_map", counting)
    X = sparse.random_array((20_000, 100), density=0.05, rng=0, format="csr", dtype=np.float32)
    scan_max(X, np.ones(100), np.arange(0, 20_000, 10), np.arange(10, 20_001, 10))
    assert len(counted) < 10


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_scan_of_nan_scores_is_numpy_s(layout):
    X = layout(np.array([[1.0, 0.0], [3.0, 1.0], [2.0, 1.0]]))
    best, where = scan_max(X, [[1.0, np.nan], [np.inf, 0.0], [-np.inf, 0.0]], [0, 0], [3, 1])
    dense = np.array([[1.0, 0.0], [3.0, 1.0], [2.0, 1.0]])
    if layout is np.asarray:
        with np.errstate(invalid="ignore"):
            scores = dense @ np.array([[1.0, np.nan], [np.inf, 0.0], [-np.inf, 0.0]]).T
        np.testing.assert_array_equal(best, [scores.max(axis=0), scores[0]])
        np.testing.assert_array_equal(where, [scores.argmax(axis=0), [0, 0, 0]])
    else:  # a stored value times NaN is NaN; what is not stored is no term of the sum
        np.testing.assert_array_equal(best[0], [np.nan, np.inf, -np.inf])
        assert where[0].tolist() == [1, 0, 0]


def test_scan_of_a_map_equals_memory(tmp_path):
    rng = np.random.default_rng(2)
    bags = Bags(rng.normal(size=(2000, 31)).astype(np.float32), np.arange(0, 2001, 8))
    bags.write(tmp_path / "x.bags")
    shuffled = rng.permutation(250)
    coef = rng.normal(size=(3, 31))
    copied = bags[shuffled].compact()
    expected = scan_max(copied.instances, coef, copied.offsets[:-1], copied.offsets[1:])
    for made in (bags, Bags.open(tmp_path / "x.bags")):
        selected = made[shuffled]
        got = scan_max(selected._base, coef, selected._starts, selected._stops)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("coef", "intercept", "message"),
    [
        (np.ones(3), 0.0, "coef must have 2 columns"),
        (np.ones((1, 1, 2)), 0.0, "coef must have 2 columns"),
        (np.ones(2), [1.0, 2.0], "broadcast"),
    ],
)
def test_scan_refuses_what_does_not_fit(coef, intercept, message):
    with pytest.raises(ValueError, match=message):
        scan_max(np.ones((4, 2)), coef, [0], [4], intercept=intercept)


# ----------------------------------------------------------------- threads, sizes, arguments


def one_huge_among_tiny(dtype, n_columns):
    rng = np.random.default_rng(5)
    sizes = np.ones(3000, dtype=np.int64)
    sizes[::7], sizes[1700] = 3, 5000
    stops = np.cumsum(sizes)
    values = rng.integers(0, 20, size=(stops[-1], n_columns)).astype(dtype)
    return (values[:, 0] if n_columns == 1 else values), stops - sizes, stops


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n_columns", [1, 4])
@pytest.mark.parametrize("operation", REDUCTIONS)
@pytest.mark.usefixtures("small_ranges")
def test_one_huge_bag_among_thousands(operation, n_columns, dtype):
    values, starts, stops = one_huge_among_tiny(dtype, n_columns)
    order = np.random.default_rng(6).permutation(len(starts))
    first = operation(values, starts[order], stops[order], n_threads=1)
    for n_threads in (2, 4, None):
        again = operation(values, starts[order], stops[order], n_threads=n_threads)
        assert again.tobytes() == first.tobytes()
    straight = operation(values, starts, stops, n_threads=1)
    expected = straight if operation is segment_softmax else straight[order]
    assert first.tobytes() == expected.tobytes()
    if operation is not segment_softmax:
        reference = {
            segment_max: np.max, segment_min: np.min, segment_argmax: np.argmax,
            segment_argmin: np.argmin, segment_sum: np.sum, segment_mean: np.mean,
            segment_logsumexp: special.logsumexp,
        }[operation]  # fmt: skip
        exact = values.astype(np.float64)
        naive = loop(lambda rows: reference(rows, axis=0), exact, starts, stops)
        np.testing.assert_allclose(straight, naive, rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.usefixtures("small_ranges")
def test_scatter_and_weights_in_threads(dtype):
    values, starts, stops = one_huge_among_tiny(dtype, 2)
    weights = np.linspace(0.1, 3, len(values))
    bag_values = np.linspace(-1, 1, 2 * len(starts)).reshape(-1, 2).astype(dtype)
    shared = np.minimum(stops + 2, len(values))  # neighbours share rows
    for n_threads in (2, 4):
        for operation, arguments in (
            (segment_sum, (values, starts, stops)),
            (segment_mean, (values, starts, stops)),
            (segment_scatter, (bag_values, starts, stops, len(values))),
            (segment_scatter, (bag_values, starts, shared, len(values))),
        ):
            one = operation(*arguments, weights=weights, n_threads=1)
            many = operation(*arguments, weights=weights, n_threads=n_threads)
            assert many.tobytes() == one.tobytes()


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.usefixtures("small_ranges")
def test_scan_in_threads(dtype, layout):
    values, starts, stops = one_huge_among_tiny(dtype, 4)
    coef = np.random.default_rng(7).normal(size=(3, 4))
    one = scan_max(layout(values), coef, starts, stops, n_threads=1)
    for n_threads in (2, 4):
        many = scan_max(layout(values), coef, starts, stops, n_threads=n_threads)
        assert many[0].tobytes() == one[0].tobytes()
        assert many[1].tobytes() == one[1].tobytes()


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_no_bags_and_no_columns(operation):
    none = np.empty(0, dtype=np.int64)
    shape = (3,) if operation is segment_softmax else (0,)
    assert operation([1.0, 2.0, 3.0], none, none).shape == shape
    assert operation(np.empty((3, 0)), [0], [3]).shape[1] == 0


@pytest.mark.parametrize("operation", REDUCTIONS)
@pytest.mark.parametrize(
    ("starts", "stops", "message"),
    [
        ([0], [5], "Bag 0 is rows 0 to 5"),
        ([0, -1], [2, 2], "Bag 1 is rows -1 to 2"),
        ([3], [2], "Bag 0 is rows 3 to 2"),
        ([2**63 - 1], [-(2**63)], "Bag 0"),
        ([0, 1], [2], "vectors of one length"),
        ([[0]], [[2]], "vectors of one length"),
    ],
)
def test_rows_outside_are_refused(operation, starts, stops, message):
    with pytest.raises(ValueError, match=message):
        operation(np.ones(4), starts, stops)


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_values_that_do_not_fit_are_refused(operation):
    for values in (np.ones((2, 2, 2)), 1.0):
        with pytest.raises(ValueError, match="vector or a matrix"):
            operation(values, [0], [1])
    with pytest.raises(InvalidBagsError, match="values must be real numbers"):
        operation([1j, 2j], [0], [2])


def test_weights_that_do_not_fit_are_refused():
    for weights in (np.ones(3), np.ones((4, 1)), 1.0):
        with pytest.raises(ValueError, match=r"weights|vector"):
            segment_sum(np.ones(4), [0], [4], weights=weights)
        with pytest.raises(ValueError, match=r"weights|vector"):
            segment_scatter([1.0], [0], [4], 4, weights=weights)
    with pytest.raises(ValueError, match="one entry per bag, 1"):
        segment_scatter([1.0, 2.0], [0], [4], 4)


def test_strided_fortran_and_integer_values():
    values = np.arange(24.0).reshape(6, 4)
    strided = (values[:, ::2], values[::-1])
    for given_values in (np.asfortranarray(values), *strided, values.astype(int)):
        got = segment_sum(given_values, [0, 3], [3, 6])
        np.testing.assert_array_equal(got, [given_values[:3].sum(0), given_values[3:].sum(0)])
        assert got.dtype == np.float64
    column = values[:, 1]
    assert segment_argmax(column, [0], [6]).tolist() == [5]


def test_inputs_are_left_alone():
    values, starts, stops = np.arange(6.0), np.array([0, 3]), np.array([3, 6])
    before = [array.copy() for array in (values, starts, stops)]
    for operation in REDUCTIONS:
        operation(values, starts, stops)
    scan_max(values[:, None], [1.0], starts, stops)
    segment_scatter([1.0, 2.0], starts, stops, 6, weights=values)
    for array, copied in zip((values, starts, stops), before, strict=True):
        np.testing.assert_array_equal(array, copied)
        assert array.flags.writeable


@pytest.mark.parametrize(
    ("starts", "stops"), [([4, 0], [6, 3]), ([0, 2, 2], [2, 2, 7]), ([5], [5]), ([], [])]
)
def test_the_rows_of_bags(starts, stops):
    expected = [
        row for start, stop in zip(starts, stops, strict=True) for row in range(start, stop)
    ]
    rows = segment_rows(np.array(starts, np.int64), np.array(stops, np.int64))
    assert rows.dtype == np.int64
    assert rows.tolist() == expected
