"""Speed of the SVM dual beside libsvm, and of the set kernel beside a bare Gram pass.

Needs the folder of the classic sets: BAGWISE_DATA=... python benchmarks/bench_svm_dual.py [PART]...
where the parts are svm, warm, source, large and set; without a name all of them run.
"""

import multiprocessing
import os
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bagwise._threads import ordered_map
from bagwise.kernels import InstanceKernel, set_gram
from bagwise.kernels._instance import tiles
from bagwise.solvers import CachedRows, RowOperator, rescale_alpha, solve_svm_dual

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


class RBFRows(RowOperator):
    """The Gaussian kernel's matrix, block by block."""

    def __init__(self, X, gamma):
        self.X, self.gamma = X, gamma
        self.squares = gamma * np.einsum("ij,ij->i", X, X)
        self.n_entries = 0

    @property
    def n(self):
        return len(self.X)

    @property
    def dtype(self):
        return self.X.dtype

    def diagonal(self):
        return np.ones(len(self.X))

    def block(self, rows, columns=None, out=None):
        columns = slice(None) if columns is None else columns
        out = np.matmul(2.0 * self.gamma * self.X[rows], self.X[columns].T, out=out)
        out -= self.squares[rows, None]
        out -= self.squares[columns]
        np.minimum(out, 0.0, out=out)
        self.n_entries += out.size
        return np.exp(out, out=out)


def bench_warm():
    print("\nWarm starts: total steps and milliseconds, the first cost of a path left out")
    print("'factor': between costs, 0.1 to 100; 'flipped': a twentieth of the signs, cost 1 and 10")
    for name in ("musk1", "elephant"):
        X, offsets, sign = load(name)
        kernel = InstanceKernel("rbf", gamma=1.0 / X.shape[1])
        bags = set_gram(kernel, X, offsets[:-1], offsets[1:])
        unit = np.sqrt(bags.diagonal())
        grams = (
            ("instances", kernel.gram(X), sign),
            ("bags", bags / (unit[:, None] * unit), sign[offsets[:-1]]),
        )
        for what, gram, signs in grams:
            solve_svm_dual(gram, signs, 1.0)  # compiles
            for factor in (10.0, 2.0, 0.5, 0.1):
                pairs = along_path(gram, signs, factor)
                print_warm(f"{name} {what}", f"factor {factor:g}", pairs)
            print_warm(f"{name} {what}", "flipped", after_flips(gram, signs))


def along_path(gram, sign, factor):
    n_costs = round(3.0 / abs(np.log10(factor))) + 1
    costs = (0.1 if factor > 1.0 else 100.0) * factor ** np.arange(n_costs)
    before = solve_svm_dual(gram, sign, costs[0])
    for last, cost in pairwise(costs):
        start = rescale_alpha(before.x, last, cost)
        cold = best_time(lambda c=cost: solve_svm_dual(gram, sign, c))
        yield cold, best_time(lambda c=cost, a=start: solve_svm_dual(gram, sign, c, alpha0=a))
        before = cold[1]


def after_flips(gram, sign):
    flipped = np.random.default_rng(0).random(len(sign)) < 0.05
    changed = np.where(flipped, -sign, sign)
    for cost in (1.0, 10.0):
        start = np.where(flipped, 0.0, solve_svm_dual(gram, sign, cost).x)
        cold = best_time(lambda c=cost: solve_svm_dual(gram, changed, c))
        yield cold, best_time(lambda c=cost, a=start: solve_svm_dual(gram, changed, c, alpha0=a))


def print_warm(name, what, pairs):
    cold, warm = zip(*pairs, strict=True)
    steps = [sum(result.n_iter for _, result in runs) for runs in (cold, warm)]
    seconds = [sum(time for time, _ in runs) for runs in (cold, warm)]
    print(
        f"{name:>18} {what:>10} | cold {steps[0]:>6} {1e3 * seconds[0]:7.2f} "
        f"| warm {steps[1]:>6} {1e3 * seconds[1]:7.2f} "
        f"| ratio: steps {steps[1] / steps[0]:.2f}, time {seconds[1] / seconds[0]:.2f}"
    )


def bench_source():
    print("\nMusk2, Gram matrix included, one thread: all of it beside rows on demand, 50 MB kept")
    X, _, sign = load("musk2")
    gamma = 1.0 / X.shape[1]

    def whole(cost):
        gram = InstanceKernel("rbf", gamma=gamma).gram(X, n_threads=1)
        return solve_svm_dual(gram, sign, cost)

    def on_demand(cost):
        source = RBFRows(X, gamma)
        return solve_svm_dual(CachedRows(source, 50e6), sign, cost), source

    on_demand(1.0)  # compiles
    for cost in (1.0, 10.0, 100.0):
        base, expected = best_time(lambda c=cost: whole(c))
        seconds, (result, source) = best_time(lambda c=cost: on_demand(c))
        error = abs(result.objective - expected.objective) / expected.objective
        print(
            f"C={cost:>5g}: whole {base:.3f} s, on demand {seconds:.3f} s, ratio "
            f"{seconds / base:.2f}, objectives differ by {error:.0e}, "
            f"{source.n_entries / len(X) ** 2:.2f} of the entries computed"
        )


def bench_large(n=40_000, d=20, cost=1.0, tol=1e-3):
    print(f"\n{n} x {d} random rows, C={cost:g}, tol={tol:g}, one thread, each in its own process")
    for contender in ("ours", "libsvm"):
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            print(f"{contender:>7}: {pool.submit(large, contender, n, d, cost, tol).result()}")


def large(contender, n, d, cost, tol):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    sign = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    with threadpool_limits(1):
        if contender == "ours":
            solve_svm_dual(RBFRows(X[:100], 1.0 / d), sign[:100], cost)  # compiles
            start, source = perf_counter(), RBFRows(X, 1.0 / d)
            result = solve_svm_dual(CachedRows(source, 100e6), sign, cost, tol=tol)
            seconds = perf_counter() - start
            n_steps, alpha = result.n_iter, result.x
        else:
            start = perf_counter()
            model = SVC(C=cost, gamma=1.0 / d, tol=tol, cache_size=200).fit(X, sign)
            seconds = perf_counter() - start
            n_steps, alpha = model.n_iter_[0], np.zeros(n)
            alpha[model.support_] = np.abs(model.dual_coef_[0])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        support, product = np.flatnonzero(alpha), 0.0
        beta, source = sign * alpha, RBFRows(X, 1.0 / d)
        for rows in np.array_split(support, 1 + len(support) // 500):
            product += beta[rows] @ source.block(rows, support) @ beta[support]
        dual = alpha.sum() - 0.5 * product
    return f"{seconds:.1f} s, {n_steps} steps, dual {dual:.6f}, peak {peak:.0f} MB"


PARTS = {
    "svm": bench_svm,
    "warm": bench_warm,
    "source": bench_source,
    "large": bench_large,
    "set": bench_set_kernel,
}


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        if part == "set":
            PARTS[part]()
            continue
        with threadpool_limits(1):
            PARTS[part]()
