"""The Laplacian, chi-squared and cosine kernels beside scikit-learn's, and their bad input."""

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import chi2_kernel, cosine_similarity, laplacian_kernel

import bagwise.kernels._coordinates as coordinates
import bagwise.kernels._formulas as formulas
import bagwise.kernels._instance as instance
import bagwise.kernels._rows as rows
from bagwise.kernels import InstanceKernel, set_gram, set_self

NAMES = ["laplacian", "chi2", "cosine"]
FORMS = {"dense": np.asarray, "csr": sp.csr_array}
PEERS = {
    "laplacian": lambda A, B, gamma: laplacian_kernel(A, B, gamma=gamma),
    "chi2": lambda A, B, gamma: chi2_kernel(A, B, gamma=gamma),
    "cosine": lambda A, B, gamma: cosine_similarity(A, B),
}


def _data(n, d, seed=0, dtype=np.float64, density=1.0):
    """Return features that are nowhere negative, and a row of zeros where there is room."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, d)) * (rng.random((n, d)) < density)
    X[1:2] = 0.0
    return X.astype(dtype)


@st.composite
def two_sides(draw):
    d = draw(st.sampled_from([1, 2, 3, 4, 5, 9]))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    sides = []
    for seed in (1, 2):
        n = draw(st.sampled_from([1, 2, 4, 5, 6, 11]))
        X = _data(n, d, seed, dtype, draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])))
        sides.append((X, FORMS[draw(st.sampled_from(sorted(FORMS)))](X)))
    return sides


@given(two_sides(), st.sampled_from(NAMES), st.sampled_from([0.05, 1.0]), st.booleans())
def test_gram_is_that_of_scikit_learn(sides, name, gamma, sparse_loop):
    (A, a), (B, b) = sides
    kernel = InstanceKernel(name, gamma=gamma)
    tolerance = 1e-13 if A.dtype == np.float64 else 2e-6
    with (
        mock.patch.object(instance, "BLOCK", 5),
        mock.patch.object(rows, "_PASS_ENTRIES", 7),
        mock.patch.object(coordinates, "_DENSE_ENOUGH", 2.0 if sparse_loop else -1.0),
    ):
        for left, right, given_left, given_right in ((A, B, a, b), (A, A, a, None)):
            gram = kernel.gram(given_left, given_right, n_threads=1)
            expected = PEERS[name](left.astype(np.float64), right.astype(np.float64), gamma)
            assert gram.dtype == A.dtype
            np.testing.assert_allclose(gram, expected, atol=tolerance)
        np.testing.assert_array_equal(gram, gram.T)
        np.testing.assert_array_equal(gram.diagonal(), kernel.diagonal(a))
        coef = np.random.default_rng(0).normal(size=(2, len(B)))
        expansion = kernel.expand(a, b, coef, n_threads=1)
        np.testing.assert_allclose(
            expansion, kernel.gram(a, b).astype(np.float64) @ coef.T, atol=1e-13
        )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_of_the_real_size(name, form, dtype):
    """More than one tile in each direction of the compiled loop, none of them full."""
    A, B = _data(530, 131, 1, dtype, 0.5), _data(70, 131, 2, dtype, 0.5)
    kernel = InstanceKernel(name, gamma=0.02)
    tolerance = 1e-13 if dtype == np.float64 else 3e-6
    for left, right in ((A, B), (B, A), (A, B[:3]), (B[:1], A)):
        gram = kernel.gram(FORMS[form](left), FORMS[form](right))
        expected = PEERS[name](left.astype(np.float64), right.astype(np.float64), 0.02)
        np.testing.assert_allclose(gram, expected, atol=tolerance)


@pytest.mark.parametrize("name", [*NAMES, "linear", "rbf"])
@pytest.mark.parametrize("slice_terms", [1, 1000])
@pytest.mark.parametrize("density", [1.0, 0.1])
def test_short_slices_do_not_change_a_bit(monkeypatch, name, slice_terms, density):
    A, B = _data(150, 7, 1, density=density), _data(140, 7, 2, density=density)
    kernel = InstanceKernel(name, gamma=0.1)
    dense, sparse = kernel.gram(A, B), kernel.gram(sp.csr_array(A), sp.csr_array(B))
    np.testing.assert_allclose(sparse, dense, atol=1e-13)
    slices = []
    for module in (coordinates, formulas):
        monkeypatch.setattr(module, "_SLICE_TERMS", slice_terms)
        monkeypatch.setattr(module, "checkpoint", lambda: slices.append(None))
    np.testing.assert_array_equal(kernel.gram(sp.csr_array(A), sp.csr_array(B)), sparse)
    assert len(slices) > 1 or (density == 1.0 and name in ("cosine", "linear", "rbf"))
    np.testing.assert_array_equal(kernel.gram(A, B), dense)


@settings(max_examples=30)
@given(two_sides(), st.sampled_from(NAMES))
def test_threads_do_not_change_a_bit(sides, name):
    (_, a), (B, b) = sides
    kernel = InstanceKernel(name, gamma=0.5)
    coef = np.random.default_rng(0).normal(size=(1, len(B)))
    with mock.patch.object(instance, "BLOCK", 5):
        for n_threads in (2, 3):
            for other in (None, b):
                one = kernel.gram(a, other, n_threads=1)
                np.testing.assert_array_equal(kernel.gram(a, other, n_threads=n_threads), one)
            one = kernel.expand(a, b, coef, n_threads=1)
            np.testing.assert_array_equal(kernel.expand(a, b, coef, n_threads=n_threads), one)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_gram_is_positive_semi_definite(name, form):
    X = _data(60, 4, density=0.6)
    X[30:40] = X[:10]
    eigenvalues = np.linalg.eigvalsh(InstanceKernel(name, gamma=0.3).gram(FORMS[form](X)))
    assert eigenvalues[0] > -1e-13 * eigenvalues[-1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_empty_inputs(name, form, dtype):
    make = FORMS[form]
    nothing, some = make(np.ones((0, 3), dtype)), make(_data(4, 3, dtype=dtype))
    kernel = InstanceKernel(name)
    assert kernel.gram(nothing).shape == (0, 0)
    assert kernel.gram(nothing, some).shape == (0, 4)
    assert kernel.gram(some, nothing).shape == (4, 0)
    assert kernel.diagonal(nothing).shape == (0,)
    np.testing.assert_array_equal(kernel.expand(some, nothing, np.ones((2, 0))), np.zeros((4, 2)))
    narrow = kernel.gram(np.ones((2, 0), dtype), np.ones((3, 0), dtype))
    np.testing.assert_array_equal(narrow, 0.0 if name == "cosine" else 1.0)


@pytest.mark.parametrize("form", FORMS)
def test_laplacian_of_features_of_both_signs(form):
    A, B = np.random.default_rng(0).normal(size=(2, 20, 6))
    A[A < -0.5], B[B > 0.5] = 0.0, 0.0
    gram = InstanceKernel("laplacian", gamma=0.4).gram(FORMS[form](A), FORMS[form](B))
    np.testing.assert_allclose(gram, laplacian_kernel(A, B, gamma=0.4), rtol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_laplacian_does_not_hide_nan(form):
    X = np.array([[1.0, np.nan], [0.0, 1.0]])
    gram = InstanceKernel("laplacian").gram(FORMS[form](X), FORMS[form](np.eye(2)))
    np.testing.assert_array_equal(np.isnan(gram), [[True, True], [False, False]])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1.0, 1e160, 1e300])
def test_cosine_does_not_depend_on_length(form, scale):
    X = _data(12, 4)
    gram = InstanceKernel("cosine").gram(FORMS[form](scale * X), FORMS[form](X))
    np.testing.assert_allclose(gram, cosine_similarity(X, X), rtol=1e-13, atol=1e-14)
    own = InstanceKernel("cosine").gram(FORMS[form](scale * X))
    np.testing.assert_allclose(own, cosine_similarity(X, X), rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(own.diagonal(), [1.0, 0.0] + 10 * [1.0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_cosine_of_single_precision_does_not_overflow(form, scale):
    X = _data(12, 4, dtype=np.float32)
    gram = InstanceKernel("cosine").gram(FORMS[form](np.float32(scale) * X))
    np.testing.assert_allclose(gram, cosine_similarity(X, X), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_sums_over_bags(name, form):
    X = _data(40, 3, density=0.5)
    starts, stops = np.array([12, 0, 30]), np.array([30, 12, 33])
    kernel = InstanceKernel(name, gamma=0.3)
    pairs = PEERS[name](X, X, 0.3)
    bags = list(zip(starts, stops, strict=True))
    expected = np.array([[pairs[a:b, c:d].sum() for c, d in bags] for a, b in bags])
    np.testing.assert_allclose(set_gram(kernel, FORMS[form](X), starts, stops), expected)
    inside = set_self(kernel, FORMS[form](X), starts, stops)
    np.testing.assert_allclose(inside, expected.diagonal())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [-0.5, np.nan])
def test_chi2_names_the_entry_that_is_negative(form, value):
    good, bad = _data(30, 4), _data(30, 4)
    bad[21, 2] = value
    good, bad = FORMS[form](good), FORMS[form](bad)
    kernel = InstanceKernel("chi2")
    message = rf'"chi2" needs features .* negative. Got {value} in row 21, column 2 of'
    calls = [
        lambda: kernel.gram(bad),
        lambda: kernel.gram(good, bad),
        lambda: kernel.gram(bad, good),
        lambda: kernel.expand(bad, good, np.ones((1, 30))),
        lambda: kernel.expand(good, bad, np.ones((1, 30))),
        lambda: set_gram(kernel, bad, np.array([18, 3]), np.array([25, 9])),
        lambda: set_gram(kernel, bad, np.array([3, 18]), np.array([9, 25])),
    ]
    with mock.patch.object(instance, "BLOCK", 8), mock.patch.object(rows, "_PASS_ENTRIES", 12):
        for call in calls:
            with pytest.raises(ValueError, match=message):
                call()


def test_chi2_looks_at_each_matrix_once():
    looks = []
    real = formulas.FORMULAS["chi2"]

    def look(A, numbers):
        looks.append(A.shape[0])
        return real.norms(A, numbers)

    watched = formulas.Formula(real.fill, real.diagonal, look)
    X = _data(50, 3)
    with (
        mock.patch.object(instance, "BLOCK", 8),
        mock.patch.dict(formulas.FORMULAS, {"chi2": watched}),
    ):
        InstanceKernel("chi2").gram(X, n_threads=1)
        assert looks == [50]
        InstanceKernel("chi2").expand(X, X[:20], np.ones((1, 20)), n_threads=1)
    assert sum(looks[1:]) == 70


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chi2_of_very_small_and_very_large_features(dtype):
    tiny, huge = (float(np.finfo(dtype).tiny), 1e30)
    X = np.array([[0.0, tiny], [tiny, 0.0], [huge, 0.0], [huge, 1.0]], dtype)
    gram = InstanceKernel("chi2").gram(X, X.copy())
    expected = np.kron(np.eye(2), np.ones((2, 2)))
    expected[2, 3] = expected[3, 2] = np.exp(-1.0)
    np.testing.assert_allclose(gram, expected, rtol=1e-6)
