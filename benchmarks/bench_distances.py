"""Speed of the bag distances beside the bare matrix product of their instances.

Usage: python benchmarks/bench_distances.py [n_bags]
"""

import sys
from time import perf_counter

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from bagwise._threads import ordered_map
from bagwise.kernels._distances import hausdorff, nearest
from bagwise.kernels._metrics import InstanceMetric
from bagwise.kernels._rows import slices

SIZE, WIDTH = 31, 30
REPEATS = 3
CASES = [
    (np.float64, 1, "euclidean"),
    (np.float64, 2, "euclidean"),
    (np.float32, 1, "euclidean"),
    (np.float32, 2, "euclidean"),
    (np.float64, 1, "cosine"),
    (np.float64, 1, "cityblock"),
]


def best_times(*functions):
    """Time the functions in turn, so that all see the same noise, and return the best of each."""
    times = [[] for _ in functions]
    for _ in range(REPEATS):
        for function, record in zip(functions, times, strict=True):
            start = perf_counter()
            function()
            record.append(perf_counter() - start)
    return [min(record) for record in times]


def products(X, n_threads):
    """Multiply all pairs of blocks into one buffer per row of blocks; keep nothing."""

    def row_of_blocks(rows):
        buffer = np.empty((512, 512), X.dtype)
        for columns in slices(len(X), 512):
            a, b = X[rows], X[columns]
            np.matmul(a, b.T, out=buffer[: len(a), : len(b)])

    for _ in ordered_map(row_of_blocks, slices(len(X), 512), n_threads=n_threads):
        pass


def brute_force(X, starts, stops, n_bags):
    """Find the three distances of the first bags pair by pair."""
    out = np.empty((3, n_bags, n_bags))
    for i in range(n_bags):
        for j in range(n_bags):
            block = cdist(X[starts[i] : stops[i]], X[starts[j] : stops[j]])
            forth, back = block.min(axis=1), block.min(axis=0)
            out[:, i, j] = (
                forth.min(),
                max(forth.max(), back.max()),
                (forth.sum() + back.sum()) / sum(block.shape),
            )
    return out


def bench_hausdorff(n_bags):
    print(f"{n_bags} bags of {SIZE} instances with {WIDTH} features, all three distances")
    starts = np.arange(n_bags, dtype=np.int64) * SIZE
    X = np.random.default_rng(0).normal(size=(n_bags * SIZE, WIDTH))
    for dtype, n_threads, name in CASES:
        rows = X.astype(dtype)
        metric = InstanceMetric(name)
        hausdorff(metric, rows[: 2 * SIZE], starts[:2], starts[:2] + SIZE)  # compiles
        bare, ours = best_times(
            lambda r=rows, n=n_threads: products(r, n),
            lambda r=rows, n=n_threads, m=metric: hausdorff(
                m, r, starts, starts + SIZE, n_threads=n
            ),
        )
        print(
            f"  {dtype.__name__}, {n_threads} thread(s), {name:>9}: "
            f"bare full product {bare:.3f} s, ours {ours:.3f} s, ratio {ours / bare:.2f}"
        )


def bench_brute_force(n_bags=100):
    starts = np.arange(n_bags, dtype=np.int64) * SIZE
    X = np.random.default_rng(0).normal(size=(n_bags * SIZE, WIDTH))
    metric = InstanceMetric("euclidean")
    theirs, ours = best_times(
        lambda: brute_force(X, starts, starts + SIZE, n_bags),
        lambda: hausdorff(metric, X, starts, starts + SIZE, n_threads=1),
    )
    print(
        f"{n_bags} bags, loop over scipy's cdist {theirs:.3f} s, ours {ours:.4f} s, "
        f"{theirs / ours:.0f}x"
    )


def bench_nearest(n_bags):
    print("nearest instance of each bag to each instance, one thread")
    starts = np.arange(n_bags, dtype=np.int64) * SIZE
    X = np.random.default_rng(0).normal(size=(n_bags * SIZE, WIDTH))
    metric = InstanceMetric("sqeuclidean")
    for index in (False, True):
        nearest(metric, X[:SIZE], starts[:1], starts[:1] + SIZE, X[:5], return_index=index)
        bare, ours = best_times(
            lambda: products(X, 1),
            lambda i=index: nearest(
                metric, X, starts, starts + SIZE, X, return_index=i, n_threads=1
            ),
        )
        print(f"  index={index}: bare {bare:.3f} s, ours {ours:.3f} s, ratio {ours / bare:.2f}")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with threadpool_limits(1):
        bench_hausdorff(count)
        bench_brute_force()
        bench_nearest(count)
