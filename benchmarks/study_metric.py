"""How well bags are annotated with learned metrics and by rivals, and how well instances are named.

Annotation is the task of Table 4 of the MIMLCA paper. Labels of bags are ranked by `CitationKNN`
(20 references, 20 citers, minimal Hausdorff distance), with the Euclidean distance and with metrics
learned from the lists of the training bags; and by the rivals of that table, one label against the
rest. Features are scaled to variance 1, all parameters are the defaults but the ridge of `MIMLCA`.
Means of three random halves, of which one trains. The rivals, and some of the metrics
once more, have 600 bags of the sets that have more. One-error and coverage are better if small,
average precision if large; the last column are processor seconds of a fit and its ranking.

Naming is the share of training instances with a label that is right, of those in bags with lists
that a metric learner named, beside a label drawn from the list:

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/study_metric.py [data sets]
"""

import sys
import warnings
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

ANNOTATION = ("miml_scene", "miml_reuters", "birds_hja", "letter_carroll")
NAMING = ("letter_carroll", "birds_hja", "digits")
LEARNERS = {
    "MIMLCA": MIMLCA(ridge=1e-3),
    "MildML": MildML(random_state=0),
    "MIML": MIML(),
    "MC2B": MC2B(random_state=0),
}
METRICS = {
    "Euclidean": CitationKNN(20, 20),
    **{name: CitationKNN(20, 20, metric=learner) for name, learner in LEARNERS.items()},
}
RIVALS = {
    **{f"{name} again": METRICS[name] for name in ("Euclidean", "MIMLCA", "MildML")},
    "MILES": MILES(),
    "miSVM": miSVM(random_state=0),
    "MILBoost": MILBoost(),
    "EMDD": EMDD(),
    "MInD": MInD(),
    "MinimaxKernelSVM": MinimaxKernelSVM(),
}
MOST = 600  # bags for rivals
REPEATS = 3


def annotate(bags, y, models, most=None):
    """Print the scores of each model."""
    for name, model in models.items():
        scores = []
        for seed in range(REPEATS):
            order = np.random.default_rng(seed).permutation(len(bags))[:most]
            train, test = np.array_split(order, 2)
            began = process_time()
            ranks = clone(model).fit(bags[train], y[train]).decision_function(bags[test])
            spent = process_time() - began
            results = [rule(y[test], ranks) for rule in (one_error, coverage, average_precision)]
            scores.append([*results, spent])
        error, depth, precision, spent = np.mean(scores, axis=0)
        print(f"    {name:24} {error:9.3f} {depth:9.3f} {precision:9.3f} {spent:9.1f}", flush=True)


def naming(bags, y, truth):
    """Print how many instances are named right, and by chance."""
    for name in ("MIMLCA", "MildML", "MC2B"):
        labels = clone(LEARNERS[name]).fit(bags, y).assignments_
        named = labels >= 0
        right = (labels == truth)[named].mean()
        lists = np.repeat(y, bags.sizes, axis=0)[named]
        held = lists[np.arange(len(lists)), np.maximum(truth[named], 0)] * (truth[named] >= 0)
        chance = (held / lists.sum(axis=1)).mean()
        share = named.mean()
        print(f"    {name} named {share:.3f} of all, right {right:.3f}, by chance {chance:.3f}")


def load(name):
    data = load_digit_bags(multilabel=True) if name == "digits" else fetch(name)
    bags = InstanceTransformer(StandardScaler()).fit_transform(data.bags)
    return bags, np.asarray(data.y), data.instance_y


def main(names):
    warnings.simplefilter("ignore", UserWarning)
    for name in names:
        bags, y, truth = load(name)
        print(f"{name}: {bags!r}, {y.shape[1]} labels", flush=True)
        if name in NAMING and truth is not None:
            naming(bags, y, np.asarray(truth))
        if name in ANNOTATION:
            print(f"    {'':24} one-error  coverage precision   seconds")
            annotate(bags, y, METRICS)
            annotate(bags, y, RIVALS, MOST)


if __name__ == "__main__":
    main(sys.argv[1:] or dict.fromkeys(ANNOTATION + NAMING))
