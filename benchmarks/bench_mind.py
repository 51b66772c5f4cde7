"""MInD: seconds of the dissimilarities and of a fit, beside plain NumPy and SciPy, and accuracy.

Seconds are processor seconds on one thread, the least of three runs that take turns. NumPy: one
product of matrices for all pairs of instances and ``reduceat`` over bags. SciPy: ``cdist`` for each
pair of bags. The accuracy is that of the default parameters on standardised features in stratified
10-fold cross-validation, repeated as often as said.

    BAGWISE_DATA=... python benchmarks/bench_mind.py [--repeats 3] [--sets musk1 ...]
"""

import argparse
from time import process_time

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from bagwise.datasets import fetch
from bagwise.embedding import MInD
from bagwise.kernels import InstanceMetric, directed
from bagwise.preprocessing import InstanceTransformer

_MOST_PAIRS = 4e7  # of instances, for which NumPy holds all distances


def by_numpy(bags):
    X, starts = bags.instances, bags.offsets[:-1]
    norms = np.einsum("ij,ij->i", X, X)
    D = np.maximum(norms[:, None] + norms - 2.0 * X @ X.T, 0.0)
    nearest = np.minimum.reduceat(D, starts, axis=1)
    return np.add.reduceat(nearest, starts, axis=0) / bags.sizes[:, None]


def by_scipy(bags):
    parts = list(bags)
    return np.array([[cdist(a, b, "sqeuclidean").min(axis=1).mean() for b in parts] for a in parts])


def by_us(bags):
    return directed(InstanceMetric("sqeuclidean"), *bags.segments, n_threads=1).meanmin


def seconds(functions, bags, rounds=3):
    """Return the least processor time of each function, and check that they agree."""
    best, found = dict.fromkeys(functions, np.inf), {}
    for _ in range(rounds):
        for function in functions:
            started = process_time()
            found[function] = function(bags)
            best[function] = min(best[function], process_time() - started)
    for function in functions:
        np.testing.assert_allclose(found[function], found[by_us], rtol=1e-6, atol=1e-6)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="repeats of 10 folds (3)")
    parser.add_argument("--sets", nargs="+", default=["musk1", "elephant", "fox", "tiger", "musk2"])
    arguments = parser.parse_args()
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=arguments.repeats, random_state=0)
    scaler = InstanceTransformer(StandardScaler())
    for name in arguments.sets:
        data = fetch(name)
        y, bags = data.y, data.bags.map_instances(lambda rows: rows.astype(np.float64))
        bags = scaler.fit_transform(bags)
        by_us(bags)  # compiles
        functions = [by_us, by_scipy]
        if bags.n_instances**2 <= _MOST_PAIRS:
            functions.append(by_numpy)
        times = seconds(functions, bags)
        line = f"{name:9}" + "".join(f" {f.__name__} {t:7.3f} s" for f, t in times.items())
        started = process_time()
        MInD().fit(bags, y)
        line += f"  fit {process_time() - started:6.3f} s"
        if arguments.repeats:
            model = make_pipeline(scaler, MInD())
            line += (
                f"  accuracy {100 * np.mean(cross_val_score(model, data.bags, y, cv=folds)):.1f}"
            )
        print(line, flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
