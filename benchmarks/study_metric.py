"""How well bags are annotated with a learned metric, and how well instances are named.

Annotation is the task of Table 4 of the MIMLCA paper: labels of bags are ranked by `CitationKNN`
(20 references, 20 citers, minimal Hausdorff distance), with the Euclidean distance and with metrics
learned from the lists of the training bags. Features are scaled to variance 1; means of three
random halves, of which one trains. One-error and coverage are better if small, average precision if
large. Naming is the share of training instances with a label that is right, of those in bags with
lists that `MIMLCA` named, beside a label drawn from the list:

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/study_metric.py [data sets]
"""

import sys
import warnings

import numpy as np
from sklearn.preprocessing import StandardScaler

from bagwise.datasets import fetch, load_digit_bags
from bagwise.metric import MIMLCA
from bagwise.metrics import average_precision, coverage, one_error
from bagwise.neighbors import CitationKNN
from bagwise.preprocessing import InstanceTransformer

ANNOTATION = ("miml_scene", "miml_reuters", "birds_hja", "letter_carroll")
NAMING = ("letter_carroll", "birds_hja", "digits")
METRICS = {
    "euclidean": "euclidean",
    "MIMLCA": MIMLCA(ridge=1e-3),
}
SCORES = (one_error, coverage, average_precision)
REPEATS = 3


def annotate(bags, y):
    """Print the scores of each metric."""
    for name, metric in METRICS.items():
        scores = []
        for seed in range(REPEATS):
            train, test = np.array_split(np.random.default_rng(seed).permutation(len(bags)), 2)
            model = CitationKNN(20, 20, metric=metric).fit(bags[train], y[train])
            ranks = model.decision_function(bags[test])
            scores.append(
                [rule(y[test], ranks) for rule in (one_error, coverage, average_precision)]
            )
        error, depth, precision = np.mean(scores, axis=0)
        print(f"    {name:24} {error:9.3f} {depth:9.3f} {precision:9.3f}", flush=True)


def naming(bags, y, truth):
    """Print how many instances are named right, and by chance."""
    model = MIMLCA(ridge=1e-3).fit(bags, y)
    named = model.assignments_ >= 0
    right = (model.assignments_ == truth)[named].mean()
    lists = np.repeat(y, bags.sizes, axis=0)[named]
    held = lists[np.arange(len(lists)), np.maximum(truth[named], 0)] * (truth[named] >= 0)
    chance = (held / lists.sum(axis=1)).mean()
    print(f"    named {named.mean():.3f} of all, right {right:.3f}, by chance {chance:.3f}")


def load(name):
    data = load_digit_bags(multilabel=True) if name == "digits" else fetch(name)
    bags = InstanceTransformer(StandardScaler()).fit_transform(data.bags)
    return bags, np.asarray(data.y), data.instance_y


def main(names):
    warnings.simplefilter("ignore", UserWarning)
    for name in names:
        bags, y, truth = load(name)
        print(f"{name}: {bags!r}, {y.shape[1]} labels", flush=True)
        if name in ANNOTATION:
            print(f"    {'metric':24} one-error  coverage precision")
            annotate(bags, y)
        if name in NAMING and truth is not None:
            naming(bags, y, np.asarray(truth))


if __name__ == "__main__":
    main(sys.argv[1:] or dict.fromkeys(ANNOTATION + NAMING))
