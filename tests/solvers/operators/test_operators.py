"""All operators say the same of the same rows, and every solver takes any of them."""

import numpy as np
import pytest
from scipy import sparse

from bagwise import Bags
from bagwise.exceptions import MemoryLimitError
from bagwise.kernels import InstanceKernel, point_gram
from bagwise.solvers import (
    CachedRows,
    DenseGram,
    EmpiricalMap,
    FeatureRows,
    KernelRows,
    PassRows,
    RowOperator,
    SelectedRows,
    ShiftedRows,
    StackedRows,
    SumRows,
    solve_grouped_svm,
    solve_linear_svm,
    solve_svm_dual,
)
from bagwise.solvers.operators import _feature_rows
from solvers.blocks import BlockRows

OFFSETS = np.array([0, 1, 5, 7, 14, 17])
KERNEL = InstanceKernel("rbf", gamma=0.3)
LINEAR = InstanceKernel("linear")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(17, 3))
GRAM = X @ X.T
ORDER = np.array([3, 0, 16, 3, 9, 12, 5, 7, 1])  # one of them twice
MIXES = np.where(RNG.random((9, 17)) < 0.3, RNG.normal(size=(9, 17)), 0.0)
WIDE = np.vstack([X, RNG.normal(size=(4, 3))])


class ScaledRows(RowOperator):
    """Rows that are scaled when they are read, as a lazy transformer will do it."""

    def __init__(self, source, scale):
        self.source, self.scale = source, scale

    @property
    def n(self):
        return self.source.n

    @property
    def dtype(self):
        return self.source.dtype

    def diagonal(self):
        return self.scale**2 * self.source.diagonal()

    def block(self, rows, columns=None, out=None):
        values = self.source.block(rows, columns, out)
        values *= self.scale[rows][:, None] * (
            self.scale if columns is None else self.scale[columns]
        )
        return values


SCALE = np.linspace(0.5, 2.0, 17)

#: Operators, and the Gram matrix that they stand for.
OPERATORS = {
    "dense": (DenseGram(GRAM), GRAM),
    "single": (DenseGram(GRAM.astype(np.float32)), GRAM.astype(np.float32).astype(float)),
    "features": (FeatureRows(X), GRAM),
    "some features": (FeatureRows(WIDE, ORDER), GRAM[np.ix_(ORDER, ORDER)]),
    "csr": (FeatureRows(sparse.csr_array(X)), GRAM),
    "kernel": (KernelRows.of(KERNEL, X, OFFSETS), KERNEL.gram(X)),
    "kernel means": (
        KernelRows.of(KERNEL, X, OFFSETS, means=True),
        point_gram(KERNEL, X, OFFSETS, means=True),
    ),
    "kernel of csr": (
        KernelRows.of(KERNEL, sparse.csr_array(X), OFFSETS, means=True),
        point_gram(KERNEL, X, OFFSETS, means=True),
    ),
    "blocks": (BlockRows(GRAM), GRAM),
    "cached": (CachedRows(BlockRows(GRAM), 5 * GRAM[0].nbytes), GRAM),
    "selected": (SelectedRows(DenseGram(GRAM), ORDER), GRAM[np.ix_(ORDER, ORDER)]),
    "shifted": (ShiftedRows(DenseGram(GRAM), 2.5), GRAM + 2.5),
    "shifted kernel": (ShiftedRows(KernelRows.of(KERNEL, X, OFFSETS), 2.5), KERNEL.gram(X) + 2.5),
    "sums": (SumRows(DenseGram(GRAM), MIXES), MIXES @ GRAM @ MIXES.T),
    "sums of some rows": (
        SumRows(SelectedRows(DenseGram(GRAM), np.arange(17)[::-1]), MIXES[:, ::-1]),
        MIXES @ GRAM @ MIXES.T,
    ),
    "sums of features": (SumRows(FeatureRows(X), MIXES), MIXES @ GRAM @ MIXES.T),
    "sums of cached": (
        SumRows(CachedRows(BlockRows(GRAM), 5 * GRAM[0].nbytes), MIXES),
        MIXES @ GRAM @ MIXES.T,
    ),
    "stacked": (StackedRows([FeatureRows(X), FeatureRows(WIDE[17:])]), WIDE @ WIDE.T),
    "stacked csr": (
        StackedRows([FeatureRows(sparse.csr_array(part)) for part in (X, WIDE[17:])]),
        WIDE @ WIDE.T,
    ),
    "passes": (PassRows(Bags(X, OFFSETS)), GRAM),
    "passes and more": (PassRows(Bags(X, OFFSETS), more=WIDE[17:]), WIDE @ WIDE.T),
    "passes of csr": (
        PassRows(Bags(sparse.csr_array(X), OFFSETS), more=sparse.csr_array(WIDE[17:])),
        WIDE @ WIDE.T,
    ),
    "scaled": (ScaledRows(DenseGram(GRAM), SCALE), SCALE[:, None] * GRAM * SCALE),
}


