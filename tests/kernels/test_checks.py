"""What is said of Gram matrices that a user gives."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

import bagwise.kernels._checks as checks
from bagwise.kernels._checks import check_psd


def _with_eigenvalues(eigenvalues, seed=0):
    n = len(eigenvalues)
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    gram = (basis * eigenvalues) @ basis.T
    return 0.5 * (gram + gram.T)


@pytest.fixture
def estimate(monkeypatch):
    monkeypatch.setattr(checks, "_EXACT_ROWS", 0)


@given(st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=30), st.integers(0, 1000))
def test_is_the_smallest_eigenvalue_over_the_largest(eigenvalues, seed):
    eigenvalues = np.array(eigenvalues)
    size = abs(eigenvalues).max()
    expected = min(0.0, eigenvalues.min() / size) if size > 1e-300 else 0.0
    value = check_psd(_with_eigenvalues(eigenvalues, seed), name="K")
    assert -1.0 <= value <= 0.0
    if size > 1e-300:
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lowest", [-3.0, -0.5, -1e-3, 0.0, 0.1])
def test_estimate_agrees_with_the_eigenvalues(estimate, dtype, lowest):
    eigenvalues = np.random.default_rng(1).random(150) ** 4 * 2.0
    eigenvalues[0] = lowest
    eigenvalues = np.maximum(eigenvalues, lowest)
    gram = _with_eigenvalues(eigenvalues).astype(dtype)
    exact = np.linalg.eigvalsh(gram.astype(np.float64))
    expected = min(0.0, exact[0] / abs(exact).max())
    value = check_psd(gram, name="K")
    assert value == pytest.approx(expected, abs=1e-5)
    assert value >= expected - 1e-12  # from above
    assert check_psd(gram, name="K") == value


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_estimate_of_few_distinct_eigenvalues(estimate, n):
    assert check_psd(np.eye(n), name="K") == 0.0
    assert check_psd(-2.0 * np.eye(n), name="K") == -1.0
    assert check_psd(np.zeros((n, n)), name="K") == 0.0
    assert check_psd(np.ones((n, n)), name="K") == pytest.approx(0.0, abs=1e-12)


def test_estimate_of_a_gaussian_gram_matrix(estimate):
    X = np.random.default_rng(0).normal(size=(600, 5))
    gram = rbf_kernel(X, gamma=0.1)  # hundreds of eigenvalues crowd above 0
    assert -1e-12 <= check_psd(gram, name="K") <= 0.0
    exact = np.linalg.eigvalsh(gram)
    bent = gram - 0.01 * exact[-1] * np.eye(600)
    assert check_psd(bent, name="K") == pytest.approx(
        (exact[0] / exact[-1] - 0.01) / 0.99, abs=1e-5
    )


def test_empty_integer_and_flag_matrices():
    assert check_psd(np.empty((0, 0)), name="K") == 0.0
    assert check_psd([[2, 1], [1, 2]], name="K") == 0.0
    assert check_psd([[1, 2], [2, 1]], name="K") == pytest.approx(-1 / 3)
    assert check_psd(np.array([[True]]), name="K") == 0.0


def test_input_is_left_alone():
    gram = _with_eigenvalues(np.array([1.0, 2.0, -1.0]))
    before = gram.copy()
    gram.flags.writeable = False
    check_psd(gram, name="K")
    np.testing.assert_array_equal(gram, before)


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.ones((2, 3)), r"^train must be a square matrix. Got shape \(2, 3\)"),
        (np.ones(4), r"train must be a square matrix. Got shape \(4,\)"),
        (sp.eye_array(3), "train must be a dense array. Got a sparse matrix"),
        (np.eye(2) * 1j, "train must hold real numbers. Got dtype complex128"),
        (np.array([["a"]]), "train must hold real numbers. Got dtype <U1"),
    ],
    ids=["wide", "flat", "sparse", "complex", "text"],
)
def test_what_is_no_gram_matrix(gram, message):
    with pytest.raises(ValueError, match=message):
        check_psd(gram, name="train")


@pytest.mark.parametrize("at", [(3, 700), (700, 3), (0, 0), (699, 650)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_entries_that_are_not_finite_are_named(at, value):
    gram = np.eye(701)
    gram[at] = value
    message = rf"K must be finite. Got {value} in row {at[0]}, column {at[1]}\."
    with pytest.raises(ValueError, match=message):
        check_psd(gram, name="K")


def test_the_largest_difference_is_named():
    gram = np.eye(600)
    gram[2, 3] = 0.25
    gram[590, 7] = 0.5
    message = r"K must be symmetric. Entries \(7, 590\) and \(590, 7\) differ by 0.5: 0 and 0.5"
    with pytest.raises(ValueError, match=message):
        check_psd(gram, name="K")


@pytest.mark.parametrize(("dtype", "small"), [(np.float64, 1e-10), (np.float32, 1e-5)])
def test_rounding_is_not_asymmetry(dtype, small):
    gram = 100.0 * np.eye(4, dtype=dtype)
    gram[0, 1] = 100.0 * small
    assert check_psd(gram, name="K") == 0.0
    gram[0, 1] = 1e4 * small * 100.0
    with pytest.raises(ValueError, match="symmetric"):
        check_psd(gram, name="K")
