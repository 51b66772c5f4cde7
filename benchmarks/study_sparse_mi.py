"""Table 1 of the SparseMI paper: sparse kernel expansions beside the dense machine.

Protocol (section 4.2 of the paper): 10-fold cross-validation on the Musk sets, halves for training
and testing on the Corel sets, stratified, repeated with other partitions. The features are
standardised with the means and deviations of the training bags. gamma and C, and nothing else, are
chosen by stratified 3-fold cross-validation inside the training bags, for each method and each
number of vectors apart; only RS on the Musk sets, where a fit takes seconds, takes what is best for
the dense machine that it approximates. Printed are the mean over repeats of the accuracy in
percent, its standard error over repeats, and what the paper prints. The grids, which the paper does
not give, are below.

    BAGWISE_DATA=... python benchmarks/study_sparse_mi.py [--repeats 10] [--methods ...]
        [--sets ...] [--vectors 10 50 100] [--jobs 2] [--minutes 30]

A cell whose first repeat says that it would take longer than ``--minutes`` gets fewer repeats.
"""

import argparse
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from bagwise.datasets import fetch
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import (
    LabelMeanSVM,
    MIKernelSVM,
    RandomSetSVM,
    ReducedSetSVM,
    SparseMI,
)

SETS = ("musk1", "musk2", "corel1000", "corel2000")
#: gamma in units of one over the number of features.
DENSE = {"gamma": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0], "C": [1.0, 10.0, 100.0, 1000.0]}
SPARSE = {"gamma": [0.5, 1.0, 2.0, 4.0], "C": [1.0, 10.0, 100.0]}

#: Whether the method has a number of vectors, and its estimator.
METHODS = {
    "MI-Kernel": (False, MIKernelSVM),
    "LabelMean": (False, LabelMeanSVM),
    "RS": (True, ReducedSetSVM),
    "RSVM": (True, RandomSetSVM),
    "SparseMI": (True, SparseMI),
}

#: What the paper prints, in the order of SETS.
PRINTED = {
    ("MI-Kernel", None): (89.93, 90.26, 84.30, 73.19),
    ("RS", 10): (88.68, 86.39, 75.13, 55.20),
    ("RS", 50): (89.61, 89.92, 79.87, 66.27),
    ("RS", 100): (90.18, 89.16, 78.81, 65.35),
    ("RSVM", 10): (74.66, 77.70, 69.25, 48.53),
    ("RSVM", 50): (87.23, 86.71, 76.94, 62.54),
    ("RSVM", 100): (89.02, 88.26, 77.63, 63.82),
    ("SparseMI", 10): (88.44, 88.52, 80.10, 62.49),
    ("SparseMI", 50): (89.98, 88.02, 84.19, 71.66),
    ("SparseMI", 100): (90.40, 87.98, 84.31, 72.22),
}


def partitions(dataset, y, seed):
    """Return the training and testing bags of one repeat."""
    if dataset.startswith("musk"):
        splitter = StratifiedKFold(10, shuffle=True, random_state=seed)
    else:
        splitter = StratifiedShuffleSplit(1, test_size=0.5, random_state=seed)
    return list(splitter.split(y, y))


def estimator_of(method, n_vectors, seed):
    """Return the estimator of a cell, and its grid."""
    has_vectors, cls = METHODS[method]
    if not has_vectors:
        return cls(), DENSE
    seeded = {} if method == "RS" else {"random_state": seed}
    return cls(n_vectors=n_vectors, **seeded), SPARSE


def right_answers(method, n_vectors, dataset, train, test, seed):
    """Choose gamma and C on the training bags; return how many test bags are classified right."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    bags = fetch(dataset).bags
    y = np.asarray(bags.labels)
    scaler = InstanceTransformer(StandardScaler())
    scaled = scaler.fit_transform(bags[train])
    estimator, grid = estimator_of(method, n_vectors, seed)
    by_machine = method == "RS" and dataset.startswith("musk")
    widths = [width / bags.n_features for width in grid["gamma"]]
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    search = BagGridSearchCV(
        LabelMeanSVM() if by_machine else estimator, {**grid, "gamma": widths}, cv=folds
    )
    best = search.fit(scaled, y[train]).best_estimator_
    if by_machine:
        best = estimator.set_params(**search.best_params_).fit(scaled, y[train])
    return int((best.predict(scaler.transform(bags[test])) == y[test]).sum())


def one_repeat(method, n_vectors, dataset, y, seed, pool):
    """Return the accuracy in percent over the test bags of one partition."""
    parts = partitions(dataset, y, seed)
    right = pool(
        delayed(right_answers)(method, n_vectors, dataset, train, test, seed)
        for train, test in parts
    )
    return 100.0 * sum(right) / sum(len(test) for _, test in parts)


def study(method, n_vectors, dataset, options, pool):
    """Run the repeats of one cell and print its line."""
    y = np.asarray(fetch(dataset).bags.labels)
    start = time.perf_counter()
    scores = []
    for seed in range(options.repeats):
        scores.append(one_repeat(method, n_vectors, dataset, y, seed, pool))
        spent = time.perf_counter() - start
        if spent * (seed + 2) / (seed + 1) > 60.0 * options.minutes:
            break
    error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    printed = PRINTED.get((method, n_vectors))
    paper = "" if printed is None else f"  paper: {printed[SETS.index(dataset)]}"
    name = method if n_vectors is None else f"{method} {n_vectors}"
    print(
        f"{dataset:>9} {name:>12} {np.mean(scores):5.2f} +- {error:.2f} "
        f"({len(scores)} repeats, {time.perf_counter() - start:.0f} s){paper}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--vectors", nargs="*", type=int, default=(10, 50, 100))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    with Parallel(n_jobs=options.jobs) as pool:
        for dataset in options.sets:
            for method in options.methods:
                for n_vectors in options.vectors if METHODS[method][0] else (None,):
                    study(method, n_vectors, dataset, options, pool)


if __name__ == "__main__":
    main()
