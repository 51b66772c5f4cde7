"""A grid of 3 gammas x 5 C by 10-fold cross-validation: BagGridSearchCV beside GridSearchCV.

Both search the same estimator on the same folds in one run, and their scores are compared. With
``--search random`` there are 30 candidates whose gamma and C are drawn, with ``--search halving``
as many on ever more bags. Data are
the files ``musk1.npz`` and so on in ``$BAGWISE_DATA``, standardised beforehand, or in the folds by
``--pipeline``. With ``--rules`` the gammas are multiples of "scale", which differs between folds.
Seconds are by the clock and, for a machine that is shared, of the processors. The fits of the
KI-SVMs are random: two searches of either kind differ as much as the two here. Methods that
alternate have one start.
"""

import argparse
import os
import resource
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import loguniform
from sklearn import model_selection
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.embedding import MILES
from bagwise.model_selection import (
    BagGridSearchCV,
    BagHalvingRandomSearchCV,
    BagRandomizedSearchCV,
    StratifiedBagKFold,
)
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MICA, MISVM, SIL, BagKISVM, InsKISVM, MIGraphSVM, MIKernelSVM, miSVM

MODELS = {
    "SIL": SIL,
    "MISVM": partial(MISVM, n_init=1),
    "miSVM": partial(miSVM, n_init=1),
    "MIKernelSVM": MIKernelSVM,
    "miGraph": MIGraphSVM,
    "MIGraph": partial(MIGraphSVM, graph="edges"),
    "MICA": partial(MICA, n_init=1),
    "InsKISVM": InsKISVM,
    "BagKISVM": BagKISVM,
    "MILES": MILES,
}
SEARCHES = {
    "grid": (BagGridSearchCV, {}),
    "random": (BagRandomizedSearchCV, {"n_iter": 30, "random_state": 0}),
    "halving": (BagHalvingRandomSearchCV, {"n_candidates": 30, "random_state": 0}),
}
DEFAULT = [
    ("musk1", "SIL"),
    ("musk1", "MISVM"),
    ("musk1", "miSVM"),
    ("musk1", "MIKernelSVM"),
    ("musk1", "miGraph"),
    ("musk1", "MIGraph"),
    ("musk1", "MICA"),
    ("musk1", "InsKISVM"),
    ("musk1", "BagKISVM"),
    ("musk1", "MILES"),
    ("elephant", "SIL"),
    ("elephant", "MISVM"),
    ("elephant", "MIKernelSVM"),
    ("musk2", "MIKernelSVM"),
]


def load(name, *, standardise):
    with np.load(Path(os.environ["BAGWISE_DATA"]) / f"{name}.npz", allow_pickle=False) as data:
        X, offsets, y = data["X"].astype(np.float64), data["offsets"], data["y"]
    if standardise:
        X = StandardScaler().fit_transform(X)
    return Bags(X, offsets), y


def timed(search, bags, y):
    """Return the seconds that passed, and those of all processors together."""
    start, used = time.perf_counter(), time.process_time()
    search.fit(bags, y)
    return time.perf_counter() - start, time.process_time() - used


def compare(name, model, args):
    bags, y = load(name, standardise=not args.pipeline)
    estimator, prefix = MODELS[model](), ""
    if args.pipeline:
        estimator = make_pipeline(InstanceTransformer(StandardScaler()), estimator)
        prefix = f"{estimator.steps[-1][0]}__"
    gammas = (
        ["0.25*scale", "scale", "4*scale"]
        if args.rules
        else [g / bags.n_features for g in (0.25, 1.0, 4.0)]
    )
    grid = {f"{prefix}C": [0.1, 1.0, 10.0, 100.0, 1000.0], f"{prefix}gamma": gammas}
    cv = StratifiedBagKFold(10, shuffle=True, random_state=0)
    kind, settings = SEARCHES[args.search]
    settings = {**settings, "cv": cv, "n_jobs": args.n_jobs}
    if args.search != "grid":
        ranges = (0.1, 1000.0), (0.25 / bags.n_features, 4.0 / bags.n_features)
        grid = {name: loguniform(*limits) for name, limits in zip(grid, ranges, strict=True)}
    ours = kind(estimator, grid, **settings)
    ours_seconds, ours_used = timed(ours, bags, y)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    theirs = getattr(model_selection, kind.__name__.removeprefix("Bag"))(
        estimator, grid, **settings
    )
    theirs_seconds, theirs_used = timed(theirs, bags, y)
    difference = np.abs(
        ours.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"]
    ).max()
    print(
        f"{name:10} {model:12} {theirs_seconds:10.2f} {ours_seconds:8.2f} "
        f"{theirs_seconds / ours_seconds:6.1f} {theirs_used:10.2f} {ours_used:8.2f} "
        f"{theirs_used / ours_used:6.1f} {difference:9.1e} {ours.best_score_:8.3f} {memory:8.0f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="only this set")
    parser.add_argument("--model", choices=sorted(MODELS), help="only this estimator")
    parser.add_argument("--search", choices=list(SEARCHES), default="grid", help="which search")
    parser.add_argument("--n-jobs", type=int, default=None)
    parser.add_argument("--pipeline", action="store_true", help="standardise inside the folds")
    parser.add_argument("--rules", action="store_true", help="gammas that differ between folds")
    args = parser.parse_args()
    pairs = [
        (name, model)
        for name, model in DEFAULT
        if args.data in (None, name) and args.model in (None, model)
    ]
    if not pairs and args.data and args.model:
        pairs = [(args.data, args.model)]
    for model in MODELS.values():  # compile before the clock runs
        model().fit(np.random.default_rng(0).normal(size=(6, 4, 3)), [0, 1] * 3)
        BagGridSearchCV(model(), {"C": [0.1, 1.0]}, cv=2).fit(
            Bags.from_list(list(np.random.default_rng(0).normal(size=(8, 4, 3)))), [0, 1] * 4
        )
    print(
        f"{'data':10} {'model':12} {'theirs':>10} {'ours':>8} {'ratio':>6} {'cpu theirs':>10} "
        f"{'cpu ours':>8} {'ratio':>6} {'max diff':>9} {'accuracy':>8} {'peak MB':>8}"
    )
    for name, model in pairs:
        compare(name, model, args)


if __name__ == "__main__":
    main()
