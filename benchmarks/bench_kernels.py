"""Speed of Gram matrices beside scikit-learn's and the bare product, and what centring costs.

Needs the folder of the classic sets: BAGWISE_DATA=... python benchmarks/bench_kernels.py
"""

import os
from pathlib import Path
from time import perf_counter
from unittest import mock

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise
from threadpoolctl import threadpool_limits

import bagwise.kernels._formulas as formulas
from bagwise.kernels import InstanceKernel

REPEATS = 3
ROWS = 3000  # scikit-learn's chi2_kernel needs half a minute for all of Musk2


def rows_of(name):
    with np.load(Path(os.environ["BAGWISE_DATA"]) / f"{name}.npz") as data:
        X = data["X"].astype(np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0)


def peers(gamma):
    return {
        "linear": pairwise.linear_kernel,
        "poly": lambda A: pairwise.polynomial_kernel(A, gamma=gamma, degree=3, coef0=1.0),
        "rbf": lambda A: pairwise.rbf_kernel(A, gamma=gamma),
        "laplacian": lambda A: pairwise.laplacian_kernel(A, gamma=gamma),
        "chi2": lambda A: pairwise.chi2_kernel(A, gamma=gamma),
        "cosine": pairwise.cosine_similarity,
    }


def interleaved(*functions):
    """Return the best time of each, taken in turns so that all see the same machine."""
    times = [[] for _ in functions]
    for function in functions:  # compiles, touches memory
        function()
    for _ in range(REPEATS):
        for function, own in zip(functions, times, strict=True):
            start = perf_counter()
            function()
            own.append(perf_counter() - start)
    return [min(own) for own in times]


def bench_dense(X):
    print(f"Dense, {X.shape[0]} x {X.shape[1]}: seconds; ratios are scikit-learn's time over ours")
    header = f"{'kernel':>10} {'dtype':>8} {'threads':>7} | {'sklearn':>8} {'ours':>8} {'ratio':>6}"
    print(f"{header} | {'matmul':>8} {'ours/matmul':>11}")
    gamma = 1.0 / X.shape[1]
    for name, peer in peers(gamma).items():
        kernel = InstanceKernel(name, gamma=gamma, degree=3, coef0=1.0)
        for dtype in (np.float64, np.float32):
            A = X.astype(dtype)
            for n_threads in (1, 2):
                with threadpool_limits(n_threads):
                    ours, theirs, bare = interleaved(
                        lambda kernel=kernel, A=A, n=n_threads: kernel.gram(A, n_threads=n),
                        lambda peer=peer, A=A: peer(A),
                        lambda A=A: np.matmul(
                            A, A.T
                        ),  # numpy, too, computes one half and copies it
                    )
                line = f"{name:>10} {A.dtype!s:>8} {n_threads:>7} | {theirs:8.4f} {ours:8.4f}"
                print(f"{line} {theirs / ours:5.1f}x | {bare:8.4f} {ours / bare:11.2f}")


def bench_sparse():
    print("\nCSR, 500 x 5000: seconds on one thread; scikit-learn's chi2_kernel takes dense rows")
    for density in (0.01, 0.1):
        X = sp.random_array((500, 5000), density=density, format="csr", rng=0)
        for name, peer in peers(0.01).items():
            kernel = InstanceKernel(name, gamma=0.01, degree=3, coef0=1.0)
            ours = interleaved(lambda kernel=kernel, X=X: kernel.gram(X, n_threads=1))[0]
            start = perf_counter()
            with threadpool_limits(1):
                peer(X.toarray() if name == "chi2" else X)
            theirs = perf_counter() - start
            line = f"{name:>10} density {density:4.2f} | {theirs:8.4f} {ours:8.4f}"
            print(f"{line} {theirs / ours:5.1f}x")


def bench_centring(X):
    print("\nGaussian with rows moved to the origin where needed, over never, one thread")
    standard = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    kernel = InstanceKernel("rbf", gamma=1.0 / X.shape[1])
    for dtype in (np.float64, np.float32):
        for shift in (0.0, 100.0):
            A = (standard + shift).astype(dtype)
            room = np.empty((len(A), len(A)), dtype)

            def ours(A=A, room=room):
                kernel.gram(A, out=room, n_threads=1)

            def never(ours=ours):
                with mock.patch.object(formulas, "_centre", return_value=None):
                    ours()

            with_it, without = interleaved(ours, never)
            moved = formulas._centre(kernel.gamma, A, A, kernel.norms(A, A.dtype)) is not None
            line = f"mean {shift:>5g} {A.dtype!s:>8} | moved: {moved!s:>5}"
            print(f"{line} | {with_it:.4f} {without:.4f} {with_it / without:.3f}")


if __name__ == "__main__":
    musk = rows_of("musk2")
    bench_dense(musk[:ROWS])
    bench_sparse()
    bench_centring(musk)
