"""Table 3 of the MI-ODM paper, and key instances of MIODM beside other methods.

Accuracy: stratified 5-fold cross-validation on the five classic sets, features scaled to [0, 1] on
the training fold. Parameters are chosen by stratified 3-fold cross-validation of the training fold
in two stages: gamma (in units of one over the median squared distance) and C, 12 configurations;
then theta and nu for the three best pairs, 12 more. They are chosen with ``solver="local"``, which
takes a fraction of the time; the machine with the parameters chosen has the default solver.

Key instances: the share of positive test bags in which the instance of highest score is a key
instance, with default parameters. Half the bags are learned from: of made-up bags at several
separations, of digits, of the newsgroup sets, and of 150 bags with birds, where it is the best of
the labelled instances that counts. Features of the last two are standardised on the training bags.

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/study_miodm.py accuracy [--sets ...]
        [--repeats 1] [--results FILE]
    BAGWISE_DATA=... python benchmarks/study_miodm.py keys [--settings ...] [--repeats 3]
        [--results FILE]

Each fold or draw is a line of the file with the results when it is done, and what is there is not
run again.
"""

import argparse
import json
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from bagwise.datasets import fetch, load_digit_bags, make_key_instance_bags
from bagwise.exceptions import ConstantModelWarning
from bagwise.kernels import resolve_gamma
from bagwise.metrics import key_instance_success_rate
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MIODM, MISVM, PCSVM, BagKISVM, InsKISVM, MIKernelSVM, miSVM

RESULTS = Path(__file__).parent / "results" / "miodm.jsonl"
#: What the paper prints of MI-ODM.
PRINTED = {"musk1": 88.2, "musk2": 89.8, "elephant": 84.5, "fox": 63.9, "tiger": 85.2}
WIDTHS, COSTS, BEST = (0.5, 2.0, 8.0), (0.1, 1.0, 10.0, 100.0), 3
BANDS = {"theta": [0.2, 0.6], "nu": [0.2, 0.8]}
SEPARATIONS = (2.0, 3.0, 4.0)
METHODS = (MIODM, MISVM, miSVM, InsKISVM, BagKISVM, MIKernelSVM, PCSVM)


class Results:
    """Lines of a file, by what they are about."""

    def __init__(self, path):
        self.path, self.found = path, {}
        if path.exists():
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            self.found = {tuple(line["of"]): line["value"] for line in lines}

    def get(self, of, make):
        """Return what is there, or make and keep it."""
        if of not in self.found:
            self.found[of] = make()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps({"of": of, "value": self.found[of]}) + "\n")
        return self.found[of]


def best_parameters(bags, y, seed):
    """Return the parameters that are best on folds of training bags."""
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)

    def search(grid):
        model = MIODM(solver="local")
        return BagGridSearchCV(model, grid, cv=folds, refit=False).fit(bags, y).cv_results_

    unit = resolve_gamma("median", bags.instances)
    first = search({"gamma": [width * unit for width in WIDTHS], "C": COSTS})
    order = np.argsort(-first["mean_test_score"], kind="stable")[:BEST]
    pairs = [{name: [value] for name, value in first["params"][k].items()} for k in order]
    found = search([pair | BANDS for pair in pairs])
    return found["params"][int(found["mean_test_score"].argmax())]


def fold_errors(data, train, test, seed):
    """Return how many test bags are labelled rightly, and how many there are."""
    scaler = InstanceTransformer(MinMaxScaler()).fit(data.bags[train])
    bags, others = scaler.transform(data.bags[train]), scaler.transform(data.bags[test])
    y = data.y[train]
    model = MIODM(random_state=0, **best_parameters(bags, y, seed)).fit(bags, y)
    return [int((model.predict(others) == data.y[test]).sum()), len(test)]


