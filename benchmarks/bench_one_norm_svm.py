"""The 1-norm SVM of MILES and MICA, beside HiGHS on the whole linear programme, in the same run.

Features are z-scores. MILES: bags embedded on all instances, sigma^2 = d, penalty 0.3, costs 1/2.
MICA: RBF kernel columns with gamma = 1/d, one row per positive bag (at first the mean of its
instances) and per negative instance, costs 10; then its alternation, each programme started from
the solution before it. Figures of other packages are printed ones, not taken in this run. Times
are processor seconds on one BLAS thread, the least of three runs (HiGHS: one run), as other work
on the machine disturbs them less than the clock on the wall.

    BAGWISE_DATA=... python benchmarks/bench_one_norm_svm.py [--largest 3e6]
"""

import argparse
import os
from pathlib import Path
from time import process_time

import numpy as np
from scipy.optimize import linprog
from threadpoolctl import threadpool_limits

from bagwise.solvers.svm._one_norm_svm import solve_one_norm_svm

NAMES = ("musk1", "elephant", "musk2")
PEERS = {  # printed figures: seconds per fit of the packages mil (MILES) and misvm (MICA)
    ("MILES", "musk1"): 0.054,
    ("MILES", "elephant"): 0.47,
    ("MILES", "musk2"): 12.4,
    ("MICA", "musk1"): 0.14,
    ("MICA", "elephant"): 10.8,
}


def load(name):
    with np.load(Path(os.environ.get("BAGWISE_DATA", "../shared/data")) / f"{name}.npz") as file:
        X, offsets = file["X"].astype(float), file["offsets"]
        sign = np.where(file["y"].ravel() > 0, 1.0, -1.0)
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), offsets, sign


def squares(X):
    norms = (X * X).sum(axis=1)
    D = X @ X.T
    D *= -2.0
    D += norms[:, None]
    D += norms
    return np.maximum(D, 0.0, out=D)


def miles(X, offsets):
    return np.exp(-np.minimum.reduceat(squares(X), offsets[:-1], axis=0) / X.shape[1])


class Mica:
    """The alternation, with the whole kernel matrix in memory."""

    def __init__(self, X, offsets, sign, cost=10.0):
        self.K = np.exp(squares(X) / -X.shape[1])
        self.cost = cost
        self.positive = [slice(*offsets[i : i + 2]) for i in np.flatnonzero(sign > 0)]
        inside = np.repeat(sign, np.diff(offsets))
        self.negative = np.flatnonzero(inside < 0)
        self.sign = np.repeat([1.0, -1.0], [len(self.positive), len(self.negative)])

    def rows(self):
        means = [self.K[bag].mean(axis=0) for bag in self.positive]
        return np.concatenate([means, self.K[self.negative]])

    def alternate(self, rows, *, warm=True):
        rows = rows.copy()
        result, values, steps = None, [], []
        while len(values) < 2 or values[-2] - values[-1] > 1e-4 * values[-2]:
            result = solve_one_norm_svm(rows, self.sign, self.cost, start=result if warm else None)
            values.append(result.objective)
            steps.append(result.n_iter)
            used = np.flatnonzero(result.x)
            for i, bag in enumerate(self.positive):
                rows[i] = self.K[bag.start + (self.K[bag, used] @ result.x[used]).argmax()]
        return values, steps


def whole_program(A, sign, cost, penalty):
    n, p = A.shape
    signed = sign[:, None] * A
    return linprog(
        np.concatenate([np.full(2 * p, penalty), [0.0], np.full(n, cost)]),
        np.hstack([-signed, signed, -sign[:, None], -np.eye(n)]),
        -np.ones(n),
        bounds=[(0.0, None)] * (2 * p) + [(None, None)] + [(0.0, None)] * n,
        method="highs-ds",
    )


def seconds(repeats, function, *arguments, **options):
    times = []
    for _ in range(repeats):
        started = process_time()
        result = function(*arguments, **options)
        times.append(process_time() - started)
    return min(times), result


def compare(title, A, sign, cost, penalty, largest):
    time, ours = seconds(3, solve_one_norm_svm, A, sign, cost, penalty=penalty)
    line = (
        f"{title:<16}{A.shape[0]:>6} x{A.shape[1]:>5}  {time * 1e3:8.1f} ms {ours.n_iter:>5} steps "
        f"{np.count_nonzero(ours.x):>4} weights  gap {ours.residual:7.0e}"
    )
    if A.size <= largest:
        time_whole, whole = seconds(1, whole_program, A, sign, cost, penalty)
        line += (
            f"   HiGHS {time_whole * 1e3:8.1f} ms ({time_whole / time:5.1f} x)"
            f"   objectives differ by {ours.objective / whole.fun - 1:8.1e}"
        )
    print(line, flush=True)
    return time


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=float, default=3e6, help="entries up to which HiGHS runs")
    largest = parser.parse_args().largest
    sign = np.array([1.0, -1.0, 1.0, -1.0])
    solve_one_norm_svm(np.eye(4), sign, 1.0, penalty=0.1)  # compiles
    whole_program(np.eye(4), sign, 1.0, 0.1)  # what is slow only once
    for name in NAMES:
        X, offsets, sign = load(name)
        embedding, A = seconds(3, miles, X, offsets)
        time = compare(f"MILES {name}", A, sign, 0.5, 0.3, largest) + embedding
        print(
            f"    with the embedding {time * 1e3:.1f} ms; the package mil, as printed: "
            f"{PEERS['MILES', name]} s ({PEERS['MILES', name] / time:.0f} x)"
        )
    for name in NAMES:
        kernel, problem = seconds(3, Mica, *load(name))
        compare(f"MICA {name}", problem.rows(), problem.sign, problem.cost, 1.0, largest)
        start, times = problem.rows(), {}
        for warm in (False, True):
            times[warm], (values, steps) = seconds(3, problem.alternate, start, warm=warm)
            print(
                f"    alternation, {'warm' if warm else 'cold'}: {times[warm] * 1e3:.1f} ms, "
                f"steps {steps}, objective {values[0]:.3f} -> {values[-1]:.3f}"
            )
        time = times[True] + kernel
        line = f"    with the kernel matrix {time * 1e3:.1f} ms"
        if peer := PEERS.get(("MICA", name)):
            line += f"; misvm (the 2-norm problem), as printed: {peer} s ({peer / time:.0f} x)"
        print(line)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
