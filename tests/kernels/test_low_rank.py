"""Low-rank maps against dense linear algebra, the greedy definition and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem

import bagwise.kernels._fourier_map as fourier_maps
import bagwise.kernels._landmark_maps as landmark_maps
from bagwise.kernels import InstanceKernel
from bagwise.kernels._fourier_map import random_fourier
from bagwise.kernels._landmark_maps import cholesky_features, nystroem, pivoted_cholesky

RBF = InstanceKernel("rbf", gamma=0.3)
KERNELS = [
    InstanceKernel("linear"),
    InstanceKernel("poly", gamma=0.3, degree=3, coef0=1.0),
    InstanceKernel("rbf", gamma=0.03),  # wide enough that residuals differ by more than rounding
]
NAMES = ["linear", "poly", "rbf"]


@pytest.fixture
def small_blocks(monkeypatch):
    """Make a few dozen rows go through many blocks, panels and sets of candidates."""
    monkeypatch.setattr(landmark_maps, "BLOCK", 8)
    monkeypatch.setattr(fourier_maps, "BLOCK", 8)
    monkeypatch.setattr(landmark_maps, "_PANEL", 5)
    monkeypatch.setattr(landmark_maps, "_FEWEST_CANDIDATES", 7)


def _data(n, d=4, seed=0, dtype=np.float64, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    return X.astype(dtype)


def _greedy(gram, X, rank):
    """Return the pivots by definition: eliminate the largest diagonal entry, over and over.

    Of equal entries the one whose row is nearest to the origin.
    """
    X = X.toarray() if sp.issparse(X) else X
    residual, pivots = gram.copy(), []
    for _ in range(rank):
        diagonal = residual.diagonal()
        equal = np.flatnonzero(diagonal >= diagonal.max() - 1e-14 * gram.diagonal().max())
        p = int(equal[(X[equal] ** 2).sum(axis=1).argmin()])
        pivots.append(p)
        residual = residual - np.outer(residual[:, p], residual[p]) / residual[p, p]
    return pivots, residual


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
@pytest.mark.parametrize("rank", [1, 3, 4, 17])
def test_pivots_are_the_greedy_ones(small_blocks, kernel, rank):
    X = _data(90, d=20)
    gram = kernel.gram(X)
    pivots, residual = _greedy(gram, X, rank)
    found, features = cholesky_features(kernel, X, rank=rank)
    np.testing.assert_array_equal(found.indices, pivots)
    np.testing.assert_array_equal(found.landmarks, X[pivots])
    scale = gram.diagonal().max()
    np.testing.assert_allclose(features @ features.T, gram - residual, atol=1e-12 * scale)
    assert found.error == pytest.approx(np.trace(residual), rel=1e-11)
    assert found.largest_residual == pytest.approx(residual.diagonal().max(), rel=1e-11)


def test_panels_of_the_real_size_are_greedy():
    X = _data(1200, d=6)
    kernel = InstanceKernel("rbf", gamma=0.1)
    pivots, _ = _greedy(kernel.gram(X), X, 70)
    np.testing.assert_array_equal(pivoted_cholesky(kernel, X, rank=70).indices, pivots)


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
@pytest.mark.parametrize("rank", [2, 10, 40])
def test_error_bounds_the_spectral_error(small_blocks, kernel, rank):
    X = _data(60, d=12, seed=3)
    gram = kernel.gram(X)
    found, features = cholesky_features(kernel, X, rank=rank)
    error = gram - features @ features.T
    values = np.linalg.eigvalsh(error)
    rounding = 1e-13 * np.trace(gram)
    assert values.min() >= -rounding  # what is missing is positive semi-definite
    assert values.max() <= found.error + rounding
    assert np.abs(error).max() <= found.largest_residual + rounding
    assert found.trace == pytest.approx(np.trace(gram), rel=1e-14)
    assert found.error == pytest.approx(np.trace(gram) - (features**2).sum(), abs=rounding)
    assert found.relative_error == found.error / found.trace
    assert found.residual_trace(X) == pytest.approx(found.error, abs=rounding)


@pytest.mark.parametrize("name", ["laplacian", "chi2", "cosine"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_other_kernels(small_blocks, name, form):
    kernel = InstanceKernel(name, gamma=0.1)
    X = np.abs(_data(50, d=12, density=0.7))
    gram = kernel.gram(X)
    pivots, residual = _greedy(gram, X, 10)
    found, features = cholesky_features(kernel, form(X), rank=10)
    np.testing.assert_array_equal(found.indices, pivots)
    np.testing.assert_allclose(features @ features.T, gram - residual, atol=1e-12)
    np.testing.assert_allclose(found.transform(form(X)), features, atol=1e-11)


def test_full_rank_is_exact(small_blocks):
    X = _data(45, d=6)
    gram = RBF.gram(X)
    found, features = cholesky_features(RBF, X, rank=45)
    assert found.rank == 45
    np.testing.assert_allclose(features @ features.T, gram, atol=1e-13)
    order = found.indices
    factor = np.linalg.cholesky(gram[np.ix_(order, order)])
    np.testing.assert_allclose(features[order], factor, atol=1e-12)
    assert found.error < 1e-12


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_transform_of_the_data_is_the_factor(small_blocks, kernel):
    X = _data(60, d=10)
    found, features = cholesky_features(kernel, X, rank=9)
    scale = np.abs(features).max()
    np.testing.assert_allclose(found.transform(X), features, atol=1e-12 * scale)


def test_transform_of_new_rows_projects_on_the_landmarks(small_blocks):
    X, new = _data(60), _data(23, seed=1)
    found = pivoted_cholesky(RBF, X, rank=20)
    cross = RBF.gram(new, found.landmarks)
    expected = cross @ np.linalg.solve(RBF.gram(found.landmarks), cross.T)
    features = found.transform(new)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-10)
    missing = RBF.diagonal(new).sum() - np.trace(expected)
    assert found.residual_trace(new) == pytest.approx(missing, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nothing_is_missing_where_the_rank_is_full(dtype):
    for seed in range(5):
        X = _data(30, seed=seed, dtype=dtype)
        missing = pivoted_cholesky(RBF, X, rank=30).residual_trace(X)
        assert 0.0 <= missing <= 30 * np.sqrt(np.finfo(dtype).eps)


def test_stored_zeros_choose_no_other_landmarks():
    X = sp.csr_array(_data(50, density=0.5))
    more = X.copy()
    more.data[::7] = 0.0
    less = more.copy()
    less.eliminate_zeros()
    chosen = [nystroem(RBF, A, rank=10, rng=np.random.default_rng(0)) for A in (more, less)]
    np.testing.assert_array_equal(chosen[0].indices, chosen[1].indices)


def test_expansion_is_the_linear_function_of_the_features(small_blocks):
    X, new = _data(50), _data(31, seed=1)
    found = pivoted_cholesky(RBF, X, rank=12)
    w = np.random.default_rng(2).normal(size=(3, 12))
    scores = RBF.expand(new, found.landmarks, found.expansion(w))
    np.testing.assert_allclose(scores, found.transform(new) @ w.T, atol=1e-10)
    np.testing.assert_allclose(found.expansion(w[1]), found.expansion(w)[1], atol=1e-12)


@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-3, 1e-8])
def test_tol_stops_at_the_first_rank_that_is_good_enough(small_blocks, tol):
    X = _data(70, d=3)
    gram = RBF.gram(X)
    shares = [np.trace(_greedy(gram, X, rank)[1]) / np.trace(gram) for rank in range(71)]
    first = int(np.argmax(np.array(shares) <= tol))
    found, features = cholesky_features(RBF, X, rank=70, tol=tol)
    assert found.rank == first == features.shape[1]
    assert found.relative_error == pytest.approx(shares[first], rel=1e-6)
    assert pivoted_cholesky(RBF, X, rank=first - 1, tol=tol).rank == first - 1


def test_ties_go_to_the_shortest_row_then_the_lowest_index(small_blocks):
    X = 100.0 * np.eye(40)  # all residuals stay 1
    found = pivoted_cholesky(RBF, X, rank=25)
    np.testing.assert_array_equal(found.indices, np.arange(25))
    repeated = np.repeat(_data(20, d=30), 4, axis=0)
    found = pivoted_cholesky(RBF, repeated, rank=20)
    np.testing.assert_array_equal(found.indices % 4, 0)


def test_the_order_of_rows_does_not_matter(small_blocks):
    X = _data(90, d=5)
    order = np.random.default_rng(1).permutation(90)
    found = pivoted_cholesky(RBF, X, rank=12)
    np.testing.assert_array_equal(
        order[pivoted_cholesky(RBF, X[order], rank=12).indices], found.indices
    )


def _repeated(seed=0):
    return np.tile(_data(11, seed=seed), (5, 1))


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_lower_rank_is_found(small_blocks, offset, dtype):
    X = (_repeated() + offset).astype(dtype)
    found, features = cholesky_features(RBF, X, rank=50)
    rounding = np.finfo(dtype).eps * (1 + RBF.gamma * 4 * offset**2)
    gram = RBF.gram(X.astype(np.float64) - offset)  # differences are exact, so is this kernel
    np.testing.assert_allclose(features @ features.T, gram, atol=100 * rounding)
    if offset == 0.0:
        assert found.rank == 11
        assert len(nystroem(RBF, X, rank=50, rng=np.random.default_rng(0)).indices) == 11


def test_rank_of_linear_kernels(small_blocks):
    X = _data(60, d=5) @ _data(5, d=30, seed=1)
    found, features = cholesky_features(InstanceKernel("linear"), X, rank=60)
    assert found.rank == 5
    np.testing.assert_allclose(features @ features.T, X @ X.T, atol=1e-10)
    drawn = nystroem(InstanceKernel("linear"), X, rank=40, rng=np.random.default_rng(0))
    assert drawn.rank == 5
    np.testing.assert_allclose(drawn.transform(X) @ drawn.transform(X).T, X @ X.T, atol=1e-9)


@pytest.mark.parametrize("make", ["cholesky", "nystroem"])
def test_constant_rows_one_row_and_zero_rows(make):
    def fitted(kernel, X):
        if make == "cholesky":
            return pivoted_cholesky(kernel, X, rank=3)
        return nystroem(kernel, X, rank=3, rng=np.random.default_rng(0))

    for X in (np.full((9, 2), 7.0), np.array([[1.0, 2.0]])):
        found = fitted(RBF, X)
        assert found.rank == 1
        np.testing.assert_allclose(found.transform(X), np.ones((len(X), 1)), atol=1e-13)
    nothing = fitted(InstanceKernel("linear"), np.zeros((4, 2)))
    assert nothing.rank == 0
    assert nothing.transform(np.ones((5, 2))).shape == (5, 0)
    assert nothing.relative_error in (None, 0.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_nystroem_is_that_of_scikit_learn(kernel):
    X, new = _data(80, d=12), _data(30, d=12, seed=1)
    found = nystroem(kernel, X, rank=10, rng=np.random.default_rng(5))
    assert len(np.unique(found.indices)) == 10
    np.testing.assert_array_equal(found.landmarks, X[found.indices])
    numbers = {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    given = {} if kernel.name == "linear" else numbers
    if kernel.name == "rbf":
        given = {"gamma": kernel.gamma}
    peer = Nystroem(kernel=kernel.name, n_components=10, random_state=0, **given)
    peer.fit(X[found.indices])  # all of them become its landmarks
    expected = peer.transform(new) @ peer.transform(new).T
    features = found.transform(new)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-10 * expected.max())
    assert found.error is None
    assert found.relative_error is None


def test_nystroem_draws_uniformly_among_distinct_rows():
    X = np.vstack([np.zeros((96, 1)), [[1.0], [2.0], [3.0]]])  # 4 values, one very common
    draws = 300
    rng = np.random.default_rng(0)
    first = np.array([nystroem(RBF, X, rank=1, rng=rng).landmarks[0, 0] for _ in range(draws)])
    counts = np.bincount(first.astype(int), minlength=4)
    bound = np.sqrt(draws * np.log(2 * 4 / 1e-9) / 2)  # Hoeffding, all four counts at once
    assert np.abs(counts - draws / 4).max() <= bound


def test_nystroem_depends_neither_on_order_nor_on_repetitions():
    X = _data(50)
    weight = np.random.default_rng(1).integers(0, 4, 50).astype(np.float64)
    repeated = np.repeat(X, weight.astype(int), axis=0)[::-1]
    a = nystroem(RBF, X, rank=9, rng=np.random.default_rng(2), row_weight=weight)
    b = nystroem(RBF, repeated, rank=9, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(a.landmarks, b.landmarks)
    assert (weight[a.indices] > 0).all()
    other = nystroem(RBF, X, rank=9, rng=np.random.default_rng(3), row_weight=weight)
    assert set(other.indices) != set(a.indices)


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_sparse_equals_dense(small_blocks, kernel):
    X = _data(60, d=30, density=0.2)
    dense, dense_features = cholesky_features(kernel, X, rank=20)
    sparse, sparse_features = cholesky_features(kernel, sp.csr_array(X), rank=20)
    np.testing.assert_array_equal(dense.indices, sparse.indices)
    assert sp.issparse(sparse.landmarks)
    scale = np.abs(dense_features).max()
    np.testing.assert_allclose(sparse_features, dense_features, atol=1e-11 * scale)
    for found in (dense, sparse):
        for rows in (X, sp.csr_array(X)):
            np.testing.assert_allclose(found.transform(rows), dense_features, atol=1e-11 * scale)
    drawn = [
        nystroem(kernel, A, rank=9, rng=np.random.default_rng(0)) for A in (X, sp.csr_array(X))
    ]
    np.testing.assert_array_equal(drawn[0].indices, drawn[1].indices)


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_single_precision(small_blocks, kernel):
    X = _data(70, d=10, dtype=np.float32)
    gram = kernel.gram(X.astype(np.float64))
    found, features = cholesky_features(kernel, X, rank=8)
    assert features.dtype == found.transform(X).dtype == found.landmarks.dtype == np.float32
    assert found.projection.dtype == np.float64
    _, residual = _greedy(gram, X, 8)
    scale = gram.diagonal().max()
    np.testing.assert_allclose(features @ features.T, gram - residual, atol=1e-4 * scale)
    np.testing.assert_allclose(found.transform(X), features, atol=1e-4 * np.sqrt(scale))
    assert found.error == pytest.approx(np.trace(residual), abs=1e-5 * np.trace(gram))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_threads_do_not_change_a_bit(small_blocks, form, dtype):
    X = form(_data(90, d=9, dtype=dtype, density=0.6))
    results = []
    for n_threads in (1, 3):
        found, features = cholesky_features(RBF, X, rank=25, n_threads=n_threads)
        drawn = nystroem(RBF, X, rank=25, rng=np.random.default_rng(0), n_threads=n_threads)
        waves = random_fourier(RBF, 9, rank=25, rng=np.random.default_rng(0))
        results.append(
            [
                found.indices, found.projection, features, np.array([found.error]),
                found.transform(X, n_threads=n_threads),
                drawn.transform(X, n_threads=n_threads),
                waves.transform(X, n_threads=n_threads),
            ]
        )  # fmt: skip
    for one, three in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)


def test_an_error_names_the_row_of_the_whole_matrix(small_blocks):
    X = np.abs(_data(30))
    found = pivoted_cholesky(InstanceKernel("chi2"), X, rank=3)
    X[21, 2] = -0.5
    with pytest.raises(ValueError, match=r"Got -0.5 in row 21, column 2"):
        found.transform(X)


def test_a_kernel_that_is_called(small_blocks):
    def called(a, b):
        return np.exp(-0.3 * ((a[:, None] - b[None]) ** 2).sum(-1))

    X = _data(40)
    found, features = cholesky_features(InstanceKernel(called), X, rank=15)
    expected, expected_features = cholesky_features(RBF, X, rank=15)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(features, expected_features, atol=1e-10)
    np.testing.assert_allclose(found.transform(X), expected.transform(X), atol=1e-10)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: -(a @ b.T),
        lambda a, b: np.full((len(a), len(b)), np.nan),
        lambda a, b: np.tanh(3.0 * a @ b.T + 1.0),
        lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1) + (a[:, :1] == b[:, :1].T),
    ],
    ids=["negative", "nan", "sigmoid", "distance"],
)
def test_kernels_that_are_not_positive_semidefinite_are_refused(function):
    with pytest.raises(ValueError, match="positive semi-definite"):
        pivoted_cholesky(InstanceKernel(function), _data(40), rank=30)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_instances_that_are_not_finite_are_refused(kernel, value):
    X = _data(20)
    X[13, 1] = value
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="finite values"):
        pivoted_cholesky(kernel, X, rank=5)


def test_wrong_arguments_are_refused():
    X, rng = _data(10), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"rank of pivoted_cholesky must be at least 1\. Got 0"):
        pivoted_cholesky(RBF, X, rank=0)
    with pytest.raises(ValueError, match=r"tol of pivoted_cholesky .* Got 1\.5"):
        pivoted_cholesky(RBF, X, rank=2, tol=1.5)
    with pytest.raises(ValueError, match=r"at least one row in X. Got shape \(0, 4\)"):
        nystroem(RBF, X[:0], rank=2, rng=rng)
    with pytest.raises(ValueError, match="rank of nystroem"):
        nystroem(RBF, X, rank=-1, rng=rng)
    with pytest.raises(ValueError, match="row_weight of nystroem"):
        nystroem(RBF, X, rank=2, rng=rng, row_weight=np.zeros(10))
    found = pivoted_cholesky(RBF, X, rank=3)
    with pytest.raises(ValueError, match="same number of features"):
        found.transform(X[:, :2])
    with pytest.raises(ValueError, match=r"w must have shape .* Got \(2,\)"):
        found.expansion(np.ones(2))
    with pytest.raises(ValueError, match=r"\"rbf\" or \"laplacian\"\. Got 'poly'"):
        random_fourier(InstanceKernel("poly"), 4, rank=3, rng=rng)
    with pytest.raises(ValueError, match=r"gamma above 0\. Got 0"):
        random_fourier(InstanceKernel("rbf", gamma=0.0), 4, rank=3, rng=rng)
    with pytest.raises(ValueError, match="rank of random_fourier"):
        random_fourier(RBF, 4, rank=0, rng=rng)
    with pytest.raises(ValueError, match="X must have 4 features"):
        random_fourier(RBF, 4, rank=2, rng=rng).transform(X[:, :2])


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_fourier_features_are_unbiased(name, form):
    X = _data(20, d=3, seed=1, density=0.7)
    rank = 100_000
    power = {"rbf": 2, "laplacian": 1}[name]
    expected = np.exp(-0.4 * (np.abs(X[:, None] - X[None]) ** power).sum(-1))
    kernel = InstanceKernel(name, gamma=0.4)
    found = random_fourier(kernel, 3, rank=rank, rng=np.random.default_rng(0))
    assert found.rank == rank
    features = found.transform(form(X))
    # Each of the terms lies in [-2, 2] (Hoeffding), for all pairs at once.
    bound = np.sqrt(8 * np.log(2 * expected.size / 1e-9) / rank)
    assert np.abs(features @ features.T - expected).max() <= bound


def test_fourier_features_are_the_formula(small_blocks):
    X = _data(21)
    found = random_fourier(RBF, 4, rank=37, rng=np.random.default_rng(0))
    expected = np.sqrt(2 / 37) * np.cos(X @ found.weights + found.offset)
    np.testing.assert_allclose(found.transform(X), expected, atol=1e-13)
    single = found.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-5)
