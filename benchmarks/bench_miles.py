"""MILES and MICA from bags to a fitted model, beside other packages where these are installed.

Features are z-scores. MILES: sigma^2 = d, lambda = 0.3. MICA: RBF kernel with gamma = 1/d, C = 1
and 10, one start. Times are processor seconds on one thread, the least of several runs, as other
work on the machine disturbs them less than the clock on the wall. The package ``mil`` is timed in
the same run if it is installed: its mapping and the LinearSVC that its MILES fits (another model:
squared hinge, balanced classes). Otherwise printed figures are shown and named as such.

    BAGWISE_DATA=... python benchmarks/bench_miles.py
"""

import os
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from bagwise import Bags
from bagwise.embedding import MILES
from bagwise.svm import MICA

try:
    from mil.bag_representation import MILESMapping
except ImportError:
    MILESMapping = None

NAMES = ("musk1", "elephant", "musk2")
PRINTED = {  # seconds per fit of the packages mil (MILES) and misvm (MICA, the 2-norm problem)
    ("MILES", "musk1"): 0.054,
    ("MILES", "elephant"): 0.47,
    ("MILES", "musk2"): 12.4,
    ("MICA", "musk1"): 0.14,
    ("MICA", "elephant"): 10.8,
}


def load(name):
    with np.load(Path(os.environ.get("BAGWISE_DATA", "../shared/data")) / f"{name}.npz") as file:
        X, offsets, y = file["X"].astype(float), file["offsets"], file["y"].ravel()
    scale = X.std(axis=0)
    return Bags((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), offsets), y


def seconds(repeats, function):
    times = []
    for _ in range(repeats):
        started = process_time()
        result = function()
        times.append(process_time() - started)
    return min(times), result


def fit_mil(bags, y):
    mapped = MILESMapping(bags.n_features).fit_transform(list(bags))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LinearSVC(
            penalty="l1", C=0.5, dual=False, class_weight="balanced", max_iter=10_000
        ).fit(mapped, y)  # fmt: skip


def peer(method, name, bags, y):
    """Return seconds of the other package, and where the number comes from."""
    if method == "MILES" and MILESMapping is not None:
        return seconds(1, lambda: fit_mil(bags, y))[0], "mil, in this run"
    return PRINTED.get((method, name)), {"MILES": "mil", "MICA": "misvm"}[method] + ", as printed"


def report(model, name, bags, y):
    time, fitted = seconds(5, lambda: model.fit(bags, y))
    method = type(model).__name__
    line = (
        f"{method:<6}{name:<9} C={model.C:<6.3g}{time * 1e3:9.1f} ms "
        f"{fitted.n_iter_:>5} iterations {len(fitted.support_):>4} instances selected"
    )
    theirs, source = peer(method, name, bags, y)
    if theirs is not None:
        line += f"   {source}: {theirs:.3f} s ({theirs / time:.0f} x)"
    print(line, flush=True)


def main():
    toy = np.arange(12.0).reshape(-1, 1)
    for model in (MILES(), MICA(n_init=1)):
        model.fit(toy, np.arange(12) % 2)  # compiles
    for name in NAMES:
        bags, y = load(name)
        for model in (
            MILES(C=1 / 0.6, gamma="1/d"),
            MICA(C=1.0, gamma="1/d", n_init=1),
            MICA(C=10.0, gamma="1/d", n_init=1),
        ):
            report(model, name, bags, y)


if __name__ == "__main__":
    os.environ["BAGWISE_NUM_THREADS"] = "1"
    with threadpool_limits(1):
        main()
