"""Plain references and strategies for the tests of bags: loops, dictionaries, no tricks."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator, ClassifierMixin

from bagwise import Bags

FLOATS = [np.float32, np.float64]


def loop(function, values, starts, stops):
    """Return ``function`` of the rows of each bag, one after another."""
    return np.stack([function(values[a:b]) for a, b in zip(starts, stops, strict=True)])


def grouped(rows, ids):
    """Return a dictionary from each id, in order of appearance, to its rows."""
    groups = {}
    for row, name in zip(rows, ids, strict=True):
        groups.setdefault(name, []).append(row)
    return groups


def dense(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def address(array):
    return array.__array_interface__["data"][0]


def assert_same_bags(got, expected):
    """Everything that can be seen of two `Bags` is equal."""
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    assert got.is_sparse == expected.is_sparse
    assert got.allow_nan == expected.allow_nan
    np.testing.assert_array_equal(got.offsets, expected.offsets)
    np.testing.assert_array_equal(dense(got.instances), dense(expected.instances))
    for name in ALIGNED:
        values, others = getattr(got, name), getattr(expected, name)
        assert (values is None) == (others is None), name
        if values is not None:
            assert values.dtype.kind == others.dtype.kind
            np.testing.assert_array_equal(values, others, err_msg=name)


ALIGNED = [
    "bag_names", "labels", "instance_names", "instance_labels", "feature_names", "label_names",
]  # fmt: skip


def full_bags(sizes=(3, 1, 4, 2), n_features=3, dtype=np.float64, seed=0, layout=None):
    """Return bags with everything that can be known about them; ``layout`` makes them sparse."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    instances = rng.normal(size=(n, n_features)).astype(dtype)
    if layout is not None:
        instances[rng.random(instances.shape) < 0.6] = 0
        instances = layout(instances)
    return Bags(
        instances,
        offsets,
        bag_names=[f"bag{i}" for i in range(len(sizes))],
        labels=rng.integers(0, 2, size=(len(sizes), 2)),
        instance_names=[f"row{i}" for i in range(n)],
        instance_labels=rng.integers(0, 5, size=n),
        feature_names=[f"f{j}" for j in range(n_features)],
        label_names=["cat", "dog"],
    )


def sizes_lists(max_bags=12, max_size=6):
    return st.lists(st.integers(1, max_size), min_size=1, max_size=max_bags)


@st.composite
def segmented(draw, elements, *, disjoint=False, max_rows=24):
    """Draw (values, starts, stops): a vector or a matrix, bags in any order."""
    n_rows = draw(st.integers(1, max_rows))
    n_columns = draw(st.sampled_from([None, 1, 3]))
    shape = n_rows if n_columns is None else (n_rows, n_columns)
    dtype = draw(st.sampled_from(FLOATS))
    values = draw(hnp.arrays(np.float64, shape, elements=elements)).astype(dtype)
    if disjoint:
        cuts = draw(st.sets(st.integers(1, n_rows - 1), max_size=8)) if n_rows > 1 else set()
        bounds = [0, *sorted(cuts), n_rows]
        bags = list(pairwise(bounds))
        bags = draw(st.permutations(bags))[: draw(st.integers(1, len(bags)))]
    else:
        bag = st.tuples(st.integers(0, n_rows - 1), st.integers(1, n_rows))
        bags = draw(st.lists(bag.filter(lambda pair: pair[0] < pair[1]), min_size=1, max_size=8))
    starts, stops = np.array(bags, dtype=np.int64).T
    return values, starts, stops


class NearestMean(ClassifierMixin, BaseEstimator):
    """A bag has the class whose mean of bag means is nearest: enough to drive scikit-learn."""

    def __init__(self, shrink=0.0):
        self.shrink = shrink

    def fit(self, X, y):
        assert isinstance(X, Bags)
        assert len(X) == len(y)
        self.classes_ = np.unique(y)
        means = self._means(X)
        self.centers_ = np.stack([means[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X):
        centers = (1 - self.shrink) * self.centers_
        far = ((self._means(X)[:, None] - centers) ** 2).sum(axis=2)
        return self.classes_[far.argmin(axis=1)]

    @staticmethod
    def _means(X):
        return np.stack([bag.mean(axis=0) for bag in X])
