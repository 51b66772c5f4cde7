"""What graphs and statistics of bags cost beside one bare pass over all pairs of instances.

The set kernel evaluates the instance kernel once for each pair of instances; every kernel here that
compares instances must pay at least that, so times are also printed as multiples of it. Nothing is
compared with another package. Data are the files ``musk1.npz`` and so on in ``$BAGWISE_DATA``.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

from bagwise.kernels import InstanceKernel, set_gram
from bagwise.kernels._graph import BagGraphs, bag_edges, clique_weights, graph_gram, graph_norms
from bagwise.kernels._statistic import bag_statistics


def best_of(function, repeats):
    """Return the shortest time of several calls, in seconds; the first call is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def steps(X, starts, stops, max_edges, n_threads):
    """Return what is timed: a name, and a function of no arguments."""
    threads = {"n_threads": n_threads}
    node, edge = InstanceKernel("rbf", gamma=1 / X.shape[1]), InstanceKernel("rbf", gamma=10.0)
    weights = clique_weights(X, starts, stops)
    graphs = BagGraphs.of(X, starts, stops, max_edges=max_edges)
    return {
        "set_gram (bare pass)": lambda: set_gram(node, X, starts, stops, **threads),
        "clique_weights": lambda: clique_weights(X, starts, stops, **threads),
        "set_gram with weights": lambda: set_gram(
            node, X, starts, stops, weights=weights, **threads
        ),
        "bag_edges": lambda: bag_edges(X, starts, stops, max_edges=max_edges, **threads),
        "graph_gram": lambda: graph_gram(node, edge, graphs, **threads),
        "graph_norms": lambda: graph_norms(node, edge, graphs, **threads),
        "bag_statistics": lambda: bag_statistics(X, starts, stops, **threads),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("BAGWISE_DATA", "."))
    parser.add_argument("--sets", nargs="+", default=["musk1", "elephant", "musk2"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--max-edges", type=int, default=256)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()

    for name in options.sets:
        with np.load(options.data / f"{name}.npz") as file:
            X, offsets = file["X"].astype(float), file["offsets"]
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        starts, stops = offsets[:-1], offsets[1:]
        n_pairs = int(((stops - starts) * (stops - starts - 1) // 2).sum())
        n_kept = len(bag_edges(X, starts, stops, max_edges=options.max_edges)[0])
        n_edges = len(bag_edges(X, starts, stops, max_edges=None)[0])
        print(
            f"{name}: {len(starts)} bags, {X.shape[0]:,} x {X.shape[1]}, {n_pairs:,} pairs in "
            f"bags, {n_edges:,} edges, {n_kept:,} kept; best of {options.repeats} [ms]"
        )
        for n_threads in options.threads:
            bare = None
            for step, function in steps(X, starts, stops, options.max_edges, n_threads).items():
                seconds = best_of(function, options.repeats)
                bare = bare or seconds
                print(
                    f"  {step:24}{n_threads} thread(s){1e3 * seconds:10.2f}{seconds / bare:8.2f} x"
                )


if __name__ == "__main__":
    main()