@pytest.fixture(params=OPERATORS, ids=str)
def operator(request):
    return OPERATORS[request.param]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def some_of(gram):
    """Rows and columns, and coefficients of the rows."""
    rows, columns = np.arange(0, len(gram), 2), np.array([3, len(gram) - 1, 0])
    return rows, columns, np.random.default_rng(1).normal(size=len(rows))


def test_norms_and_blocks(operator):
    rows, gram = operator
    few, columns, _ = some_of(gram)
    assert rows.n == len(gram)
    close(rows.diagonal(), gram.diagonal())
    assert rows.diagonal().dtype == np.float64
    close(rows.block(few), gram[few])
    close(rows.block(few, columns), gram[np.ix_(few, columns)])
    close(rows.block(few, few), gram[np.ix_(few, few)])
    assert rows.block(few).dtype == rows.dtype


def test_blocks_belong_to_the_caller(operator):
    rows, gram = operator
    few, columns, _ = some_of(gram)
    for others in (None, columns):
        rows.block(few, others)[:] = np.nan
    out = np.full((len(few), len(columns)), np.nan)
    assert rows.block(few, columns, out) is out
    close(out, gram[np.ix_(few, columns)])
    out = np.full((len(few), len(gram)), np.nan)  # of higher precision than some operators
    assert rows.block(few, None, out) is out
    close(out, gram[few])


def test_all_products_at_once(operator):
    rows, gram = operator
    some = np.array([4, 1, 6, 0])
    for asked, expected in ((rows, gram), (rows.take(some), gram[np.ix_(some, some)])):
        for dtype in (np.float32, np.float64):
            out = np.full(expected.shape, np.nan, dtype)
            if asked.fill_square(out):
                np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)
            else:
                assert np.isnan(out).all()


def test_sums_of_nothing():
    nothing = SumRows(CachedRows(BlockRows(GRAM), 100.0), sparse.csr_array((3, 17)))
    close(nothing.block(np.arange(3)), np.zeros((3, 3)))
    assert SumRows(DenseGram(GRAM), sparse.csr_array((0, 17))).diagonal().shape == (0,)


def test_products_of_sums(operator):
    rows, gram = operator
    few, columns, coef = some_of(gram)
    close(rows.products(few, coef), coef @ gram[few])
    close(rows.products(few, coef, columns), coef @ gram[np.ix_(few, columns)])
    nothing = np.empty(0, np.int64)
    close(rows.products(nothing, np.empty(0)), np.zeros(len(gram)))


def test_a_sum_is_written_down_where_there_are_features(operator):
    rows, gram = operator
    few, _, coef = some_of(gram)
    weights, features = rows.weights(few, coef), rows.features(np.arange(len(gram)))
    assert (features is None) == (len(weights) == 0) or isinstance(rows, SumRows)
    if features is not None:
        close(
            (features @ features.T)
            if not sparse.issparse(features)
            else (features @ features.T).toarray(),
            gram,
        )
    if len(weights):
        close(weights @ weights, coef @ gram[np.ix_(few, few)] @ coef)


def test_selections_and_repetitions(operator):
    rows, gram = operator
    chosen = np.array([4, 1, 6, 0])
    some, again = rows.take(chosen), rows.repeated(chosen)
    every = np.concatenate([np.arange(len(gram)), chosen])
    close(some.block(np.arange(4)), gram[np.ix_(chosen, chosen)])
    close(some.diagonal(), gram.diagonal()[chosen])
    close(some.take(np.array([2, 0])).block(np.arange(2)), gram[np.ix_([6, 4], [6, 4])])
    assert again.n == len(every)
    last = np.array([len(gram) - 1, len(gram), len(every) - 1])
    close(again.block(last), gram[np.ix_(every[last], every)])
    close(again.products(last, np.ones(3)), gram[every[last]][:, every].sum(axis=0))


def test_only_a_matrix_in_memory_is_handed_out_whole(operator):
    rows, gram = operator
    assert (rows.array is not None) == isinstance(rows, DenseGram)
    if rows.array is not None:
        assert rows.array is rows.array
        close(rows.array, gram)


def test_every_solver_takes_every_operator(operator):
    rows, gram = operator
    sign = np.where(np.arange(len(gram)) % 3 == 0, 1.0, -1.0)
    expected = solve_svm_dual(gram, sign, 2.0, tol=1e-9)
    result = solve_svm_dual(rows, sign, 2.0, tol=1e-9)
    assert result.objective == pytest.approx(expected.objective, rel=1e-8)
    close(result.decision, gram @ (sign * result.x) + result.intercept)
    groups = solve_grouped_svm(rows, sign, np.arange(len(gram)), 2.0, tol=1e-9)
    assert groups.objective == pytest.approx(expected.objective, rel=1e-7)


def test_rows_with_features_are_a_linear_kernel():
    sign = np.where(X[:, 0] > 0, 1.0, -1.0)
    linear = solve_linear_svm(X, sign, 1.0, tol=1e-9)
    kernel = solve_svm_dual(FeatureRows(X), sign, 1.0, tol=1e-9)
    assert kernel.objective == pytest.approx(linear.objective, rel=1e-9)
    close(KernelRows.of(LINEAR, X, OFFSETS).block(np.arange(17)), GRAM)


