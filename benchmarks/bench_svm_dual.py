"""Speed of the SVM dual beside libsvm, and of the set kernel beside a bare Gram pass.

Needs the folder of the classic sets: BAGWISE_DATA=... python benchmarks/bench_svm_dual.py
"""

import os
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bagwise._threads import ordered_map
from bagwise.kernels import InstanceKernel, set_gram
from bagwise.kernels._instance import tiles
from bagwise.solvers import solve_svm_dual

DATASETS = ("musk1", "elephant", "musk2")
REPEATS = 5


def load(name):
    with np.load(Path(os.environ["BAGWISE_DATA"]) / f"{name}.npz") as data:
        X = data["X"].astype(np.float64)
        offsets = data["offsets"].astype(np.int64)
        sign = np.repeat(np.where(data["y"] > 0, 1.0, -1.0), np.diff(offsets))
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), offsets, sign


def best_time(function):
    times, value = [], None
    for _ in range(REPEATS):
        start = perf_counter()
        value = function()
        times.append(perf_counter() - start)
    return min(times), value


def dual_value(gram, sign, alpha):
    beta = sign * alpha
    return alpha.sum() - 0.5 * beta @ gram @ beta


def bench_svm():
    print("SVM dual on a precomputed Gram matrix, one thread: seconds, steps, dual value")
    print("'again': ours from that solution, after a twentieth of the positive rows has gone")
    header = f"{'data':>9} {'n':>5} {'C':>6} {'tol':>6} | {'libsvm':>8} {'steps':>7} {'dual':>17}"
    print(f"{header} | {'ours':>8} {'steps':>7} {'dual':>17} {'residual':>8} | ratio | again")
    for name in DATASETS:
        X, _, sign = load(name)
        gram = InstanceKernel("rbf", gamma=1.0 / X.shape[1]).gram(X)
        solve_svm_dual(gram, sign, 1.0)  # compiles
        for cost in (0.1, 1.0, 100.0):
            for tol in (1e-3, 1e-6):
                bench_problem(name, gram, sign, cost, tol)


def bench_problem(name, gram, sign, cost, tol):
    model = SVC(C=cost, kernel="precomputed", tol=tol, cache_size=1000)
    theirs, _ = best_time(lambda: model.fit(gram, sign))
    alpha = np.zeros(len(sign))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    ours, result = best_time(lambda: solve_svm_dual(gram, sign, cost, tol=tol))
    changed = np.full(len(sign), cost)
    changed[np.flatnonzero(sign > 0)[::20]] = 0.0
    again, _ = best_time(lambda: solve_svm_dual(gram, sign, changed, tol=tol, alpha0=result.x))
    print(
        f"{name:>9} {len(sign):>5} {cost:>6g} {tol:>6g} "
        f"| {theirs:8.4f} {model.n_iter_[0]:>7} {dual_value(gram, sign, alpha):17.10f} "
        f"| {ours:8.4f} {result.n_iter:>7} {result.lower_bound:17.10f} "
        f"{result.residual:8.0e} | {theirs / ours:4.1f}x | {again:.4f}"
    )


def bench_set_kernel():
    print("\nSet kernel on Musk2 beside the same blocks of products and exponentials alone")
    X, offsets, _ = load("musk2")
    gamma = 1.0 / X.shape[1]
    for dtype in (np.float64, np.float32):
        rows = X.astype(dtype)
        scaled = rows * dtype(0.01)  # keeps the exponential of a bare product in range

        def bare(n_threads, scaled=scaled):
            def block(tile):
                values = scaled[tile[0]] @ scaled[tile[1]].T
                np.exp(values, out=values)

            grid = tiles(len(scaled), len(scaled), symmetric=True)
            for _ in ordered_map(block, grid, n_threads=n_threads):
                pass

        def sums(n_threads, rows=rows):
            kernel = InstanceKernel("rbf", gamma=gamma)
            return set_gram(kernel, rows, offsets[:-1], offsets[1:], n_threads=n_threads)

        sums(1)  # compiles
        for n_threads in (1, 2):
            base, _ = best_time(lambda f=bare, n=n_threads: f(n))
            seconds, _ = best_time(lambda f=sums, n=n_threads: f(n))
            print(
                f"{dtype.__name__}, {n_threads} thread(s): bare {base:.3f} s, "
                f"set kernel {seconds:.3f} s, ratio {seconds / base:.2f}"
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        bench_svm()
    bench_set_kernel()
