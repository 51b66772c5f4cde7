"""Distinct instances, in an order that only their values and the seed decide."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise import Bags
from bagwise.bags._distinct import distinct_instances

OFFSETS = np.arange(0, 41, 4)


def _matrix(seed=0, copies=3):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((40, 5)) < 0.5, rng.normal(size=(40, 5)), 0.0)
    X[-copies:] = X[:copies]
    return X


def test_each_value_comes_once_where_it_first_stands():
    X = _matrix()
    found = distinct_instances(Bags(X, OFFSETS), 40, 0)
    _, first = np.unique(X.astype(np.float32), axis=0, return_index=True)
    assert sorted(found.tolist()) == sorted(first.tolist())


@pytest.mark.parametrize("kind", ["float32", "csr", "minus zero", "shuffled", "selected"])
def test_values_decide_the_order(kind):
    X = _matrix()
    expected = X[distinct_instances(Bags(X, OFFSETS), 10, 7)]
    bags = {
        "float32": lambda: Bags(X.astype(np.float32), OFFSETS),
        "csr": lambda: Bags(sp.csr_array(X), OFFSETS),
        "minus zero": lambda: Bags(np.where(X == 0.0, -0.0, X), OFFSETS),
        "shuffled": lambda: Bags(X[::-1], OFFSETS),
        "selected": lambda: Bags(X, OFFSETS)[::-1],
    }[kind]()
    rows = bags.instances[distinct_instances(bags, 10, 7)]
    rows = rows.toarray() if sp.issparse(rows) else rows
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_another_seed_another_order():
    bags = Bags(_matrix(), OFFSETS)
    assert distinct_instances(bags, 5, 0).tolist() != distinct_instances(bags, 5, 1).tolist()


def test_double_precision_counts_where_single_leaves_too_few():
    X = 1.0 + 1e-12 * np.arange(8.0)[:, None]
    bags = Bags(X, [0, 4, 8])
    assert len(distinct_instances(bags, 1, 0)) == 1
    assert len(distinct_instances(bags, 5, 0)) == 8
