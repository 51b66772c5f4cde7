"""The set kernel on any layout of bags, against two loops over pairs of instances."""

from contextlib import contextmanager
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

import bagwise.kernels._instance as instance
import bagwise.kernels._set as set_kernel
import bagwise.kernels._sides as sides
from bagwise.kernels import InstanceKernel, normalise_set_gram, set_gram, set_self

KERNELS = {
    "linear": (InstanceKernel("linear"), linear_kernel),
    "poly": (
        InstanceKernel("poly", gamma=0.5, degree=2, coef0=1.0),
        lambda A, B: polynomial_kernel(A, B, gamma=0.5, degree=2, coef0=1.0),
    ),
    "rbf": (InstanceKernel("rbf", gamma=0.3), lambda A, B: rbf_kernel(A, B, gamma=0.3)),
    "callable": (InstanceKernel(lambda A, B: A @ B.T), linear_kernel),
}


@contextmanager
def _small_blocks(block):
    with (
        mock.patch.object(instance, "BLOCK", block),
        mock.patch.object(sides, "BLOCK", block),
        mock.patch.multiple(set_kernel, BLOCK=block, _GROUP=block),
    ):
        yield


@st.composite
def layouts(draw, n_features=3):
    """Return rows, ranges of them in any order (overlapping, empty, huge), and weights."""
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)
    pairs = st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted)
    ranges = draw(st.lists(pairs, min_size=1, max_size=8))
    if draw(st.booleans()):  # bags side by side, as in most data
        cuts = sorted({0, n, *(a for a, _ in ranges)})
        ranges = list(pairwise(cuts))
    starts, stops = np.array(ranges, np.int64).T
    weights = rng.random(n) * (rng.random(n) < 0.8) if draw(st.booleans()) else None
    return X, starts, stops, weights


def _loop(peer, X, starts, stops, weights, Y, y_starts, y_stops, y_weights):
    w = np.ones(len(X)) if weights is None else weights
    u = np.ones(len(Y)) if y_weights is None else y_weights
    out = np.zeros((len(starts), len(y_starts)))
    for i, (a, b) in enumerate(zip(starts, stops, strict=True)):
        for j, (c, d) in enumerate(zip(y_starts, y_stops, strict=True)):
            if a < b and c < d:
                out[i, j] = w[a:b] @ peer(X[a:b], Y[c:d]) @ u[c:d]
    return out


blocks = st.sampled_from([2, 3, 8, 512])
names = st.sampled_from(sorted(KERNELS))


@given(layouts(), blocks, names)
def test_bags_with_each_other(bags, block, name):
    X, starts, stops, weights = bags
    kernel, peer = KERNELS[name]
    expected = _loop(peer, *bags, *bags)
    with _small_blocks(block):
        gram = set_gram(kernel, X, starts, stops, weights=weights, n_threads=1)
        inside = set_self(kernel, X, starts, stops, weights=weights, n_threads=1)
    unit = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(gram, expected, atol=1e-13 * unit)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(inside, expected.diagonal(), atol=1e-13 * unit)


@given(layouts(), layouts(), blocks, names)
def test_bags_with_others(bags, others, block, name):
    X, starts, stops, weights = bags
    *other, y_weights = others
    kernel, peer = KERNELS[name]
    expected = _loop(peer, *bags, *others)
    with _small_blocks(block):
        gram = set_gram(
            kernel, X, starts, stops, *other, weights=weights, y_weights=y_weights, n_threads=1
        )
    np.testing.assert_allclose(gram, expected, atol=1e-13 * max(1.0, np.abs(expected).max()))


@given(layouts(), blocks, names, st.sampled_from([sp.csr_array, sp.csr_matrix]))
def test_sparse_rows(bags, block, name, form):
    X, starts, stops, weights = bags
    kernel, peer = KERNELS[name]
    if name == "callable":
        kernel = InstanceKernel(lambda A, B: (A @ B.T).toarray())
    expected = _loop(peer, *bags, *bags)
    unit = max(1.0, np.abs(expected).max())
    with _small_blocks(block):
        gram = set_gram(kernel, form(X), starts, stops, weights=weights, n_threads=1)
        inside = set_self(kernel, form(X), starts, stops, weights=weights, n_threads=1)
    np.testing.assert_allclose(gram, expected, atol=1e-13 * unit)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(inside, expected.diagonal(), atol=1e-13 * unit)


@given(layouts(), blocks, names)
def test_single_precision_is_summed_in_double(bags, block, name):
    X, starts, stops, weights = bags
    kernel, peer = KERNELS[name]
    single = X.astype(np.float32)
    expected = _loop(peer, single.astype(float), *bags[1:], single.astype(float), *bags[1:])
    with _small_blocks(block):
        gram = set_gram(kernel, single, starts, stops, weights=weights, n_threads=1)
        inside = set_self(kernel, single, starts, stops, weights=weights, n_threads=1)
    assert gram.dtype == inside.dtype == np.float64
    unit = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(gram, expected, atol=3e-6 * unit)
    np.testing.assert_allclose(inside, expected.diagonal(), atol=3e-6 * unit)


