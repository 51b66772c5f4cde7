"""The toy data are what their documentation says."""

import numpy as np
import pytest
from scipy import sparse

from bagwise import Bags
from bagwise.testing import make_toy_bags
from bagwise.testing._data import (
    as_object_array,
    as_one_instance_bags,
    as_selection,
    as_sparse,
    shuffle_instances,
)


@pytest.mark.parametrize("kind", ["apart", "close", "witness"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_shapes_and_classes(kind, n_classes):
    bags, y = make_toy_bags(17, 2, n_classes=n_classes, kind=kind, max_size=4)
    assert len(bags) == len(y) == 17
    assert {bag.shape[1] for bag in bags} == {2}
    assert {len(bag) for bag in bags} == {1, 2, 3, 4}
    counts = np.bincount(y)
    assert len(counts) == n_classes
    assert np.ptp(counts) <= 1


def test_seed_decides():
    one, two, other = (make_toy_bags(random_state=seed)[0] for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one[0], other[0])


def test_classes_apart_are_nearest_to_their_centre():
    bags, y = make_toy_bags(60, 4, n_classes=4)
    means = np.array([bag.mean(axis=0) for bag in bags])
    centres = np.array([means[y == c].mean(axis=0) for c in range(4)])
    distance = np.linalg.norm(means[:, None] - centres, axis=2)
    assert (distance.argmin(axis=1) == y).mean() > 0.95


def test_witness_is_one_instance_of_positive_bags():
    bags, y = make_toy_bags(60, 2, kind="witness")
    far = np.array([(bag[:, 1] > 3.5).sum() for bag in bags])
    assert (far[y == 0] == 0).all()
    assert (far[y == 1] == 1).mean() > 0.95


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"kind must be one of \['apart', .*Got 'odd'"):
        make_toy_bags(kind="odd")


def test_other_shapes_hold_the_same_bags():
    bags, _ = make_toy_bags()
    for other in (as_object_array(bags), as_sparse(bags), as_selection(bags)):
        assert len(other) == len(bags)
        for a, b in zip(other, bags, strict=True):
            np.testing.assert_array_equal(a.toarray() if sparse.issparse(a) else a, b)
    assert as_sparse(bags).is_sparse
    selection = as_selection(bags)
    assert isinstance(selection, Bags)
    assert selection._base.shape[0] > selection.n_instances
    assert (np.diff(selection._starts) < 0).any()


def test_rows_become_bags_of_one():
    matrix = np.arange(6.0).reshape(3, 2)
    assert [bag.tolist() for bag in as_one_instance_bags(matrix)] == [[[0, 1]], [[2, 3]], [[4, 5]]]


def test_instances_are_shuffled_inside_their_bag():
    bags, _ = make_toy_bags()
    shuffled, orders = shuffle_instances(bags)
    assert any(not np.array_equal(a, b) for a, b in zip(bags, shuffled, strict=True))
    for bag, other, order in zip(bags, shuffled, orders, strict=True):
        np.testing.assert_array_equal(bag[order], other)
        np.testing.assert_array_equal(np.sort(order), np.arange(len(bag)))
