"""How the time to fit a linear MISVM grows with the number of instances, at 20 features.

Bags of ten instances; one instance of each positive bag is shifted. Prints seconds, rounds, and the
slope of a straight line through the logarithms.
"""

import os
from time import perf_counter

os.environ.setdefault("BAGWISE_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bagwise import Bags
from bagwise.svm import MISVM

D, SIZE = 20, 10


def data(n_bags):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_bags * SIZE, D))
    y = np.arange(n_bags) % 2
    X[np.flatnonzero(y == 1) * SIZE + 3, :5] += 3.0
    return Bags(X, np.arange(0, n_bags * SIZE + 1, SIZE)), y


def main():
    MISVM(kernel="linear", n_init=1).fit(*data(100))
    # Slacks that bags share go through the Gram matrix of the rows that matter, one a bag at least.
    for slack, sizes in {
        "instance": [1_000, 10_000, 100_000, 1_000_000],
        "bag": [1_000, 3_000, 10_000],
    }.items():
        print(f"{'instances':>10} {'slack':>9} {'seconds':>9} {'rounds':>7} {'objective':>14}")
        times = []
        for n in sizes:
            bags, y = data(n // SIZE)
            repeats = 3 if n < 1_000_000 else 1
            best = float("inf")
            for _ in range(repeats):
                start = perf_counter()
                model = MISVM(kernel="linear", negative_slack=slack, n_init=1).fit(bags, y)
                best = min(best, perf_counter() - start)
            times.append(best)
            print(f"{n:>10} {slack:>9} {best:9.3f} {model.n_iter_:>7} "
                  f"{model.result_.objective:14.4f}", flush=True)  # fmt: skip
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        print(f"slope of log time against log instances: {slope:.2f}\n")


if __name__ == "__main__":
    main()
