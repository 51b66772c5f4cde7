"""Accuracy of the older methods on the five classic sets, parameters chosen inside the folds.

Protocol: stratified 10-fold cross-validation. Parameters are chosen from a small grid by stratified
3-fold cross-validation of the training fold; where the method does not standardise features
itself, that is done on the training fold too (with APR, whether to do so is part of the grid).
Densities are searched for and powers aligned as published: search="density", power="aligned".
Printed are the accuracy over all bags in percent with its standard error over bags, the processor
seconds of all folds together, choices included, and what papers print: the five papers, or, in
italics, others as they are quoted.

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/study_baselines.py [--sets ...]
        [--methods ...] [--results FILE] [--table]

Each fold is a line of the file with the results when it is done, and a fold that is there is not
run again. With ``--table`` nothing is run.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from bagwise.datasets import fetch
from bagwise.density import APR, EMDD, DiverseDensity
from bagwise.embedding import DDSVM, PPMMSVM, MInD
from bagwise.ensemble import MILBoost
from bagwise.exceptions import ConstantModelWarning
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer

RESULTS = Path(__file__).parent / "results" / "baselines.jsonl"
SETS = ("musk1", "elephant", "musk2", "tiger", "fox")
SCALER = InstanceTransformer(StandardScaler())
SCALES = {"first_scale": [0.05, 0.1, 0.2]}
ROUNDS = {"n_estimators": [10, 30, 100]}


def scaled(model, scaler=SCALER):
    return Pipeline([("scaler", scaler), ("model", model)])


#: Estimator and grid.
METHODS = {
    "DiverseDensity": (DiverseDensity(search="density"), SCALES),
    "EMDD": (EMDD(search="density"), SCALES),
    "APR": (
        scaled(APR()),
        {
            "scaler": ["passthrough", SCALER],
            "model__margin": [0.5, 1.0, 2.0],
            "model__tau": [0.99, 0.999],
        },
    ),
    "MILBoost, noisy or": (MILBoost(), ROUNDS),
    "MILBoost, ISR": (MILBoost(variant="isr"), ROUNDS),
    "MILBoost, average": (MILBoost(variant="average"), ROUNDS),
    "MInD": (
        scaled(MInD()),
        {
            "model__C": [10.0, 100.0, 1000.0, 10000.0],
            "model__dissimilarity": ["meanmin", "minmin", "maxmin"],
        },
    ),
    "PPMMSVM": (
        PPMMSVM(power="aligned", random_state=0),
        {"C": [1.0, 10.0], "n_components": [40, 100, 200], "min_variance": [0.1, 0.3, 1.0]},
    ),
    "DDSVM": (DDSVM(), {"C": [1.0, 10.0, 100.0], "gamma": [0.1, 0.3, 1.0, 3.0]}),
}

#: What papers print, in the order of SETS; a minus where they are not among the five.
PRINTED = {
    "DiverseDensity": (88.0, None, 84.0, None, None),
    "EMDD": (84.8, 78.3, 84.9, 72.1, 56.1),
    "APR": (-92.4, None, -89.2, None, None),
    "PPMMSVM": (-95.6, -82.4, -81.2, -80.2, -60.3),
    "DDSVM": (-85.8, None, -91.3, None, None),
    "MILBoost, noisy or": (-71.0, -73.0, -61.0, -56.0, -58.0),
}


def run_fold(method, bags, y, train, test, seed):
    """Return which test bags of a fold are right, what was chosen, and the processor seconds."""
    start = time.process_time()
    model, grid = METHODS[method]
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    search = BagGridSearchCV(model, grid, cv=folds).fit(bags[train], y[train])
    right = search.predict(bags[test]) == y[test]
    return {
        "right": right.astype(int).tolist(),
        "chosen": {name: str(value) for name, value in search.best_params_.items()},
        "seconds": time.process_time() - start,
    }


def read_results(path):
    """Return the folds by data set, method and number."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    folds = [json.loads(line) for line in lines]
    return {(fold["set"], fold["method"], fold["fold"]): fold for fold in folds}


def printed(method, dataset):
    value = PRINTED.get(method, (None,) * len(SETS))[SETS.index(dataset)]
    if value is None:
        return ""
    return f"{value:g}" if value > 0 else f"*{-value:g}*"


def cell(folds):
    """Return accuracy, standard error and seconds; nothing unless all folds are there."""
    if len(folds) < 10:
        return ""
    right = np.concatenate([fold["right"] for fold in folds])
    error = right.std(ddof=1) / np.sqrt(len(right))
    seconds = sum(fold["seconds"] for fold in folds)
    return f"{100 * right.mean():.1f} ± {100 * error:.1f} ({seconds:.0f} s)"


def print_table(done):
    print(f"| | {' | '.join(SETS)} |")
    print("|---" * (1 + len(SETS)) + "|")
    for method in METHODS:
        cells = [
            cell([done[name, method, k] for k in range(10) if (name, method, k) in done])
            for name in SETS
        ]
        print(f"| {method} | {' | '.join(cells)} |")
        figures = [printed(method, name) for name in SETS]
        if any(figures):
            print(f"| papers | {' | '.join(figures)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print what is there")
    options = parser.parse_args()
    for category in (ConvergenceWarning, ConstantModelWarning):
        warnings.simplefilter("ignore", category)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    done = read_results(options.results)
    for dataset in () if options.table else options.sets:
        bags = fetch(dataset).bags
        labels = np.asarray(bags.labels)
        y = (labels == labels.max()).astype(int)
        splits = list(StratifiedKFold(10, shuffle=True, random_state=0).split(y, y))
        for method in options.methods:
            for k, (train, test) in enumerate(splits):
                if (dataset, method, k) not in done:
                    fold = {"set": dataset, "method": method, "fold": k}
                    fold |= run_fold(method, bags, y, train, test, seed=k)
                    done[dataset, method, k] = fold
                    with options.results.open("a", encoding="utf-8") as file:
                        print(json.dumps(fold), file=file)
    print_table(done)


if __name__ == "__main__":
    main()
