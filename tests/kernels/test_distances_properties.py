"""Bag distances on any layout of bags, against loops over pairs, and as distances."""

from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import bagwise.kernels._distance_blocks as distance_blocks
from bagwise.kernels._distances import directed, hausdorff, nearest
from bagwise.kernels._metrics import InstanceMetric

NAMES = ["euclidean", "sqeuclidean", "cityblock"]


@st.composite
def layouts(draw, n_features=3):
    """Return rows with many zeros and repetitions, and ranges of them in any order."""
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)
    X = X[rng.integers(n, size=n)] + draw(st.sampled_from([0.0, 100.0]))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(1, n)).filter(lambda ab: ab[0] < ab[1])
    ranges = draw(st.lists(pairs, min_size=1, max_size=8))
    if draw(st.booleans()):  # bags side by side, as in most data
        ranges = list(pairwise(sorted({0, n, *(a for a, _ in ranges)})))
    starts, stops = np.array(ranges, np.int64).T
    return X, starts, stops


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)
@given(left=layouts(), right=layouts(), block=st.integers(1, 12), sparse=st.booleans())
def test_any_layout(name, left, right, block, sparse):
    metric = InstanceMetric(name)
    X, Y = (sp.csr_array(rows) if sparse else rows for rows in (left[0], right[0]))
    with mock.patch.object(distance_blocks, "BLOCK", block):
        both = hausdorff(metric, X, *left[1:], Y, *right[1:])
        ways = directed(metric, X, *left[1:], Y, *right[1:])
        near, where = nearest(metric, X, *left[1:], Y, return_index=True)
    distances = cdist(left[0], right[0], name)
    for i, (a, b) in enumerate(zip(*left[1:], strict=True)):
        np.testing.assert_allclose(near[i], distances[a:b].min(axis=0), rtol=1e-7, atol=1e-9)
        at_index = distances[a + where[i], np.arange(Y.shape[0])]
        np.testing.assert_allclose(at_index, near[i], rtol=1e-7, atol=1e-9)
        for j, (c, d) in enumerate(zip(*right[1:], strict=True)):
            pairs = distances[a:b, c:d]
            forth, back = pairs.min(axis=1), pairs.min(axis=0)
            average = (forth.sum() + back.sum()) / sum(pairs.shape)
            expected = pairs.min(), max(forth.max(), back.max()), average
            np.testing.assert_allclose([m[i, j] for m in both], expected, rtol=1e-7, atol=1e-9)
            expected = pairs.min(), forth.mean(), forth.max(), back.mean(), back.max()
            np.testing.assert_allclose([m[i, j] for m in ways], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["euclidean", "cityblock"])
@settings(deadline=None, max_examples=40)
@given(bags=layouts(), block=st.integers(1, 12))
def test_order_of_the_distances_and_triangle_inequality(name, bags, block):
    with mock.patch.object(distance_blocks, "BLOCK", block):
        both = hausdorff(InstanceMetric(name), *bags)
    for values in both:
        np.testing.assert_array_equal(values, values.T)
        np.testing.assert_array_equal(values.diagonal(), 0.0)
    slack = 1e-9 * (1.0 + both.max.max())
    assert (both.min >= 0.0).all()
    assert (both.min <= both.average + slack).all()
    assert (both.average <= both.max + slack).all()
    through = (both.max[:, :, None] + both.max[None, :, :]).min(axis=1)
    assert (both.max <= through + slack).all()


@settings(deadline=None, max_examples=25)
@given(bags=layouts(), seed=st.integers(0, 1000))
def test_the_order_of_bags_does_not_matter(bags, seed):
    X, starts, stops = bags
    order = np.random.default_rng(seed).permutation(len(starts))
    metric = InstanceMetric("euclidean")
    expected = hausdorff(metric, *bags)
    result = hausdorff(metric, X, starts[order], stops[order])
    for ours, theirs in zip(result, expected, strict=True):
        np.testing.assert_allclose(ours, theirs[np.ix_(order, order)], rtol=1e-8, atol=1e-9)
