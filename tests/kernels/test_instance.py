"""Instance kernels against their formulas, written as loops over pairs."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

import bagwise.kernels._instance as instance
import bagwise.kernels._rows as rows
from bagwise.kernels import InstanceKernel, resolve_gamma
from bagwise.kernels._gamma import is_gamma_rule

KERNELS = [
    InstanceKernel("linear"),
    InstanceKernel("poly", gamma=0.3, degree=3, coef0=1.0),
    InstanceKernel("poly", gamma=0.3, degree=1, coef0=0.5),
    InstanceKernel("poly", gamma=0.01, degree=2.5, coef0=3.0),
    InstanceKernel("rbf", gamma=0.2),
    InstanceKernel("laplacian", gamma=0.2),
    InstanceKernel("cosine"),
]


def kernel_name(kernel):
    return getattr(kernel.name, "__name__", kernel.name)


def _pairs(kernel, A, B):
    """Evaluate the kernel pair by pair."""
    formulas = {
        "linear": lambda x, y: x @ y,
        "poly": lambda x, y: (kernel.gamma * (x @ y) + kernel.coef0) ** kernel.degree,
        "rbf": lambda x, y: np.exp(-kernel.gamma * ((x - y) ** 2).sum()),
        "laplacian": lambda x, y: np.exp(-kernel.gamma * abs(x - y).sum()),
        "cosine": lambda x, y: x @ y / (np.sqrt((x @ x) * (y @ y)) or 1.0),
    }
    A, B = np.asarray(A, np.float64), np.asarray(B, np.float64)
    return np.array([[formulas[kernel.name](x, y) for y in B] for x in A])


def _data(n, d=4, seed=0, dtype=np.float64, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    return X.astype(dtype)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(instance, "BLOCK", 8)
    monkeypatch.setattr(rows, "_PASS_ENTRIES", 20)


@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("sparse", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("density", [1.0, 0.1])
def test_gram_is_the_formula(small_blocks, kernel, sparse, density):
    sides = [_data(21, seed=1, density=density), _data(13, seed=2, density=density)]
    given = [sp.csr_array(side) if i in sparse else side for i, side in enumerate(sides)]
    np.testing.assert_allclose(kernel.gram(*given), _pairs(kernel, *sides), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_gram_of_one_side_is_exactly_symmetric(small_blocks, kernel, form):
    A = _data(45, d=3)
    gram = kernel.gram(form(A))
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(gram.diagonal(), kernel.diagonal(form(A)))
    np.testing.assert_allclose(gram, _pairs(kernel, A, A), rtol=1e-12, atol=1e-13)


def test_blocks_of_the_real_size():
    A = _data(1100, d=2)
    kernel = InstanceKernel("rbf", gamma=0.7)
    expected = np.exp(-0.7 * ((A[:, None] - A[None]) ** 2).sum(-1))
    np.testing.assert_allclose(kernel.gram(A), expected, atol=1e-14)
    np.testing.assert_allclose(kernel.gram(A, A[:600]), expected[:, :600], atol=1e-14)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_threads_do_not_change_a_bit(small_blocks, form):
    A, B = form(_data(70, density=0.5)), form(_data(50, seed=1, density=0.5))
    coef = np.random.default_rng(0).normal(size=(2, 50))
    for kernel in KERNELS:
        for n_threads in (2, 3):
            for sides in ((A, None), (A, B)):
                one = kernel.gram(*sides, n_threads=1)
                np.testing.assert_array_equal(kernel.gram(*sides, n_threads=n_threads), one)
            one = kernel.expand(A, B, coef, n_threads=1)
            np.testing.assert_array_equal(kernel.expand(A, B, coef, n_threads=n_threads), one)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_single_precision_stays(form):
    A, B = _data(20, dtype=np.float32), _data(10, seed=1, dtype=np.float32)
    for kernel in KERNELS:
        gram = kernel.gram(form(A), form(B))
        assert gram.dtype == np.float32
        assert kernel.diagonal(form(A)).dtype == np.float32
        assert kernel.gram(form(A)).dtype == np.float32
        assert kernel.gram(form(A), form(B.astype(np.float64))).dtype == np.float64
        np.testing.assert_allclose(gram, _pairs(kernel, A, B), rtol=1e-4, atol=1e-6)


def test_integers_become_double_precision():
    A = np.arange(12).reshape(4, 3)
    gram = InstanceKernel("linear").gram(A)
    assert gram.dtype == np.float64
    np.testing.assert_array_equal(gram, A @ A.T)


def test_gaussian_of_close_rows_far_from_the_origin_is_at_most_one():
    A = 1e4 + 1e-4 * _data(200)
    gram = InstanceKernel("rbf", gamma=1.0).gram(A, A + 0.0)
    assert gram.max() <= 1.0
    np.testing.assert_array_equal(InstanceKernel("rbf", gamma=1.0).gram(A).diagonal(), 1.0)


@pytest.mark.parametrize("left", ["dense", "csr"])
@pytest.mark.parametrize("right", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gaussian_far_from_the_origin_is_exact_in_every_form(left, right, dtype):
    forms = {"dense": np.asarray, "csr": sp.csr_array}
    A = _data(60).astype(dtype)
    A[:, 0] += 2000.0
    wide = A.astype(np.float64)
    expected = np.exp(-0.5 * ((wide[:, None] - wide[None]) ** 2).sum(axis=2))
    gram = InstanceKernel("rbf", gamma=0.5).gram(forms[left](A), forms[right](A))
    np.testing.assert_allclose(gram, expected, atol=1e-13 if dtype == np.float64 else 1e-6)


def test_read_only_and_memory_mapped_input(tmp_path):
    A, B = _data(30), _data(20, seed=1)
    np.save(tmp_path / "rows.npy", A)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for kernel in KERNELS:
        np.testing.assert_array_equal(kernel.gram(mapped), kernel.gram(A))
        np.testing.assert_array_equal(kernel.gram(mapped, B), kernel.gram(A, B))


def test_stored_duplicates_in_a_sparse_matrix_count_once_summed():
    messy = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3])), (1, 2))
    kernel = InstanceKernel("rbf", gamma=0.1)
    expected = np.exp(-0.1 * (16 + 9))
    np.testing.assert_allclose(kernel.gram(messy, np.zeros((1, 2))), expected)
    np.testing.assert_allclose(kernel.gram(messy, sp.csr_array((1, 2))), expected)
    assert messy.nnz == 3


def test_callable_kernel(small_blocks):
    def laplace(A, B):
        return np.exp(-np.abs(A[:, None] - B[None]).sum(-1))

    A, B = _data(21), _data(11, seed=1)
    kernel = InstanceKernel(laplace)
    np.testing.assert_array_equal(kernel.gram(A, B), laplace(A, B))
    np.testing.assert_array_equal(kernel.gram(A), laplace(A, A))
    np.testing.assert_array_equal(kernel.diagonal(A), np.ones(21))


def test_expansion_is_gram_times_coefficients(small_blocks):
    A, B, coef = _data(21), _data(30, seed=1), _data(2, d=30, seed=2)
    for kernel in KERNELS:
        expected = _pairs(kernel, A, B) @ coef.T
        np.testing.assert_allclose(kernel.expand(A, B, coef), expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(
            kernel.expand(sp.csr_array(A), B, coef), expected, rtol=1e-11, atol=1e-11
        )


def test_kernels_are_values():
    assert InstanceKernel("rbf", gamma=2.0) == InstanceKernel("rbf", gamma=2.0)
    assert InstanceKernel("rbf", gamma=2.0) != InstanceKernel("rbf", gamma=3.0)


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"must be one of \[.*'poly', 'rbf'\] or a callable"):
        InstanceKernel("gauss")
    with pytest.raises(ValueError, match=r"same number of features. Got 3 and 2"):
        InstanceKernel("linear").gram(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"two dimensions. Got 1"):
        InstanceKernel("linear").gram(np.ones(3))
    with pytest.raises(ValueError, match=r"shape \(2, 3\). Got shape \(2,\)"):
        InstanceKernel(lambda A, B: np.ones(2)).gram(np.ones((2, 2)), np.ones((3, 2)))


def test_gamma_that_is_a_number():
    assert resolve_gamma(0.25, np.ones((2, 2))) == 0.25
    assert resolve_gamma(np.float32(0.5), np.ones((2, 2))) == 0.5
    assert resolve_gamma("auto", np.ones((2, 4))) == 0.25


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_scale_is_that_of_scikit_learn(small_blocks, form, dtype):
    X = _data(100, dtype=dtype, density=0.6) + dtype(1.0)
    X[X == 1.0] = 0.0
    model = SVC(gamma="scale").fit(X.astype(np.float64), np.arange(100) % 2)
    np.testing.assert_allclose(resolve_gamma("scale", form(X)), model._gamma, rtol=1e-12)


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_weight_is_a_repetition(small_blocks, rule, form):
    X = 5.0 + _data(60)
    X[::7] = 0.0
    weight = np.random.default_rng(0).integers(0, 4, size=60)
    expected = resolve_gamma(rule, form(np.repeat(X, weight, axis=0)))
    weighted = resolve_gamma(rule, form(X), weight.astype(float))
    np.testing.assert_allclose(weighted, expected, rtol=1e-13)
    assert not np.isclose(weighted, resolve_gamma(rule, form(X)), rtol=1e-4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gamma_of_constant_data_is_one(small_blocks, form):
    for value in (0.0, 0.1, 1e8 / 3):
        assert resolve_gamma("scale", form(np.full((30, 7), value))) == 1.0
        assert resolve_gamma("median", form(np.full((30, 7), value))) == 1.0


def test_gamma_scale_of_data_far_from_the_origin(small_blocks):
    X = 1e6 + _data(200)
    np.testing.assert_allclose(resolve_gamma("scale", X), 1.0 / (4 * X.var()), rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gamma_median_is_over_distinct_rows(form):
    X = _data(40, density=0.7)
    distances = [((x - y) ** 2).sum() for i, x in enumerate(X) for y in X[:i]]
    expected = 1.0 / np.median(distances)
    np.testing.assert_allclose(resolve_gamma("median", form(X)), expected, rtol=1e-12)
    again = np.vstack([X[::-1], X[:20], -0.0 * X[:1] + X[:1]])
    np.testing.assert_allclose(resolve_gamma("median", form(again)), expected, rtol=1e-12)


def test_gamma_median_of_many_rows_depends_on_their_set_alone():
    X = _data(3000, d=3)
    gamma = resolve_gamma("median", X)
    order = np.random.default_rng(0).permutation(3000)
    np.testing.assert_allclose(resolve_gamma("median", X[order]), gamma, rtol=1e-12)
    np.testing.assert_allclose(resolve_gamma("median", np.vstack([X, X[:500]])), gamma, rtol=1e-12)
    np.testing.assert_allclose(resolve_gamma("median", sp.csr_array(X)), gamma, rtol=1e-12)
    i, j = np.triu_indices(3000, 1)
    everything = np.median(((X[i] - X[j]) ** 2).sum(-1))
    np.testing.assert_allclose(1.0 / gamma, everything, rtol=0.1)  # 1000 rows speak for all


def test_gamma_of_a_sparse_matrix_does_not_make_it_dense():
    X = sp.random_array((300, 10_000_000), density=1e-6, format="csr", rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve_gamma("scale", X) > 0
        assert resolve_gamma("median", X) > 0


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_gamma_of_values_whose_squares_overflow_is_refused(rule, layout):
    X = np.array([[1e300, 0.0], [-1e300, 2.0], [3.0, 1e299]])
    with pytest.raises(ValueError, match=f"gamma='{rule}' needs instances.*: scale them"):
        resolve_gamma(rule, layout(X))


@pytest.mark.parametrize("rule", ["scale", "median", "auto"])
@pytest.mark.parametrize(
    ("text", "factor"),
    [("{}", 1.0), ("4*{}", 4.0), ("0.5 * {}", 0.5), (" 1e-2*{} ", 0.01), (".5*{}", 0.5)],
)
def test_gamma_rules_with_a_factor(rule, text, factor):
    X = _data(30)
    expected = factor * resolve_gamma(rule, X)
    assert is_gamma_rule(text.format(rule))
    np.testing.assert_allclose(resolve_gamma(text.format(rule), X), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("text", "expected"), [("1/d", 0.25), ("2/d", 0.5), ("0.5/d", 0.125), ("3. / d", 0.75)]
)
def test_gamma_over_the_number_of_features(text, expected):
    assert is_gamma_rule(text)
    assert resolve_gamma(text, np.ones((2, 4))) == expected


def test_a_factor_times_the_gamma_of_constant_data():
    assert resolve_gamma("4*scale", np.ones((3, 2))) == 4.0
    assert resolve_gamma("4*median", np.ones((3, 2))) == 4.0


@pytest.mark.parametrize(
    "text",
    ["", "wide", "0*scale", "0/d", "-1*scale", "1/n", "scale*2", "2*3*scale", "2*1/d", "1/2/d",
     "nan*scale", "inf/d", "1e999*auto", "Scale", "2/ds", "0.5"],
)  # fmt: skip
def test_what_is_no_rule_for_gamma(text):
    assert not is_gamma_rule(text)
    message = r'"scale", "median", "auto", .* "0.5\*scale", or .* "2/d". Got ' + re.escape(
        repr(text)
    )
    with pytest.raises(ValueError, match=message):
        resolve_gamma(text, np.ones((2, 2)))


def test_numbers_are_no_rules():
    for value in (0.5, 1, None, np.float64(2.0)):
        assert not is_gamma_rule(value)


def test_result_goes_where_it_is_wanted():
    A, B = _data(20), _data(7, seed=1)
    room = np.full((30, 40), -7.0)
    kernel = InstanceKernel("rbf", gamma=0.3)
    result = kernel.gram(A, out=room[5:25, 10:30])
    assert np.shares_memory(result, room)
    np.testing.assert_array_equal(room[5:25, 10:30], kernel.gram(A))
    kernel.gram(A, B, out=room[:20, :7])
    np.testing.assert_array_equal(room[:20, :7], kernel.gram(A, B))
    with pytest.raises(ValueError, match=r"out must have shape \(20, 7\). Got \(20, 8\)"):
        kernel.gram(A, B, out=room[:20, :8])


def test_result_has_the_precision_of_its_place():
    A = _data(20)
    kernel = InstanceKernel("rbf", gamma=0.3)
    out = np.empty((20, 20), np.float32)
    assert kernel.gram(A, out=out) is out
    np.testing.assert_array_equal(out, kernel.gram(A).astype(np.float32))


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 12, 13, 16, 21, 40])
def test_blocks_cover_the_upper_half_once(small_blocks, n):
    times = np.zeros((n, n), int)
    for place in instance.tiles(n, n, symmetric=True):
        assert max(part.stop - part.start for part in place) <= 12
        times[place] += 1
    above = np.triu_indices(n)
    np.testing.assert_array_equal(times[above], 1)


def test_gamma_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="gamma must be a number"):
        resolve_gamma("wide", np.ones((2, 2)))
    with pytest.raises(ValueError, match="row_weight must give a weight to each of 2 rows"):
        resolve_gamma("scale", np.ones((2, 2)), np.zeros(2))


def test_expansion_over_many_rows_is_cut_between_blocks(monkeypatch):
    """A worker that sums over all rows of an expansion must look up often, not once at its end."""
    looks = []
    monkeypatch.setattr(instance, "checkpoint", lambda: looks.append(None))
    X = np.zeros((8 * instance.BLOCK, 1))
    InstanceKernel("linear").expand(X[:1], X, np.ones((1, len(X))), n_threads=1)
    assert len(looks) >= 8


def test_median_counts_rows_that_differ_by_rounding_once():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[5] = X[6] * (1 + 1e-15)
    expected = resolve_gamma("median", X[np.arange(20) != 5])
    np.testing.assert_allclose(resolve_gamma("median", X), expected, rtol=1e-12)
    np.testing.assert_allclose(resolve_gamma("median", sp.csr_array(X)), expected, rtol=1e-12)
    assert resolve_gamma("median", X[5:7]) == 1.0