def test_single_precision_stays_unless_double_is_asked_for():
    single = X.astype(np.float32)
    rows = KernelRows.of(KERNEL, single, OFFSETS)
    assert rows.block(np.arange(3)).dtype == np.float32
    double = KernelRows(KERNEL, single, OFFSETS, np.arange(17), is_double=True)
    assert double.block(np.arange(3)).dtype == np.float64
    exact = KERNEL.gram(single.astype(np.float64))
    np.testing.assert_allclose(double.block(np.arange(3)), exact[:3], rtol=1e-12)


def test_an_empirical_map_has_the_gram_matrix_for_features(operator):
    rows, gram = operator
    features, w = EmpiricalMap(rows), np.linspace(-1.0, 1.0, len(gram))
    assert (features.n, features.d) == gram.shape
    close(features.columns(np.array([1, 4])), gram[:, [1, 4]])
    close(features.dot(w), gram @ w)
    close(features.combine(w), w @ gram)


@pytest.mark.parametrize("as_matrix", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_rows_piece_by_piece(monkeypatch, as_matrix):
    """Sums over all rows are sums over the pieces that they are cut into."""
    monkeypatch.setattr(
        _feature_rows, "short_slices", lambda n, seconds: [slice(0, 5), slice(5, n)]
    )
    monkeypatch.setattr(_feature_rows, "slice_length", lambda seconds: 1)
    rng = np.random.default_rng(0)
    X, weight, w = rng.normal(size=(40, 20)), rng.uniform(size=40), rng.normal(size=20)
    rows = FeatureRows(as_matrix(X))
    bordered = np.column_stack([X, np.ones(40)])
    np.testing.assert_allclose(rows.dot(w), X @ w)
    np.testing.assert_allclose(rows.combine(weight), weight @ X)
    np.testing.assert_allclose(rows.square_norms(), (X**2).sum(axis=1))
    np.testing.assert_allclose(rows.curvature(weight), bordered.T @ (weight[:, None] * bordered))
    np.testing.assert_allclose(rows.curvature_diagonal(weight), weight @ bordered**2)
    np.testing.assert_allclose(rows.gram(), X @ X.T, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.05, 0.2, 0.6])
def test_curvature_of_sparse_rows(dtype, density):
    """Rows may be empty or well filled, and more features than a tile of the matrix."""
    X = sparse.random_array((120, 70), density=density, format="csr", dtype=dtype, rng=0)
    weight, some = np.random.default_rng(1).uniform(size=50), np.arange(0, 100, 2)[::-1]
    bordered = np.column_stack([X.toarray(), np.ones(120)])[some].astype(np.float64)
    found = FeatureRows(X, some).curvature(weight)
    np.testing.assert_allclose(found, bordered.T @ (weight[:, None] * bordered), atol=1e-5)
    assert (found == found.T).all()


def test_rough_curvature_is_in_single_precision_where_that_will_do():
    rng = np.random.default_rng(4)
    X, weight = rng.normal(size=(50, 6)), rng.random(50)
    single = FeatureRows(X.astype(np.float32))
    exact = single.curvature(weight)
    rough = single.rough_curvature(weight)
    assert 0 < np.abs(rough - exact).max() < 1e-4
    assert (FeatureRows(X).rough_curvature(weight) == FeatureRows(X).curvature(weight)).all()
    assert (single.rough_curvature(1e9 * weight) == single.curvature(1e9 * weight)).all()


def test_features_by_columns():
    close(FeatureRows(WIDE, ORDER).columns(np.array([2, 0])), WIDE[ORDER][:, [2, 0]])
    close(FeatureRows(sparse.csr_array(X)).columns(np.array([1])), X[:, [1]])


def test_sums_keep_to_their_memory():
    rows = SumRows(DenseGram(GRAM), MIXES, max_bytes=8 * 4 * 4)
    rows.block(np.arange(4), np.arange(4))
    with pytest.raises(MemoryLimitError, match=r"inner products of 5 rows with 5 take"):
        rows.block(np.arange(5), np.arange(5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("filled", [0.5, 0.01])
def test_sparse_products_however_full_the_rows_are(filled, dtype, monkeypatch):
    """Well-filled rows are multiplied as dense ones, in columns that both sides have."""
    monkeypatch.setattr(_feature_rows, "slice_length", lambda _: 16)
    rng = np.random.default_rng(0)
    left, right = (
        sparse.random_array((n, 90), density=filled, rng=rng, format="csr").astype(dtype)
        for n in (13, 7)
    )
    for other in (right, left):
        found = _feature_rows.cross_products(left, other)
        expected = left.toarray().astype(float) @ other.toarray().astype(float).T
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(FeatureRows(left).gram(), expected, rtol=1e-12, atol=1e-13)
    empty = sparse.csr_array((0, 90), dtype=dtype)
    assert _feature_rows.cross_products(empty, right).shape == (0, 7)
