"""Tables 1 and 2 of the PC-SVM paper: projection constraints beside MI-SVM, on the same folds.

Protocol: stratified 10-fold cross-validation on the five classic sets, 2-fold on the Corel sets,
repeated with other folds. Features are scaled to [0, 1] on the training fold. Parameters are chosen
by stratified 3-fold cross-validation of the training fold, in two stages: gamma (in units of one
over the median squared distance) and C of MI-SVM, 9 configurations; then, for the three best pairs,
spread and penalty of the constraints, 18 more, for each centring apart. PC-SVM takes the best of
all 27, where no constraint is among the choices and has the precedence if scores are equal. MI-SVM
is the best of the first 9. One start each. More than two classes are learned one against the rest.

Printed are the accuracy in percent over all bags, mean over repeats; the false-positive rate, of
negative bags that are called positive (over all labels, each against the rest, where there are
more than two); the differences to MI-SVM with their standard errors over bags, where each bag
counts with its mean over repeats; how often constraints were chosen; and what the paper prints.

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/study_pc_svm.py [--sets ...]
        [--repeats 1] [--results FILE]

Each fold is a line of the file with the results when it is done, and a fold that is there is not
run again.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MinMaxScaler

from bagwise.datasets import fetch
from bagwise.exceptions import ConstantModelWarning
from bagwise.kernels import resolve_gamma
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import PCSVM

RESULTS = Path(__file__).parent / "results" / "pc_svm.jsonl"
N_FOLDS = {
    "musk1": 10, "musk2": 10, "elephant": 10, "fox": 10, "tiger": 10, "corel1000": 2, "corel2000": 2
}  # fmt: skip

WIDTHS, COSTS = (0.5, 2.0, 8.0), (1.0, 10.0, 100.0)
CONSTRAINTS = {"spread": [0.5, 0.75, 0.9], "penalty": [0.1, 1.0]}
BEST = 3  # pairs of gamma and C for which constraints are tried
CENTRINGS = ("bag", "none")
METHODS = ("MI-SVM", *(f"PC-SVM, {centring}" for centring in CENTRINGS))

#: What the paper prints of PC-SVM and MI-SVM, in the order of N_FOLDS.
PRINTED = {
    "PC-SVM": (90.6, 91.3, 89.8, 65.7, 83.8, 85.6, 75.8),
    "MI-SVM": (77.9, 84.3, 81.4, 59.4, 84.0, 74.7, 54.6),
}


def searched(model, grid, bags, y, folds):
    """Return the candidates of a grid with their mean scores on the folds, best first."""
    found = BagGridSearchCV(model, grid, cv=folds, refit=False).fit(bags, y).cv_results_
    order = np.argsort(-found["mean_test_score"], kind="stable")
    return [(float(found["mean_test_score"][k]), found["params"][k]) for k in order]


def choices(bags, y, seed):
    """Return the parameters of each method, chosen on training bags."""
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    unit = resolve_gamma("median", bags.instances)
    plain = {"gamma": [width * unit for width in WIDTHS], "C": COSTS}
    first = searched(PCSVM(spread=1.0, n_init=1), plain, bags, y, folds)
    chosen = {"MI-SVM": {**first[0][1], "spread": 1.0}}
    grid = [
        {name: [value] for name, value in pair.items()} | CONSTRAINTS for _, pair in first[:BEST]
    ]
    for centring in CENTRINGS:
        model = PCSVM(centering=centring, n_init=1)
        score, best = searched(model, grid, bags, y, folds)[0]
        best = best if score > first[0][0] else chosen["MI-SVM"]
        chosen[f"PC-SVM, {centring}"] = {**best, "centering": centring}
    return chosen


def run_fold(bags, y, train, test, seed):
    """Return what each method makes of the test bags of a fold, and what it has chosen."""
    scaler = InstanceTransformer(MinMaxScaler())
    scaled, others = scaler.fit_transform(bags[train]), scaler.transform(bags[test])
    cell = {}
    for method, chosen in choices(scaled, y[train], seed).items():
        model = PCSVM(n_init=1, **chosen).fit(scaled, y[train])
        scores = model.decision_function(others).reshape(len(test), -1)
        labels = model.classes_[-scores.shape[1] :]  # of two classes the last one has the scores
        wrong = (scores > 0.0) & (y[test][:, None] != labels)
        cell[method] = {
            "right": (model.predict(others) == y[test]).astype(int).tolist(),
            "false_positives": wrong.sum(axis=1).tolist(),
            "negatives": (y[test][:, None] != labels).sum(axis=1).tolist(),
            "chosen": chosen,
        }
    return cell


def read_results(path):
    """Return the folds by data set, repeat and number."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    folds = [json.loads(line) for line in lines]
    return {(fold["set"], fold["repeat"], fold["fold"]): fold for fold in folds}


def by_bag(folds, method, what, n_bags):
    """Return a count of each bag, summed over repeats."""
    total = np.zeros(n_bags)
    for fold in folds:
        np.add.at(total, fold["test"], fold["methods"][method][what])
    return total


def with_error(values):
    """Return the mean of values of bags in percent, with its standard error over bags."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{100 * values.mean():+.1f} ± {100 * error:.1f}"


def report(dataset, folds):
    """Print the lines of the table for a data set, from the repeats that are complete."""
    n_bags = sum(len(fold["test"]) for fold in folds if fold["repeat"] == 0)
    n_repeats = len({fold["repeat"] for fold in folds})
    negatives = by_bag(folds, "MI-SVM", "negatives", n_bags)
    shown = {
        method: (
            by_bag(folds, method, "right", n_bags) / n_repeats,
            by_bag(folds, method, "false_positives", n_bags) * n_bags / negatives.sum(),
        )
        for method in METHODS
    }
    for method, (right, wrong) in shown.items():
        base_right, base_wrong = shown["MI-SVM"]
        bound = np.mean([fold["methods"][method]["chosen"]["spread"] < 1.0 for fold in folds])
        printed = PRINTED[method.split(",")[0]][list(N_FOLDS).index(dataset)]
        print(
            f"| {dataset} ({n_repeats}) | {method} | {100 * right.mean():.1f} | "
            f"{with_error(right - base_right)} | {100 * wrong.mean():.1f} | "
            f"{with_error(wrong - base_wrong)} | {100 * bound:.0f} % | {printed} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(N_FOLDS), choices=list(N_FOLDS))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", ConstantModelWarning)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    done = read_results(options.results)
    print("| set (repeats) | method | accuracy | - MI-SVM | FPR | - MI-SVM | constrained | paper |")
    print("|---|---|---|---|---|---|---|---|")
    for dataset in options.sets:
        bags = fetch(dataset).bags
        y, mine = np.asarray(bags.labels), []
        for repeat in range(options.repeats):
            splitter = StratifiedKFold(N_FOLDS[dataset], shuffle=True, random_state=repeat)
            for k, (train, test) in enumerate(splitter.split(y, y)):
                if (dataset, repeat, k) not in done:
                    start = time.process_time()
                    fold = {"set": dataset, "repeat": repeat, "fold": k, "test": test.tolist()}
                    fold["methods"] = run_fold(bags, y, train, test, repeat)
                    fold["seconds"] = time.process_time() - start
                    done[dataset, repeat, k] = fold
                    with options.results.open("a", encoding="utf-8") as file:
                        print(json.dumps(fold), file=file)
                mine.append(done[dataset, repeat, k])
        report(dataset, mine)


if __name__ == "__main__":
    main()
