"""Diverse density, EM-DD and APR: seconds of a fit, objective, and accuracy on the classic sets.

Features are as they come: densities standardise them. Seconds are processor seconds on one
thread, of one fit on all bags. With ``--folds`` the accuracy of the default parameters in
stratified 10-fold cross-validation, repeated as often as said. Printed figures: MILpy needs 5.8 s
for a fit of EM-DD on Musk1 and Weka 10.4 s; the MI-ODM paper has no figure for diverse density on
Elephant, Fox and Tiger, for it did not end in 48 hours; APR has 92.4 on Musk1 and 89.2 on Musk2.

    BAGWISE_DATA=... python benchmarks/bench_density.py [--folds REPEATS] [--sets musk1 ...]
        [--models 'DiverseDensity()' ...]
"""

import argparse
from time import process_time

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from threadpoolctl import threadpool_limits

from bagwise.datasets import fetch
from bagwise.density import APR, EMDD, DiverseDensity

MODELS = {
    str(model): model
    for model in (
        DiverseDensity(),
        DiverseDensity(search="density"),
        DiverseDensity(n_init="all", search="density"),
        EMDD(),
        EMDD(search="density"),
        EMDD(n_init="all", search="density"),
        APR(),
    )
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, default=0, help="repeats of 10 folds (none)")
    parser.add_argument("--sets", nargs="+", default=["musk1", "elephant", "fox", "tiger", "musk2"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    arguments = parser.parse_args()
    for name in arguments.sets:
        data = fetch(name)
        for model in map(MODELS.get, arguments.models):
            started = process_time()
            model.fit(data.bags, data.y)
            line = f"{name:9} {model!s:30} {process_time() - started:7.2f} s"
            line += f"  objective {model.result_.objective:8.2f} {model.result_.status}"
            if arguments.folds:
                folds = RepeatedStratifiedKFold(
                    n_splits=10, n_repeats=arguments.folds, random_state=0
                )
                scores = cross_val_score(model, data.bags, data.y, cv=folds)
                line += f"  accuracy {100 * np.mean(scores):.1f}"
            print(line, flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
