"""Which starts bring the alternating methods to good ends: accuracy and objective of each alone.

Tasks: 20 sets of 60 bags of noise in which one instance of each positive bag is shifted, of five
shapes; Musk 1, Elephant, Fox and Tiger; three categories of corel2000, each with as many bags of
the others; digit bags. Features are standardised on the training folds, C is 1, all other
parameters are the defaults. Stratified cross-validation, the same folds for all.

Starts tried: the method's own ("first"); the instances furthest along the difference of the means
of positive and negative bags ("means"); the same towards the mean of these instances, and so on
("keys"); the best by a soft machine on labels of bags ("labels"); the best by the scores of SIL
("SIL"); the instances that have the most in common with other positive bags and the least with
negative ones ("density"); choices drawn at random. Families of them: "default" is what the library
has, "first" and "keys", or "keys" and "labels", by training errors and objective, "objective" the
same by the objective alone, "random" is "first" and nine random ones.

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/study_starts.py [--methods ...] [--folds 5]
"""

import argparse
import warnings
from collections import defaultdict
from functools import partial
from unittest.mock import patch

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.bags import segment_max
from bagwise.datasets import fetch, load_digit_bags
from bagwise.model_selection import StratifiedBagKFold
from bagwise.preprocessing import InstanceTransformer
from bagwise.solvers import key_scores, mean_scores
from bagwise.svm import MICA, MISVM, SIL, STMIL, MissSVM, RegSVM, miSVM
from bagwise.svm.machinery import _kernel_machine
from bagwise.svm.machinery._alternation import alternate
from bagwise.svm.machinery._starts import label_scores

METHODS = {
    "MISVM": MISVM(C=1.0),
    "miSVM": miSVM(),
    "MICA": MICA(C=1.0),
    "STMIL": STMIL(C=1.0),
    "MissSVM": MissSVM(),
    "RegSVM": RegSVM(C=1.0, normalization="feature_space"),
}
SHAPES = [(2, 5.0, 5), (5, 5.0, 8), (10, 6.0, 12), (20, 6.0, 5), (40, 8.0, 8)]  # d, shift, size
CLASSICS = ("musk1", "elephant", "fox", "tiger")
CATEGORIES = (0, 7, 14)
N_RANDOM = 9


# ------------------------------------------------------------------------------------------ tasks


def shifted(seed, n_features, shift, size):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=n_features)
    direction *= shift / np.linalg.norm(direction)
    y = np.arange(60) % 2
    bags = [rng.normal(size=(size, n_features)) for _ in y]
    for bag, label in zip(bags, y, strict=True):
        if label:
            bag[rng.integers(size)] += direction
    return Bags.from_list(bags), y


def corel(category):
    data = fetch("corel2000")
    is_positive = np.asarray(data.y) == np.unique(data.y)[category]
    others = np.random.default_rng(category).choice(
        np.flatnonzero(~is_positive), is_positive.sum(), replace=False
    )
    index = np.sort(np.concatenate([np.flatnonzero(is_positive), others]))
    return data.bags[index], is_positive[index].astype(int)


def tasks():
    """Yield the group of a task, its bags and labels."""
    for shape in SHAPES:
        for seed in range(4):
            yield "shifted", *shifted(seed, *shape)
    for name in CLASSICS:
        data = fetch(name)
        yield name, data.bags, np.asarray(data.y == np.unique(data.y)[-1], int)
    for category in CATEGORIES:
        yield f"corel {category}", *corel(category)
    digits = load_digit_bags(n_bags=200)
    yield "digits", digits.bags, np.asarray(digits.y, int)


# ----------------------------------------------------------------------------------------- starts


def sil_scores(problem, bags, y):
    return SIL(positive_cost=1.0).fit(bags, y).instance_decision_function(bags)


def density_scores(problem, bags, y):
    """Return the mean similarity to positive bags less that to negative ones."""
    X, offsets = bags.instances, bags.offsets
    gamma = 1.0 / (bags.n_features * X.var())
    similarity = rbf_kernel(X, gamma=gamma)
    similarity = segment_max(similarity, offsets[:-1], offsets[1:])
    return similarity[y == 1].mean(axis=0) - similarity[y == 0].mean(axis=0)


