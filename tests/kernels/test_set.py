"""The set kernel against sums over explicit pairs."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import bagwise.kernels._instance as instance
import bagwise.kernels._set as set_kernel
import bagwise.kernels._sides as sides
from bagwise.kernels import InstanceKernel, normalise_set_gram, set_gram, set_self

KERNELS = [
    InstanceKernel("linear"),
    InstanceKernel("poly", gamma=0.3, degree=2, coef0=1.0),
    InstanceKernel("rbf", gamma=0.2),
    InstanceKernel(lambda A, B: np.cos(A @ B.T)),
]


def kernel_name(kernel):
    return getattr(kernel.name, "__name__", kernel.name)


@pytest.fixture(params=[7, 512], ids=["small blocks", "real blocks"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(instance, "BLOCK", request.param)
    monkeypatch.setattr(set_kernel, "BLOCK", request.param)
    monkeypatch.setattr(sides, "BLOCK", request.param)
    monkeypatch.setattr(set_kernel, "_GROUP", request.param)


def _bags(sizes, d=3, seed=0):
    """Return rows and bags in another order than the rows, with overlaps, and rows in no bag."""
    rng = np.random.default_rng(seed)
    stops = np.cumsum(sizes) + 2
    starts = stops - sizes
    order = rng.permutation(len(sizes))
    starts, stops = starts[order], stops[order]
    starts[0] = max(0, starts[0] - 2)
    return rng.normal(size=(int(np.sum(sizes)) + 5, d)), starts, stops


def _pair_sums(kernel, X, starts, stops, Y, y_starts, y_stops, w=None, u=None):
    gram = kernel.gram(X, Y)
    gram = gram * (1.0 if w is None else w[:, None]) * (1.0 if u is None else u)
    return np.array(
        [
            [gram[a:b, c:d].sum() for c, d in zip(y_starts, y_stops, strict=True)]
            for a, b in zip(starts, stops, strict=True)
        ]
    )


SIZES = [3, 1, 30, 2, 7, 1, 1, 16, 4]


@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_all_pairs(blocks, kernel, weighted):
    X, starts, stops = _bags(SIZES)
    Y, y_starts, y_stops = _bags([5, 20, 1], seed=1)
    w = np.random.default_rng(2).random(len(X)) if weighted else None
    u = np.random.default_rng(3).random(len(Y)) if weighted else None
    other = (Y, y_starts, y_stops)
    gram = set_gram(kernel, X, starts, stops, *other, weights=w, y_weights=u)
    expected = _pair_sums(kernel, X, starts, stops, *other, w, u)
    np.testing.assert_allclose(gram, expected, rtol=1e-11, atol=1e-11)

    own = set_gram(kernel, X, starts, stops, weights=w)
    expected = _pair_sums(kernel, X, starts, stops, X, starts, stops, w, w)
    np.testing.assert_allclose(own, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(own, own.T)
    inside = set_self(kernel, X, starts, stops, weights=w)
    np.testing.assert_allclose(inside, expected.diagonal(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=kernel_name)
def test_sparse_instances(blocks, kernel):
    X, starts, stops = _bags(SIZES, d=6)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0.0
    w = np.random.default_rng(2).random(len(X))
    expected = set_gram(kernel, X, starts, stops, weights=w)
    sparse = set_gram(kernel, sp.csr_array(X), starts, stops, weights=w)
    np.testing.assert_allclose(sparse, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(sparse, sparse.T)
    inside = set_self(kernel, sp.csr_array(X), starts, stops, weights=w)
    np.testing.assert_allclose(inside, expected.diagonal(), rtol=1e-12)
    mixed = set_gram(kernel, sp.csr_array(X), starts, stops, X, starts, stops)
    np.testing.assert_allclose(mixed, set_gram(kernel, X, starts, stops), rtol=1e-12, atol=1e-12)


def test_linear_shortcut_is_the_sum_over_pairs(blocks):
    X, starts, stops = _bags(SIZES)
    pairs = InstanceKernel(lambda A, B: A @ B.T)
    for function in (set_gram, set_self):
        np.testing.assert_allclose(
            function(InstanceKernel("linear"), X, starts, stops),
            function(pairs, X, starts, stops),
            rtol=1e-12,
            atol=1e-12,
        )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_threads_do_not_change_a_bit(blocks, form):
    X, starts, stops = _bags(SIZES * 3)
    for kernel in KERNELS[:3]:
        for function in (set_gram, set_self):
            one = function(kernel, form(X), starts, stops, n_threads=1)
            for n_threads in (2, 3):
                many = function(kernel, form(X), starts, stops, n_threads=n_threads)
                np.testing.assert_array_equal(many, one)


def test_a_bag_larger_than_several_blocks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1700, 2))
    starts, stops = np.array([0, 1300, 100]), np.array([1300, 1700, 101])
    kernel = InstanceKernel("rbf", gamma=0.5)
    expected = _pair_sums(kernel, X, starts, stops, X, starts, stops)
    np.testing.assert_allclose(set_gram(kernel, X, starts, stops), expected, rtol=1e-12)
    np.testing.assert_allclose(set_self(kernel, X, starts, stops), expected.diagonal(), rtol=1e-12)


def test_single_precision_is_summed_in_double():
    X = np.full((1200, 1), 0.1, np.float32)
    gram = set_gram(InstanceKernel("rbf", gamma=1.0), X, np.array([0]), np.array([1200]))
    assert gram.dtype == np.float64
    assert gram[0, 0] == 1200.0**2
    product = np.float64(np.float32(0.1)) ** 2
    linear = set_gram(InstanceKernel("linear"), X, np.array([0]), np.array([1200]))
    np.testing.assert_allclose(linear, 1200.0**2 * product, rtol=1e-12)


def test_empty_ranges_sum_to_zero(blocks):
    X, starts, stops = np.ones((20, 2)), np.array([0, 5, 5, 12, 20]), np.array([5, 5, 12, 12, 20])
    expected = np.outer([5, 0, 7, 0, 0], [5, 0, 7, 0, 0])
    for kernel in (InstanceKernel("rbf"), InstanceKernel(lambda A, B: np.ones((len(A), len(B))))):
        np.testing.assert_array_equal(set_gram(kernel, X, starts, stops), expected)
        np.testing.assert_array_equal(set_self(kernel, X, starts, stops), expected.diagonal())
    linear = InstanceKernel("linear")
    np.testing.assert_array_equal(set_gram(linear, X, starts, stops), 2 * expected)


def test_normalised_kernels():
    X, starts, stops = _bags(SIZES)
    kernel = InstanceKernel("rbf", gamma=0.4)
    sizes = (stops - starts).astype(float)
    gram = set_gram(kernel, X, starts, stops)
    mean = normalise_set_gram(gram, sizes, sizes)
    expected = kernel.gram(X[starts[1] : stops[1]], X[starts[2] : stops[2]]).mean()
    np.testing.assert_allclose(mean[1, 2], expected, rtol=1e-12)
    norm = np.sqrt(set_self(kernel, X, starts, stops))
    feature = normalise_set_gram(gram, norm, norm)
    np.testing.assert_allclose(feature.diagonal(), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(feature, feature.T)
    assert np.linalg.eigvalsh(feature).min() > -1e-12
    assert normalise_set_gram(gram, norm, norm, out=gram) is gram
    np.testing.assert_array_equal(gram, feature)


def test_memory_for_many_bags_is_little_more_than_the_result():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    starts = np.arange(2000)
    set_gram(InstanceKernel("rbf"), X, starts[:2], starts[:2] + 1)  # compiled before
    tracemalloc.start()
    gram = set_gram(InstanceKernel("rbf"), X, starts, starts + 1, n_threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(gram, gram.T)
    assert peak < 2.0 * gram.nbytes


def test_memory_does_not_grow_with_the_square_of_the_instances():
    X = np.random.default_rng(0).normal(size=(6000, 2))
    starts = np.arange(0, 6000, 100)
    set_gram(InstanceKernel("rbf"), X, starts[:2], starts[:2] + 100)  # compiled before
    tracemalloc.start()
    set_gram(InstanceKernel("rbf"), X, starts, starts + 100, n_threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6000**2  # bytes: an eighth of the Gram matrix of the instances


def test_a_selection_gives_the_bits_of_its_copy(blocks):
    X, starts, stops = _bags(SIZES)
    copy = np.concatenate([X[a:b] for a, b in zip(starts, stops, strict=True)])
    offsets = np.concatenate([[0], np.cumsum(stops - starts)])
    for kernel in KERNELS[:3]:
        one = set_gram(kernel, X, starts, stops)
        np.testing.assert_array_equal(set_gram(kernel, copy, offsets[:-1], offsets[1:]), one)


def test_memory_mapped_instances(tmp_path):
    X, starts, stops = _bags(SIZES)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for kernel in KERNELS[:3]:
        one = set_gram(kernel, mapped, starts, stops)
        np.testing.assert_array_equal(one, set_gram(kernel, X, starts, stops))


def test_errors_say_what_is_wrong():
    kernel, X = InstanceKernel("rbf"), np.ones((5, 2))
    with pytest.raises(ValueError, match=r"Bag 1 of set_gram must be a range .* Got 3:6"):
        set_gram(kernel, X, np.array([0, 3]), np.array([3, 6]))
    with pytest.raises(ValueError, match="of set_gram must be lists of one length"):
        set_gram(kernel, X, np.array([0, 3]), np.array([3]))
    with pytest.raises(ValueError, match="needs y_starts and y_stops"):
        set_gram(kernel, X, np.array([0]), np.array([3]), X)
    with pytest.raises(ValueError, match=r"same number of features. Got 2 and 3"):
        set_gram(
            kernel, X, np.array([0]), np.array([3]), np.ones((2, 3)), np.array([0]), np.array([2])
        )
    with pytest.raises(ValueError, match=r"weights of set_self must have shape \(5,\). Got \(3,\)"):
        set_self(kernel, X, np.array([0]), np.array([3]), weights=np.ones(3))
