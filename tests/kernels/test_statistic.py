"""Statistics of bags against plain numpy, bag by bag."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise.kernels import InstanceKernel
from bagwise.kernels._statistic import bag_statistics

STATISTICS = {
    "minmax": lambda bag: np.concatenate([bag.min(axis=0), bag.max(axis=0)]),
    "mean": lambda bag: bag.mean(axis=0),
    "mean_std": lambda bag: np.concatenate([bag.mean(axis=0), bag.std(axis=0)]),
}


def _dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def _bags(seed=0, density=0.3):
    """Return sparse rows and bags that overlap, out of order, and leave rows out."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < density)
    return X, np.array([30, 0, 3, 3, 20, 5]), np.array([39, 3, 4, 17, 21, 6])


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.asfortranarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_bag_alone(statistic, form, dtype):
    X, starts, stops = _bags()
    X = X.astype(dtype)
    expected = [
        STATISTICS[statistic](X[a:b].astype(float)) for a, b in zip(starts, stops, strict=True)
    ]
    found = bag_statistics(form(X), starts, stops, statistic)
    assert found.dtype == dtype
    assert sp.issparse(found) == (form is sp.csr_array)
    found = _dense(found)
    rtol = 1e-12 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    if statistic == "minmax":
        np.testing.assert_array_equal(found, expected)


def test_zeros_that_are_not_stored_count():
    X = sp.csr_array(np.array([[-1.0, 2.0], [0.0, 3.0], [-2.0, 0.0]]))
    found = bag_statistics(X, np.array([0, 0]), np.array([3, 1])).toarray()
    np.testing.assert_array_equal(found, [[-2.0, 0.0, 0.0, 3.0], [-1.0, 2.0, -1.0, 2.0]])


def test_stored_zeros_change_nothing():
    X, starts, stops = _bags()
    stored = sp.csr_array(np.where(X == 0, 9.0, X))
    stored.data[stored.data == 9.0] = 0.0
    for statistic in STATISTICS:
        np.testing.assert_allclose(
            bag_statistics(stored, starts, stops, statistic).toarray(),
            bag_statistics(X, starts, stops, statistic),
            rtol=1e-14,
            atol=1e-15,
        )


def test_order_inside_a_bag_and_threads_do_not_matter():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 40))
    starts, stops = np.array([0, 1000]), np.array([1000, 3000])
    shuffled = np.concatenate([rng.permutation(1000), 1000 + rng.permutation(2000)])
    one = bag_statistics(X, starts, stops, n_threads=1)
    np.testing.assert_array_equal(bag_statistics(X[shuffled], starts, stops), one)
    np.testing.assert_array_equal(bag_statistics(X, starts, stops, n_threads=3), one)


def test_a_bag_of_one_instance_has_no_spread():
    X = np.array([[0.1, 0.7], [0.3, 0.2]])
    found = bag_statistics(X, np.array([0, 1]), np.array([1, 2]), "mean_std")
    np.testing.assert_array_equal(found, np.hstack([X, np.zeros((2, 2))]))


def test_polynomial_minimax_kernel():
    X, starts, stops = _bags(density=1.0)
    vectors = bag_statistics(X, starts, stops)
    gram = InstanceKernel("poly", gamma=1 / X.shape[1], coef0=1.0, degree=3).gram(vectors)
    s = [STATISTICS["minmax"](X[a:b]) for a, b in zip(starts, stops, strict=True)]
    expected = [[(a @ b / X.shape[1] + 1.0) ** 3 for b in s] for a in s]
    np.testing.assert_allclose(gram, expected, rtol=1e-12)


def test_no_bags():
    nothing = np.zeros(0, np.int64)
    for X in (np.ones((3, 2)), sp.csr_array(np.ones((3, 2)))):
        assert bag_statistics(X, nothing, nothing).shape == (0, 4)
        assert bag_statistics(X, nothing, nothing, "mean_std").shape == (0, 4)


def test_refused():
    X = np.ones((4, 2))
    with pytest.raises(ValueError, match=r"statistic of bag_statistics .* Got 'median'"):
        bag_statistics(X, np.array([0]), np.array([2]), "median")
    with pytest.raises(ValueError, match="Bag 1 has none"):
        bag_statistics(X, np.array([0, 2]), np.array([2, 2]))
    with pytest.raises(ValueError, match=r"Bag 0 .* Got 0:9"):
        bag_statistics(X, np.array([0]), np.array([9]))
