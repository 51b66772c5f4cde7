"""How well bags are annotated with learned metrics and by rivals, and how well instances are named.

Annotation is the task of Table 4 of the MIMLCA paper. Labels of bags are ranked by `CitationKNN`
(20 references, 20 citers, minimal Hausdorff distance), with the Euclidean distance and with metrics
learned from the lists of the training bags; and by the rivals of that table, one label against the
rest. Features are scaled such that those of the training bags have variance 1, all parameters are
the defaults but the ridge of `MIMLCA`. Means of random halves, of which one trains; no default was
chosen on these halves. One-error and coverage are better if small, average precision if large; the
last figure are processor seconds of a fit and its ranking.

Naming is the share of training instances with a label that is right, of those in bags with lists
that a metric learner named, beside a label drawn from the list:

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/study_metric.py [--sets ...]
        [--models ...] [--repeats 3] [--results FILE] [--table]

Each fit is a line of the file with the results when it is done, and a fit that is there is not run
again. With ``--table`` nothing is run.
"""

import argparse
import json
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from bagwise.datasets import fetch, load_digit_bags
from bagwise.density import EMDD
from bagwise.embedding import MILES, MInD
from bagwise.ensemble import MILBoost
from bagwise.metric import MC2B, MIML, MIMLCA, MildML
from bagwise.metrics import average_precision, coverage, one_error
from bagwise.neighbors import CitationKNN
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MinimaxKernelSVM, miSVM

RESULTS = Path(__file__).parent / "results" / "metric.jsonl"
FIRST_SEED = 100  # the defaults of some learners were chosen on halves of smaller seeds
ANNOTATION = ("letter_carroll", "miml_reuters", "birds_hja", "miml_scene")
NAMING = ("letter_carroll", "birds_hja", "digits")
LEARNERS = {
    "MIMLCA": MIMLCA(ridge=1e-3),
    "MildML": MildML(random_state=0),
    "MIML": MIML(),
    "MC2B": MC2B(random_state=0),
}
MODELS = {
    "Euclidean": CitationKNN(20, 20, distance="min"),
    **{
        name: CitationKNN(20, 20, distance="min", metric=learner)
        for name, learner in LEARNERS.items()
    },
    "MILES": MILES(),
    "miSVM": miSVM(random_state=0),
    "MILBoost": MILBoost(),
    "EMDD": EMDD(search="density"),
    "MInD": MInD(),
    "MinimaxKernelSVM": MinimaxKernelSVM(),
}
RULES = (one_error, coverage, average_precision)


def annotate(bags, y, model, seed):
    """Return the scores of a model on one pair of halves."""
    train, test = np.array_split(np.random.default_rng(seed).permutation(len(bags)), 2)
    scaler = InstanceTransformer(StandardScaler()).fit(bags[train])
    seen, new = scaler.transform(bags[train]), scaler.transform(bags[test])
    began = process_time()
    ranks = clone(MODELS[model]).fit(seen, y[train]).decision_function(new)
    spent = process_time() - began
    scores = [float(rule(y[test], ranks)) for rule in RULES]
    return {"scores": scores, "seconds": spent}


def naming(bags, y, truth, model):
    """Return the share of instances that are named, that named right, and that by chance."""
    bags = InstanceTransformer(StandardScaler()).fit_transform(bags)
    labels = clone(LEARNERS[model]).fit(bags, y).assignments_
    named = labels >= 0
    right = (labels == truth)[named].mean()
    lists = np.repeat(y, bags.sizes, axis=0)[named]
    held = lists[np.arange(len(lists)), np.maximum(truth[named], 0)] * (truth[named] >= 0)
    chance = (held / lists.sum(axis=1)).mean()
    return {"scores": [float(named.mean()), float(right), float(chance)]}


def load(name):
    data = load_digit_bags(multilabel=True) if name == "digits" else fetch(name)
    return data.bags, np.asarray(data.y), data.instance_y


class Results:
    """A file with a line for each fit."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.path, self.known = path, {}
        for line in lines:
            *key, value = json.loads(line)
            self.known[tuple(key)] = value

    def get(self, key, compute):
        if key not in self.known:
            self.known[key] = compute()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*key, self.known[key]]) + "\n")
            print(*key, self.known[key], flush=True)
        return self.known[key]


def run(options, results):
    for name in options.sets:
        bags, y, truth = load(name)
        if name in NAMING and truth is not None:
            for model in ("MIMLCA", "MildML", "MC2B"):
                results.get(
                    ("naming", name, model, 0),
                    lambda bags=bags, y=y, truth=truth, model=model: naming(
                        bags, y, np.asarray(truth), model
                    ),
                )
        if name not in ANNOTATION:
            continue
        for seed in range(FIRST_SEED, FIRST_SEED + options.repeats):
            for model in options.models:
                results.get(
                    ("annotation", name, model, seed),
                    lambda bags=bags, y=y, model=model, seed=seed: annotate(bags, y, model, seed),
                )


def print_tables(results):
    for name in ANNOTATION:
        print(f"\n{name}: one-error, coverage, average precision, seconds, number of halves")
        for model in MODELS:
            fits = [
                fit
                for (task, *key, _), fit in results.known.items()
                if task == "annotation" and key == [name, model]
            ]
            if fits:
                error, depth, precision = np.mean([fit["scores"] for fit in fits], axis=0)
                seconds = np.mean([fit["seconds"] for fit in fits])
                print(
                    f"| {model} | {error:.3f} | {depth:.2f} | {precision:.3f} | {seconds:.1f} | "
                    f"{len(fits)} |"
                )
    for (task, name, model, _), fit in results.known.items():
        if task == "naming":
            named, right, chance = fit["scores"]
            print(f"{name}, {model}: named {named:.3f}, right {right:.3f}, by chance {chance:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=list(dict.fromkeys(ANNOTATION + NAMING)))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    results = Results(options.results)
    if not options.table:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            run(options, results)
    print_tables(results)


if __name__ == "__main__":
    main()
