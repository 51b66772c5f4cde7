"""SparseMI: an evaluation beside its bare matrix products, fits, memory and predictions.

Processor seconds on one thread, the least of several runs, except where wall time is named. The
products that an evaluation cannot do without are X Z' and W'X for all instances, one of them twice
where the kernel is not kept; the bare ones run on the same pieces of rows, into the same memory.

    BAGWISE_DATA=... python benchmarks/bench_sparse_mi.py [products|fits|large|prediction]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from threadpoolctl import threadpool_limits

from bagwise import Bags
from bagwise.kernels import InstanceKernel
from bagwise.solvers import KernelMeans, minimize_expansion
from bagwise.svm import MIKernelSVM, RandomSetSVM, SparseMI

#: Seconds per fit of the prototypes (50 iterations of L-BFGS), as printed, under load.
PRINTED = {
    ("musk1", 10): 0.21,
    ("musk1", 50): 0.39,
    ("musk1", 100): 0.89,
    ("musk2", 10): 1.39,
    ("musk2", 50): 3.6,
    ("musk2", 100): 4.5,
    ("corel2000", 10): 0.58,
    ("corel2000", 50): 1.08,
    ("corel2000", 100): 2.04,
}


def load(name):
    with np.load(Path(os.environ.get("BAGWISE_DATA", "../shared/data")) / f"{name}.npz") as file:
        X, offsets, y = file["X"].astype(float), file["offsets"], file["y"].ravel()
    scale = X.std(axis=0)
    return Bags((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), offsets), y


def made(n, d, dtype, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 16, size=n // 10)  # 10 on average
    X = rng.standard_normal((int(sizes.sum()), d), dtype=np.float32).astype(dtype, copy=False)
    return Bags(X, np.concatenate([[0], np.cumsum(sizes)])), rng.integers(0, 2, size=len(sizes))


def seconds(function, repeats, clock=process_time):
    times = []
    for _ in range(repeats):
        started = clock()
        function()
        times.append(clock() - started)
    return min(times)


def products(n, d, m):
    """Print what an evaluation takes beside its products, in both modes."""
    for dtype in (np.float64, np.float32):
        bags, _ = made(n, d, dtype)
        X = bags.instances
        Z = np.ascontiguousarray(X[:m])
        V = np.random.default_rng(1).normal(size=(len(bags), m))
        for keeps in (True, False):
            source = KernelMeans(
                bags,
                InstanceKernel("rbf", 0.5 / d),
                m,
                max_memory=None if keeps else 1,
                n_threads=1,
            )
            rows = source.n_rows
            block = np.empty((len(X), m), dtype)
            scratch = block[:rows]

            def bare(X=X, Z=Z, rows=rows, block=block, scratch=scratch, keeps=keeps):
                for first in range(0, len(X), rows):
                    part = X[first : first + rows]
                    out = block[first : first + rows] if keeps else scratch[: len(part)]
                    np.matmul(part, Z.T, out=out)
                for first in range(0, len(X), rows):
                    part = X[first : first + rows]
                    out = block[first : first + rows] if keeps else scratch[: len(part)]
                    if not keeps:
                        np.matmul(part, Z.T, out=out)
                    out.T @ part

            def evaluation(source=source, Z=Z, V=V):
                source.means(Z)
                source.gradient(Z, V)

            evaluation()
            bare()
            ours, least = np.inf, np.inf
            for _ in range(7):  # in turns, so that other work on the machine hits both
                ours = min(ours, seconds(evaluation, 1))
                least = min(least, seconds(bare, 1))
            mode = "kept, 2 products" if keeps else "recomputed, 3 products"
            print(
                f"{len(X)} x {d}, {m} vectors, {np.dtype(dtype).name}, {mode}: "
                f"{ours * 1e3:.1f} ms, bare products {least * 1e3:.1f} ms, "
                f"ratio {ours / least:.2f}",
                flush=True,
            )


def fits():
    """Print seconds of fits beside those of the prototypes."""
    for name in ("musk1", "musk2", "corel2000"):
        bags, y = load(name)
        C, factor = 1.0, 2.0
        if name.startswith("corel"):
            half = np.random.default_rng(0).permutation(len(bags))[: len(bags) // 2]
            bags, y, C, factor = bags[half], y[half], 10.0, 1.0
        for m in (10, 50, 100):
            model = SparseMI(
                m, C=C, gamma=f"{factor}/d", n_init=1, max_iter=50, tol=0.0, random_state=0
            )
            fixed = RandomSetSVM(m, C=C, gamma=f"{factor}/d", random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                time = seconds(lambda model=model, bags=bags, y=y: model.fit(bags, y), 3)
            usual = SparseMI(m, C=C, gamma=f"{factor}/d", n_init=1, random_state=0)
            default = seconds(lambda usual=usual, bags=bags, y=y: usual.fit(bags, y), 3)
            short = seconds(lambda fixed=fixed, bags=bags, y=y: fixed.fit(bags, y), 3)
            print(
                f"{name:<10}{m:>4} vectors: 50 iterations {time:.3f} s "
                f"(objective {model.result_.objective:.2f}; prototype {PRINTED[name, m]:.2f} s), "
                f"default {default:.3f} s ({usual.n_iter_} iterations, "
                f"{usual.result_.objective:.2f}), RandomSetSVM {short:.3f} s",
                flush=True,
            )


def fit_large(n, d, m, max_memory):
    """Fit in this process; print wall seconds, evaluations and the peak of its memory."""
    bags, y = made(n, d, np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = KernelMeans(bags, InstanceKernel("rbf", 0.5 / d), m, max_memory=max_memory)
    sign = np.where(y[:, None] > 0, 1.0, -1.0)
    start = bags.instances[:m].astype(float)
    started, worked = perf_counter(), process_time()
    result = minimize_expansion(
        source, start, sign, np.ones_like(sign), length=np.sqrt(2.0 * d), tol=0.0, max_iter=48
    )
    taken, worked = perf_counter() - started, process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps([taken, worked, result.n_evaluations, before * 1024, peak * 1024, source.keeps])
    )


def large(n, d, m):
    for max_memory in ("1GB", "1MB"):
        command = [sys.executable, __file__, "fit_large", "--sizes", f"{n},{d},{m}"]
        done = subprocess.run(
            [*command, "--max-memory", max_memory], check=True, capture_output=True, text=True
        )
        taken, worked, count, before, peak, keeps = json.loads(done.stdout)
        print(
            f"{n} x {d} float32, {m} vectors, {'kept' if keeps else 'recomputed'}: {count} "
            f"evaluations in {taken:.1f} s (wall, all threads; {worked:.1f} s of processors), "
            f"{taken / count * 1e3:.0f} ms each; "
            f"peak {peak / 1e9:.2f} GB, of which the data {before / 1e9:.2f} GB",
            flush=True,
        )


def prediction():
    bags, y = load("musk2")
    dense = MIKernelSVM(C=10.0, gamma="1/d").fit(bags, y)
    slow = seconds(lambda: dense.decision_function(bags), 5)
    print(f"musk2, MIKernelSVM: {slow * 1e3:.1f} ms, {dense.support_vectors_.shape[0]} vectors")
    for m in (10, 50, 100):
        model = SparseMI(m, C=10.0, gamma="1/d", n_init=1, random_state=0).fit(bags, y)
        time = seconds(lambda model=model: model.decision_function(bags), 5)
        print(f"musk2, SparseMI({m}): {time * 1e3:.1f} ms, {slow / time:.0f} times as fast")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["products", "fits", "large", "prediction"])
    parser.add_argument("--sizes", default=None)
    parser.add_argument("--max-memory", default="1GB")
    options = parser.parse_args()
    sizes = None if options.sizes is None else [int(size) for size in options.sizes.split(",")]
    if options.what == ["fit_large"]:
        fit_large(*sizes, options.max_memory)
        return
    for what in options.what:
        if what == "large":
            large(*(sizes or (1_000_000, 64, 50)))
            continue
        os.environ["BAGWISE_NUM_THREADS"] = "1"
        with threadpool_limits(1):
            if what == "products":
                products(*(sizes or (100_000, 64, 50)))
            elif what == "fits":
                fits()
            else:
                prediction()
        del os.environ["BAGWISE_NUM_THREADS"]


if __name__ == "__main__":
    main()
