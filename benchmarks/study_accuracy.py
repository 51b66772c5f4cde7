"""Accuracy on the five classic sets, parameters chosen inside the training folds.

Protocol: stratified 10-fold cross-validation, repeated with other folds. On the training fold the
features are standardised. Then gamma and C, and nothing else, are chosen by stratified 3-fold
cross-validation of the training fold. For kernels between bags, whose fits take a millisecond, that
is repeated twenty times, and gamma is in units of one over the number of features, else of one over
the median squared distance in the training fold. Printed are the mean over repeats of the accuracy
over all bags, its standard error over repeats, and what the papers print.

    BAGWISE_DATA=... python benchmarks/study_accuracy.py [--repeats 5] [--inner 20]
        [--methods ...] [--sets ...]
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from bagwise.datasets import fetch
from bagwise.embedding import MILES
from bagwise.kernels import resolve_gamma
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MISVM, LabelMeanSVM, MIGraphSVM, MIKernelSVM, miSVM

SETS = ("musk1", "musk2", "elephant", "fox", "tiger")
FEW = {"gamma": [0.25, 1.0, 4.0], "C": [1.0, 10.0, 100.0]}
MANY = {"gamma": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0], "C": [1.0, 10.0, 100.0, 1000.0]}
CUTS = {"gamma": [0.25, 1.0, 4.0], "C": [0.5, 1.0, 2.0, 5.0]}

#: Estimator, grid, the unit of gamma in it, repeats of the inner folds.
METHODS = {
    "MISVM": (MISVM(n_init=1), FEW, "median", 1),
    "miSVM": (miSVM(n_init=1), FEW, "median", 1),
    "MIKernelSVM": (MIKernelSVM(), MANY, "1/d", 20),
    "LabelMeanSVM": (LabelMeanSVM(), MANY, "1/d", 20),
    "miGraph": (MIGraphSVM(), MANY, "1/d", 20),
    "MILES": (MILES(), CUTS, "median", 1),
}

#: What the papers print, in the order of SETS; None where they do not.
PRINTED = {
    ("MISVM", "MI-ODM, PC-SVM"): (77.9, 84.3, 81.4, 59.4, 84.0),
    ("MISVM", "SparseMI"): (77.1, 83.2, None, None, None),
    ("miSVM", "MI-ODM"): (87.4, 83.6, 82.0, 58.2, 78.9),
    ("miSVM", "SparseMI"): (87.3, 80.5, None, None, None),
    ("MIKernelSVM", "MI-ODM, PC-SVM"): (88.0, 89.3, 84.3, 60.3, 84.2),
    ("MIKernelSVM", "SparseMI"): (89.9, 90.3, None, None, None),
    ("LabelMeanSVM", "SparseMI, as MI-Kernel"): (89.9, 90.3, None, None, None),
    ("miGraph", "PC-SVM"): (88.9, 90.3, 86.8, 61.6, 86.0),
    ("MILES", "SparseMI"): (85.7, 87.6, None, None, None),
}


def load(name):
    """Return the bags of a set and whether each is positive."""
    bags = fetch(name).bags
    labels = np.asarray(bags.labels)
    return bags, (labels == labels.max()).astype(int)


def one_repeat(method, bags, y, seed, n_inner):
    """Return the accuracy over all bags of one 10-fold cross-validation."""
    estimator, grid, rule, n_repeats = METHODS[method]
    right = 0
    for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(y, y):
        scaler = InstanceTransformer(StandardScaler())
        scaled = scaler.fit_transform(bags[train])
        unit = resolve_gamma(rule, scaled.instances)
        search = BagGridSearchCV(
            estimator,
            {**grid, "gamma": [width * unit for width in grid["gamma"]]},
            cv=RepeatedStratifiedKFold(
                n_splits=3, n_repeats=n_inner or n_repeats, random_state=seed
            ),
        )
        search.fit(scaled, y[train])
        right += int((search.predict(scaler.transform(bags[test])) == y[test]).sum())
    return 100.0 * right / len(y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--inner", type=int, help="repeats of the inner folds, not those above")
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--sets", nargs="*", default=SETS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for dataset in options.sets:
        bags, y = load(dataset)
        for method in options.methods:
            start = time.perf_counter()
            scores = [
                one_repeat(method, bags, y, seed, options.inner) for seed in range(options.repeats)
            ]
            error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
            printed = "; ".join(
                f"{values[SETS.index(dataset)]} ({paper})"
                for (name, paper), values in PRINTED.items()
                if name == method and values[SETS.index(dataset)] is not None
            )
            print(
                f"{dataset:>9} {method:>12} {np.mean(scores):5.1f} +- {error:.1f} "
                f"({len(scores)} repeats, {time.perf_counter() - start:.0f} s)  papers: {printed}",
                flush=True,
            )


if __name__ == "__main__":
    main()
