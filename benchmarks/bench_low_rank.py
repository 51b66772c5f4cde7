"""Speed of the low-rank maps beside scikit-learn's, and beside the products that none can avoid.

python benchmarks/bench_low_rank.py [n_instances] [n_features] [rank]
"""

import sys
from time import perf_counter

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from threadpoolctl import threadpool_limits

from bagwise._threads import ordered_map
from bagwise.kernels import InstanceKernel
from bagwise.kernels._fourier_map import random_fourier
from bagwise.kernels._landmark_maps import cholesky_features, nystroem
from bagwise.kernels._rows import BLOCK, slices

REPEATS = 3


def best_times(functions):
    """Return the best time of each function; they take turns, so noise hits all alike."""
    times = {name: [] for name in functions}
    for _ in range(REPEATS):
        for name, function in functions.items():
            start = perf_counter()
            function()
            times[name].append(perf_counter() - start)
    return {name: min(seconds) for name, seconds in times.items()}


def bare_products(X, rank, n_threads):
    """Compute X Z' (n d r) and a product with an r x r matrix (n r^2), in blocks of rows."""
    landmarks = np.ascontiguousarray(X[:rank].T)
    square = np.random.default_rng(0).normal(size=(rank, rank)).astype(X.dtype)
    out = np.empty((len(X), rank), X.dtype)

    def fill(rows):
        np.matmul(X[rows] @ landmarks, square, out=out[rows])

    for _ in ordered_map(fill, slices(len(X), BLOCK), n_threads=n_threads):
        pass


def clustered(n, d, rng):
    """Instances around 50 centres, with a spread that shrinks along the features."""
    centres = 2.0 * rng.normal(size=(50, d))
    return (centres[rng.integers(50, size=n)] + rng.normal(size=(n, d))) / np.arange(1, d + 1)


def bench(title, X, rank, n_threads):
    gamma = 1.0 / (X.shape[1] * X.var())
    kernel = InstanceKernel("rbf", gamma=gamma)

    def run_nystroem():
        landmark_map = nystroem(kernel, X, rank=rank, rng=np.random.default_rng(0))
        landmark_map.transform(X, n_threads=n_threads)

    def run_fourier():
        fourier_map = random_fourier(kernel, X.shape[1], rank=rank, rng=np.random.default_rng(0))
        fourier_map.transform(X, n_threads=n_threads)

    found = {}

    def run_cholesky():
        found["map"], _ = cholesky_features(kernel, X, rank=rank, n_threads=n_threads)

    peers = {
        "nystroem, scikit-learn": Nystroem(gamma=gamma, n_components=rank, random_state=0),
        "fourier, scikit-learn": RBFSampler(gamma=gamma, n_components=rank, random_state=0),
    }
    functions = {
        "bare products": lambda: bare_products(X, rank, n_threads),
        "cholesky, ours": run_cholesky,
        "nystroem, ours": run_nystroem,
        "fourier, ours": run_fourier,
    }
    for name, peer in peers.items():
        functions[name] = lambda peer=peer: peer.fit_transform(X)
    with threadpool_limits(n_threads):
        times = best_times(functions)
    print(f"\n{title}, {X.dtype}, {X.shape[0]} x {X.shape[1]}, rank {rank}, {n_threads} thread(s)")
    for name, seconds in times.items():
        print(f"{name:>24}: {seconds:7.3f} s, {seconds / times['bare products']:5.2f}x the bare")
    for name in ("nystroem", "fourier"):
        ratio = times[f"{name}, scikit-learn"] / times[f"{name}, ours"]
        print(f"{name}: {ratio:.2f}x as fast as scikit-learn")
    random_error = nystroem(kernel, X, rank=rank, rng=np.random.default_rng(0)).residual_trace(X)
    trace = found["map"].trace
    print(
        f"residual trace: cholesky {found['map'].relative_error:.3f}, "
        f"nystroem {random_error / trace:.3f} of the trace"
    )


def main():
    n, d, rank = [int(a) for a in sys.argv[1:]] + [100_000, 50, 300][len(sys.argv) - 1 :]
    rng = np.random.default_rng(0)
    warm = rng.normal(size=(2000, d))
    for dtype in (np.float64, np.float32):  # compiles
        cholesky_features(InstanceKernel("rbf"), warm.astype(dtype), rank=4)
    data = {"one Gaussian": rng.normal(size=(n, d)), "clusters": clustered(n, d, rng)}
    for title, X in data.items():
        for dtype in (np.float64, np.float32):
            for n_threads in (1, 2):
                bench(title, X.astype(dtype), rank, n_threads)


if __name__ == "__main__":
    main()
