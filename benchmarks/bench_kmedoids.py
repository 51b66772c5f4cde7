"""Speed of FasterPAM beside the package ``kmedoids`` (GPL), where that is installed, and of BAMIC.

Usage: python benchmarks/bench_kmedoids.py [n_points ...]
"""

import sys
from importlib.util import find_spec
from time import perf_counter

import numpy as np
from scipy.spatial.distance import cdist

from bagwise.cluster import BAMIC
from bagwise.solvers import solve_k_medoids

STARTS, REPEATS = 5, 3


def distances(n, seed=0):
    """Return the distances between points of 15 clusters that overlap."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=2.0, size=(15, 10))
    points = centres[rng.integers(0, 15, n)] + rng.normal(size=(n, 10))
    return cdist(points, points)


def best_times(*functions):
    """Time the functions in turn, so that all see the same noise; return best times and values."""
    times, values = [[] for _ in functions], [function() for function in functions]
    for _ in range(REPEATS):
        for function, record in zip(functions, times, strict=True):
            start = perf_counter()
            function()
            record.append(perf_counter() - start)
    return [min(record) for record in times], values


def bench_swaps(n):
    D = distances(n)
    for k in (3, 10, 50):
        total, objectives = np.zeros(2), np.zeros((STARTS, 2))
        for i in range(STARTS):
            start = np.random.default_rng(i).permutation(n)[:k]
            functions = [
                lambda s=start, k=k: solve_k_medoids(D, k, init=s, check_input=False).objective
            ]
            if find_spec("kmedoids"):
                import kmedoids

                functions.append(
                    lambda s=start: kmedoids.fasterpam(D, s.astype(np.uint64), n_cpu=1).loss
                )
            times, values = best_times(*functions)
            total[: len(times)] += times
            objectives[i, : len(values)] = values
        line = f"n={n:5d} k={k:3d}: {1e3 * total[0] / STARTS:7.2f} ms a start"
        if total[1]:
            same = np.isclose(*objectives.T, rtol=1e-9).sum()
            line += (
                f", kmedoids {1e3 * total[1] / STARTS:7.2f} ms, ratio {total[0] / total[1]:.2f}, "
                f"same objective in {same} of {STARTS}"
            )
        print(line)


def bench_bamic(n_bags=1000, size=31, width=30, n_clusters=5):
    bags = np.random.default_rng(0).normal(size=(n_bags, size, width))
    model = BAMIC(n_clusters, random_state=0).fit(bags[:20])
    start = perf_counter()
    model.fit(bags)
    whole = perf_counter() - start
    print(f"BAMIC, {n_bags} bags of {size} x {width}, 10 starts: {whole:.2f} s")


if __name__ == "__main__":
    for count in map(int, sys.argv[1:] or ["1000", "3000"]):
        bench_swaps(count)
    bench_bamic()