def accuracy(options, results):
    print(f"{'data':>9} | right % (repeats) | paper")
    for name in options.sets:
        data, rates = fetch(name), []
        for repeat in range(options.repeats):
            folds = StratifiedKFold(5, shuffle=True, random_state=repeat)
            parts = folds.split(np.zeros(len(data.y)), data.y)
            counts = [
                results.get(
                    ("accuracy", name, repeat, k),
                    lambda parts=(data, *part, repeat): fold_errors(*parts),
                )
                for k, part in enumerate(parts)
            ]
            right, total = np.sum(counts, axis=0)
            rates.append(100.0 * right / total)
        spread = np.std(rates, ddof=1) / np.sqrt(len(rates)) if len(rates) > 1 else np.nan
        cell = f"{np.mean(rates):.1f} +- {spread:.1f} ({len(rates)})"
        print(f"{name:>9} | {cell:>17} | {PRINTED[name]}", flush=True)


def made(separation, seed):
    """Return training and test bags with labels, and which instances of the latter are keys."""
    train, test = (
        make_key_instance_bags(80, separation=separation, random_state=2 * seed + k)
        for k in range(2)
    )
    return train.bags, train.y, test.bags, test.y, (test.instance_y == 1).astype(float)


def digits(seed):
    train, test = (
        load_digit_bags(120, target=seed % 10, images=part) for part in ("train", "test")
    )
    return train.bags, train.y, test.bags, test.y, (test.instance_y == test.target).astype(float)


def halves(name, label, n_bags, seed):
    """Return halves of a set; instances without a label are neither keys nor others, NaN."""
    data = fetch(name)
    y = (data.y[:, label] if data.y.ndim == 2 else data.y == label).astype(int)
    train, test = train_test_split(
        np.arange(len(y)), train_size=n_bags // 2, test_size=n_bags - n_bags // 2, stratify=y,
        random_state=seed,
    )  # fmt: skip
    scaler = InstanceTransformer(StandardScaler()).fit(data.bags[train])
    bags = scaler.transform(data.bags[train]), scaler.transform(data.bags[test])
    parts = np.split(data.instance_y, data.bags.offsets[1:-1])
    marks = np.concatenate([parts[i] for i in test])
    is_key = np.where(marks < 0, np.nan, marks == label)
    return bags[0], y[train], bags[1], y[test], is_key


#: What draws the bags of each setting, given a seed.
SETTINGS = {
    **{f"made {separation:g}": partial(made, separation) for separation in SEPARATIONS},
    "digits": digits,
    **{
        name.rsplit("_", 1)[1]: partial(halves, name, 1, 100)
        for name in (
            "news_alt_atheism", "news_comp_graphics", "news_rec_sport_hockey", "news_sci_med",
        )
    },
    "creeper": partial(halves, "birds_hja", 0, 150),
    "nuthatch": partial(halves, "birds_hja", 3, 150),
    "thrush": partial(halves, "birds_hja", 8, 150),
}  # fmt: skip


def success(method, setting, seed):
    """Return the success rate on test bags, and the share of right labels."""
    bags, y, others, true, is_key = SETTINGS[setting](seed)
    model = method()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    model.fit(bags, y)
    scores = np.where(np.isnan(is_key), -np.inf, model.instance_decision_function(others))
    places = [int(part.argmax()) for part in np.split(scores, others.offsets[1:-1])]
    rate = key_instance_success_rate(np.nan_to_num(is_key), places, others.offsets)
    return [float(rate), float((model.predict(others) == true).mean())]


def keys(options, results):
    print("key instances / labels, % of test bags, means over", options.repeats, "draws")
    print(f"{'':>12} | " + " | ".join(f"{name:>9}" for name in options.settings))
    for method in METHODS:
        cells = []
        for setting in options.settings:
            values = [
                results.get(
                    ("keys", method.__name__, setting, seed),
                    lambda task=(method, setting, seed): success(*task),
                )
                for seed in range(options.repeats)
            ]
            cells.append(" / ".join(f"{100 * value:.0f}" for value in np.mean(values, axis=0)))
        print(f"{method.__name__:>12} | " + " | ".join(f"{cell:>9}" for cell in cells), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("accuracy", "keys"))
    parser.add_argument("--sets", nargs="+", default=list(PRINTED))
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ConstantModelWarning)
        (accuracy if options.part == "accuracy" else keys)(options, Results(options.results))


if __name__ == "__main__":
    main()
