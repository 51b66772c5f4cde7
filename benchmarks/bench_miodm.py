"""MIODM beside one pass over the kernel matrix between all instances, and beside mirror prox.

A ratio is the processor time of a fit over that of one evaluation of the matrix, the median over
interleaved runs of both. Needs the folder of the classic sets:

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/bench_miodm.py
"""

import argparse
import os
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bagwise import Bags
from bagwise.kernels import InstanceKernel
from bagwise.svm import MIODM

LIMITS = {"local": 10.0, "relaxed": 60.0}


def load(name):
    """Return bags with features between 0 and 1, and their labels."""
    with np.load(Path(os.environ["BAGWISE_DATA"]) / f"{name}.npz") as data:
        X, offsets, y = data["X"].astype(np.float64), data["offsets"], data["y"]
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return Bags((X - low) / np.where(width > 0, width, 1.0), offsets), y


def seconds(run):
    started = process_time()
    run()
    return process_time() - started


def ratios(name, C, n_runs):
    """Return the seconds of the matrix, and the ratios of the solvers to it."""
    bags, y = load(name)
    kernel = InstanceKernel("rbf", gamma=0.4)

    def fit(solver):
        return MIODM(C, gamma=0.4, solver=solver, tol=1e-3, random_state=0).fit(bags, y)

    runs = {solver: [] for solver in ("local", "relaxed", "best")}
    passes = []
    for solver in runs:
        fit(solver)  # compiles
    for _ in range(n_runs):
        passes.append(seconds(lambda: kernel.gram(bags.instances)))
        for solver, taken in runs.items():
            taken.append(seconds(lambda solver=solver: fit(solver)))
    one = float(np.median(passes))
    return one, {solver: float(np.median(taken)) / one for solver, taken in runs.items()}


def against_mirror_prox(name, C):
    """Return seconds and gaps of column generation, and of mirror prox over what it found."""
    bags, y = load(name)
    out = []
    for solver in ("relaxed", "mirror_prox"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = MIODM(C, gamma=0.4, solver=solver, tol=1e-3, random_state=0)
            taken = seconds(lambda model=model: model.fit(bags, y))
        out.append((taken, model.gap_estimate_ / model.result_.objective))
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="+", default=["musk1", "elephant"])
    parser.add_argument("--C", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mirror-prox", action="store_true")
    options = parser.parse_args()
    print(f"{'data':>9} {'C':>5} | matrix ms | local relaxed   best | limits {LIMITS}")
    for name in options.sets:
        for C in options.C:
            one, found = ratios(name, C, options.runs)
            times = " ".join(f"{found[solver]:6.1f}" for solver in ("local", "relaxed", "best"))
            print(f"{name:>9} {C:>5g} | {1e3 * one:9.1f} | {times}", flush=True)
            if options.mirror_prox:
                (ours, gap), (theirs, other) = against_mirror_prox(name, C)
                longer = (theirs - ours) / ours
                print(
                    f"{'':>15} | column generation {ours:.2f} s to a gap of {gap:.1e}; then "
                    f"mirror prox {theirs - ours:.2f} s to {other:.1e}: {longer:.0f} times as long"
                )


if __name__ == "__main__":
    main()