@settings(max_examples=25)
@given(layouts(), layouts(), st.sampled_from([3, 8]), names)
def test_threads_do_not_change_a_bit(bags, others, block, name):
    kernel, _ = KERNELS[name]
    X, starts, stops, weights = bags
    with _small_blocks(block):
        for other in ((), others[:3]):
            first = set_gram(kernel, X, starts, stops, *other, weights=weights, n_threads=1)
            for n_threads in (2, 4):
                again = set_gram(
                    kernel, X, starts, stops, *other, weights=weights, n_threads=n_threads
                )
                np.testing.assert_array_equal(again, first)
        first = set_self(kernel, X, starts, stops, weights=weights, n_threads=1)
        again = set_self(kernel, X, starts, stops, weights=weights, n_threads=2)
        np.testing.assert_array_equal(again, first)


@given(layouts(), blocks, st.sampled_from(["linear", "poly", "rbf"]))
def test_normalised_kernels_are_positive_semi_definite(bags, block, name):
    X, starts, stops, _ = bags
    filled = stops > starts
    if not filled.any():
        return
    starts, stops = starts[filled], stops[filled]
    X = X + 0.5  # so that no bag sums to 0
    kernel, _ = KERNELS[name]
    with _small_blocks(block):
        gram = set_gram(kernel, X, starts, stops, n_threads=1)
        norms = np.sqrt(set_self(kernel, X, starts, stops, n_threads=1))
    sizes = (stops - starts).astype(float)
    for factor in (sizes, norms):
        normalised = normalise_set_gram(gram, factor, factor)
        np.testing.assert_array_equal(normalised, normalised.T)
        assert np.linalg.eigvalsh(normalised).min() >= -1e-10 * max(1.0, normalised.max())
    np.testing.assert_allclose(normalised.diagonal(), 1.0, rtol=1e-9)


def test_mean_normalisation_is_the_kernel_of_mean_embeddings():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    starts, stops = np.array([0, 7, 12]), np.array([7, 12, 30])
    sizes = (stops - starts).astype(float)
    gram = set_gram(InstanceKernel("linear"), X, starts, stops)
    means = np.array([X[a:b].mean(axis=0) for a, b in zip(starts, stops, strict=True)])
    np.testing.assert_allclose(normalise_set_gram(gram, sizes, sizes), means @ means.T, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_no_bags(name):
    kernel, _ = KERNELS[name]
    nothing = np.empty(0, np.int64)
    X = np.ones((3, 2))
    assert set_gram(kernel, X, nothing, nothing).shape == (0, 0)
    assert set_self(kernel, X, nothing, nothing).shape == (0,)
    some = set_gram(kernel, X, nothing, nothing, X, np.array([0]), np.array([2]))
    assert some.shape == (0, 1)


@pytest.mark.parametrize(
    ("starts", "stops", "message"),
    [
        ([-1], [2], "Bag 0 of {name} must be a range of the 5 rows. Got -1:2"),
        ([0, 3], [2, 1], "Bag 1 of {name} must be a range of the 5 rows. Got 3:1"),
        ([[0]], [[2]], "starts and stops of {name} must be lists of one length"),
    ],
)
@pytest.mark.parametrize("function", [set_gram, set_self])
def test_ranges_outside_of_the_rows_are_refused(function, starts, stops, message):
    with pytest.raises(ValueError, match=message.format(name=function.__name__)):
        function(InstanceKernel("rbf"), np.ones((5, 2)), np.array(starts), np.array(stops))


def test_weights_of_the_other_side_are_checked():
    X, starts, stops = np.ones((5, 2)), np.array([0]), np.array([5])
    with pytest.raises(ValueError, match=r"weights of set_gram must have shape \(5,\). Got \(2,\)"):
        set_gram(InstanceKernel("rbf"), X, starts, stops, X, starts, stops, y_weights=np.ones(2))


def test_one_instance_bags_have_norm_one_even_far_from_the_origin():
    """Distances of 0 are known, not computed: rounding here is larger than any of them."""
    X = 1e8 + np.random.default_rng(0).normal(size=(600, 3))
    starts = np.arange(600)
    kernel = InstanceKernel("rbf", gamma=10.0)
    np.testing.assert_array_equal(set_gram(kernel, X, starts, starts + 1).diagonal(), 1.0)
    np.testing.assert_array_equal(set_self(kernel, X, starts, starts + 1), 1.0)
