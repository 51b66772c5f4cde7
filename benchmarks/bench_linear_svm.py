"""Linear SVM: time against the number of rows, beside liblinear in the same run, on one thread.

Two problems, 20 dense features, C = 1: with liblinear's penalised bias (the same objective for
both), and with a free intercept (ours only; liblinear has no such problem). The objective of both
is computed here, from the weights. Prints the slope of log time against log rows.

Then warm starts, on dense and sparse rows: passes over the data (rows read, divided by how many
there are) and seconds, from nothing and from a solution: itself, or that at half or twice the cost.
Behind the bar, what the same problems take from nothing.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import bagwise.solvers.svm._linear_svm_kernels as kernels
from bagwise.solvers import FeatureRows, solve_linear_svm

N_FEATURES, COST = 20, 1.0


def make(n):
    rng = np.random.default_rng(0)
    sign = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X = rng.normal(size=(n, N_FEATURES)) + sign[:, None] / np.sqrt(N_FEATURES)
    return X, sign


def objective(X, sign, w, b, loss, *, penalized):
    slack = np.maximum(1.0 - sign * (X @ w + b), 0.0)
    power = 1 if loss == "hinge" else 2
    return 0.5 * (w @ w + penalized * b * b) + COST * (slack**power).sum()


def best_of(repeats, function):
    times = []
    for _ in range(repeats):
        started = perf_counter()
        result = function()
        times.append(perf_counter() - started)
    return min(times), result


def slope(sizes, times):
    return np.polyfit(np.log(sizes), np.log(times), 1)[0]


class Passes:
    """Counts the rows that solvers read."""

    def __init__(self):
        self.rows = 0
        for name in ("dot", "combine", "square_norms", "curvature", "gram"):
            setattr(FeatureRows, name, self.counted(getattr(FeatureRows, name), lambda a: a[0].n))
        kernels.sweep = self.counted(kernels.sweep, lambda a: len(a[4]))

    def counted(self, function, size):
        def call(*arguments):
            self.rows += size(arguments)
            return function(*arguments)

        return call

    def of(self, X, sign, cost, **options):
        self.rows, started = 0, perf_counter()
        result = solve_linear_svm(X, sign, cost, **options)
        return result, np.array([self.rows / len(sign), perf_counter() - started])


def sparse(n, d, filled):
    """Make rows like short texts: a few words each, some words in most rows."""
    rng = np.random.default_rng(0)
    chance = 1.0 / np.arange(1, d + 1)
    words = rng.choice(d, size=(n, filled), p=chance / chance.sum())
    X = sp.csr_array((np.ones(words.size), words.ravel(), np.arange(n + 1) * filled), shape=(n, d))
    X.sum_duplicates()
    X = sp.csr_array(sp.diags_array(X.power(2).sum(axis=1) ** -0.5) @ X)
    return X, np.where(X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)


def warm_starts():
    grid = (0.1, 0.2, 0.4, 0.8, 1.6)
    passes = Passes()
    rng = np.random.default_rng(1)
    wide = np.where(rng.random(500) < 0.5, 1.0, -1.0)
    problems = {
        "dense 20,000 x 20": make(20_000),
        "csr 20,000 x 300": sparse(20_000, 300, 20),
        "csr 6,000 x 2,500": sparse(6_000, 2_500, 30),
        "dense 500 x 1,000": (rng.normal(size=(500, 1000)) + 0.05 * wide[:, None], wide),
    }
    for name, (X, sign) in problems.items():
        for loss in ("hinge", "squared_hinge"):
            passes.of(X, sign, 1.0, loss=loss)  # compile
            cold, answers = zip(
                *[passes.of(X, sign, c, loss=loss)[::-1] for c in grid], strict=True
            )
            line = f"{name:18} {loss:13} passes (s):"
            for start, new, old in (("itself", 0, 0), ("half", 1, 0), ("twice", 0, 1)):
                pairs = list(zip(grid[new:], answers[old:], cold[new:], strict=False))
                used = [passes.of(X, sign, c, loss=loss, alpha0=r.x)[1] for c, r, _ in pairs]
                line += f"  {start} {_figures(used)} | {_figures([rest[-1] for rest in pairs])}"
            print(line, flush=True)


def _figures(figures):
    passes, seconds = np.mean(figures, axis=0)
    return f"{passes:5.1f} ({seconds:.4f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--max-iter", type=int, default=1000, help="liblinear's sweeps")
    parser.add_argument(
        "--patience", type=float, default=60.0, help="leave liblinear out where it may take longer"
    )
    arguments = parser.parse_args()
    sizes = [n for n in (1_000, 10_000, 100_000, 1_000_000) if n <= arguments.largest]
    for loss in ("hinge", "squared_hinge"):
        table, t_peer = [], 0.0
        for n in sizes:
            X, sign = make(n)
            repeats = 5 if n <= 10_000 else 2

            def ours(intercept, X=X, sign=sign, loss=loss):
                return solve_linear_svm(X, sign, COST, loss=loss, intercept=intercept)

            def theirs(X=X, sign=sign, loss=loss):
                model = LinearSVC(
                    C=COST, loss=loss, dual=True, random_state=0, max_iter=arguments.max_iter
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    return model.fit(X, sign)

            ours("free")  # compile
            t_free, free = best_of(repeats, lambda: ours("free"))
            t_bias, bias = best_of(repeats, lambda: ours("penalized"))
            table.append((t_free, t_bias))
            line = (
                f"{loss:13} n={n:>9,}  free {t_free:8.4f} s (gap {free.relative_gap:7.1e})"
                f"  bias {t_bias:8.4f} s (gap {bias.relative_gap:7.1e})"
            )
            if 15.0 * t_peer > arguments.patience:
                print(f"{line}  liblinear left out", flush=True)
                continue
            t_peer, peer = best_of(1 if n > 10_000 else repeats, theirs)
            value = objective(X, sign, bias.coef, bias.intercept, loss, penalized=True)
            rival = objective(X, sign, peer.coef_[0], peer.intercept_[0], loss, penalized=True)
            print(
                f"{line}  liblinear {t_peer:8.3f} s, {t_peer / t_bias:6.1f}x ours,"
                f" objective above ours by {(rival - value) / value:8.1e}",
                flush=True,
            )
        slopes = [slope(sizes, column) for column in zip(*table, strict=True)]
        print(f"{loss:13} log-log slopes: free {slopes[0]:.2f}, bias {slopes[1]:.2f}")
    warm_starts()


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