def along(scores, problem, bags, y):
    return scores(
        problem.trainer.project, problem.sides.offsets, problem.sides.positive, problem.weight
    )


def by_labels(problem, bags, y):
    machine = getattr(problem, "machine", problem.trainer)
    return label_scores(machine, problem.sides, problem.weight)


GUESSES = {
    "means": partial(along, mean_scores),
    "keys": partial(along, key_scores),
    "labels": by_labels,
    "SIL": sil_scores,
    "density": density_scores,
}


def from_one(start, bags, y, seed, problem, **settings):
    """Run the loop from one start alone."""
    rng = np.random.default_rng(seed)
    if start == "random":
        rows = problem.random_start(rng)
    elif start == "first":
        rows = problem.first_start()
    else:
        rows = problem.key_rows(GUESSES[start](problem, bags, y))
    with patch.object(problem, "first_start", lambda: rows):
        return alternate(problem, **{**settings, "n_init": 1})


def outcome(model, start, seed, train, test):
    """Return training error (the mean of both classes), objective and test accuracy."""
    bags, y = train
    with patch.object(_kernel_machine, "alternate", partial(from_one, start, bags, y, seed)):
        one = clone(model).set_params(n_init=1, random_state=seed)  # which has means, if asked for
        model = one.fit(bags, y)
    wrong = model.predict(bags) != y
    error = np.mean([wrong[y == label].mean() for label in (0, 1)])
    return round(error, 9), model.result_.objective, model.score(*test)


def of_family(model, n_init, train, test):
    model = clone(model).set_params(n_init=n_init, random_state=0).fit(*train)
    return 0.0, model.result_.objective, model.score(*test)


def columns(model, train, test):
    """Return the outcome of every start and family."""
    if isinstance(model, RegSVM):
        kinds = {"first": 1, "default": "auto", "random": 1 + N_RANDOM}
        return {kind: of_family(model, n, train, test) for kind, n in kinds.items()}
    found = {name: outcome(model, name, 0, train, test) for name in ("first", *GUESSES)}
    drawn = [outcome(model, "random", seed, train, test) for seed in range(N_RANDOM)]
    usual = ("keys", "labels") if isinstance(model, MISVM | MICA) else ("first", "keys")
    pair = [found[start] for start in usual]
    found["default"] = min(pair)
    found["objective"] = min(pair, key=lambda end: end[1])
    found["random"] = min([found["first"], *drawn], key=lambda end: end[1])
    return found


# ------------------------------------------------------------------------------------------ table


def study(model, n_folds):
    """Return, for each group and start, pairs of accuracy and objective above the lowest."""
    table = defaultdict(lambda: defaultdict(list))
    for group, bags, y in tasks():
        cells = []
        folds = StratifiedBagKFold(n_folds, shuffle=True, random_state=0)
        for train, test in folds.split(bags, y):
            scaler = InstanceTransformer(StandardScaler()).fit(bags[train])
            parts = [(scaler.transform(bags[part]), y[part]) for part in (train, test)]
            cells.append(columns(model, *parts))
        for start in cells[0]:
            excess = [c[start][1] / min(end[1] for end in c.values()) - 1.0 for c in cells]
            accuracy = np.mean([c[start][2] for c in cells])
            table[group][start].append((accuracy, np.mean(excess)))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--folds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.methods:
        table = study(METHODS[name], options.folds)
        starts = list(next(iter(table.values())))
        print(f"\n{name}: accuracy in percent (shifted: mean and worst set), "
              "objective above the lowest met in percent")  # fmt: skip
        print(f"{'':>9}" + "".join(f"{start:>14}" for start in starts))
        for group, found in table.items():
            cells = []
            for start in starts:
                accuracy, excess = 100.0 * np.array(found[start]).T
                worst = f"/{accuracy.min():.0f}" if len(accuracy) > 1 else ""
                cells.append(f"{accuracy.mean():.1f}{worst} +{excess.mean():.0f}")
            print(f"{group:>9}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
