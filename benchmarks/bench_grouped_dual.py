"""Speed of the SVM dual with group caps on the first problem of MI-SVM with a slack per bag.

Each negative bag is a group of all its instances; each positive bag has one row, the instance
closest to the bag's mean. Beside it, the same rows with a slack each by the ordinary SVM dual.

Needs the folder of the classic sets: BAGWISE_DATA=... python benchmarks/bench_grouped_dual.py
"""

import os
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from bagwise.kernels import InstanceKernel
from bagwise.solvers import solve_svm_dual
from bagwise.solvers.svm._grouped_dual import solve_grouped_svm_dual

DATASETS = ("musk1", "elephant", "musk2")
COSTS = (0.1, 1.0, 10.0, 100.0)
REPEATS = 5


def load(name):
    """Return instances, signs and groups of the rows that take part."""
    with np.load(Path(os.environ["BAGWISE_DATA"]) / f"{name}.npz") as data:
        X = data["X"].astype(np.float64)
        offsets = data["offsets"].astype(np.int64)
        positive = data["y"] > 0
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    rows, groups = [], []
    for bag, (start, stop) in enumerate(pairwise(offsets)):
        chosen = np.arange(start, stop)
        if positive[bag]:
            distance = ((X[chosen] - X[chosen].mean(axis=0)) ** 2).sum(axis=1)
            chosen = chosen[[distance.argmin()]]
        rows.append(chosen)
        groups.append(np.full(len(chosen), bag))
    group = np.concatenate(groups)
    return X[np.concatenate(rows)], np.where(positive[group], 1.0, -1.0), group


def best_time(function):
    times, value = [], None
    for _ in range(REPEATS):
        start = perf_counter()
        value = function()
        times.append(perf_counter() - start)
    return min(times), value


def bench(name):
    X, sign, group = load(name)
    gram = InstanceKernel("rbf", gamma=1.0 / X.shape[1]).gram(X)
    solve_grouped_svm_dual(gram, sign, group, 1.0)  # compiles
    solve_svm_dual(gram, sign, 1.0)
    for cost in COSTS:
        seconds, result = best_time(lambda c=cost: solve_grouped_svm_dual(gram, sign, group, c))
        warm, again = best_time(
            lambda c=cost, a=result.x: solve_grouped_svm_dual(gram, sign, group, 1.2 * c, alpha0=a)
        )
        plain, other = best_time(lambda c=cost: solve_svm_dual(gram, sign, c))
        print(
            f"{name:>9} {len(sign):>5} {cost:>6g} | {seconds:8.4f} {result.n_iter:>7} "
            f"{result.lower_bound:15.8f} {result.gap:8.0e} {result.residual:8.0e} "
            f"{np.count_nonzero(result.x):>5} | {warm:8.4f} {again.n_iter:>6} "
            f"| {plain:8.4f} {other.n_iter:>7} {np.count_nonzero(other.x):>5}"
        )


if __name__ == "__main__":
    print("seconds at tol 1e-6 on a precomputed Gram matrix, one thread; 'warm': the cap raised by")
    print("a fifth from that solution; 'plain': a slack for each row")
    print(
        f"{'data':>9} {'n':>5} {'C':>6} | {'grouped':>8} {'steps':>7} {'dual':>15} {'gap':>8} "
        f"{'residual':>8} {'sv':>5} | {'warm':>8} {'steps':>6} "
        f"| {'plain':>8} {'steps':>7} {'sv':>5}"
    )
    with threadpool_limits(1):
        for name in DATASETS:
            bench(name)
