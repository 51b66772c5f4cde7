"""Strategies draw what they promise, and reach the cases that matter."""

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from bagwise import Bags
from bagwise.testing import strategies

quick = settings(
    max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
search = settings(max_examples=500, deadline=None, derandomize=True)


@quick
@given(strategies.bags(min_bags=2, max_bags=5, max_size=3, max_features=2))
def test_bags_keep_to_the_limits(bags):
    assert isinstance(bags, Bags)
    assert 2 <= len(bags) <= 5
    assert bags.sizes.min() >= 1
    assert bags.sizes.max() <= 3
    assert bags.n_features <= 2
    assert not bags.is_sparse
    assert np.isfinite(bags.instances).all()


@quick
@given(st.data())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_and_layout_are_as_asked(dtype, data):
    bags = data.draw(strategies.bags(dtype=dtype, is_sparse=True, is_selection=True, max_value=2.0))
    assert bags.dtype == dtype
    assert bags.is_sparse
    assert np.abs(bags.instances.data).max(initial=0.0) <= 2.0


@quick
@given(strategies.labelled_bags(n_classes=3))
def test_every_class_has_a_bag(drawn):
    bags, y = drawn
    assert len(bags) == len(y) >= 3
    assert set(y.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    "condition",
    [
        lambda bags: bags.is_sparse,
        lambda bags: not bags.is_sparse,
        lambda bags: bags.dtype == np.float32,
        lambda bags: (bags.sizes == 1).all(),
        lambda bags: (np.diff(bags._starts) < 0).any(),
        lambda bags: len(bags) > len(np.unique(bags._starts)),
        lambda bags: bags.n_instances < bags._base.shape[0],
    ],
    ids=["sparse", "dense", "float32", "ones", "reordered", "repeated", "part"],
)
def test_bags_reach(condition):
    find(strategies.bags(is_sparse=None), condition, settings=search)
