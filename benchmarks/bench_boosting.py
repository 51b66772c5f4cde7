"""MILBoost: seconds of a fit, and accuracy on the classic sets.

Seconds are processor seconds on one thread, of a second fit on all bags. The accuracy is that of
the default parameters in stratified 10-fold cross-validation, repeated as often as said. Printed
figures: MILpy needs 1.5 s for a fit on Musk1.

    BAGWISE_DATA=... python benchmarks/bench_boosting.py [--repeats 3] [--sets musk1 ...]
"""

import argparse
from time import process_time

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from bagwise.datasets import fetch
from bagwise.ensemble import MILBoost

BY_GAIN = DecisionTreeClassifier(max_depth=1, criterion="entropy", random_state=0)
MODELS = {
    "noisy or": MILBoost(variant="noisy_or"),
    "ISR": MILBoost(variant="isr"),
    "average": MILBoost(variant="average"),
    "average, stumps by gain": MILBoost(variant="average", estimator=BY_GAIN),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="repeats of 10 folds (3)")
    parser.add_argument("--sets", nargs="+", default=["musk1", "elephant", "fox", "tiger"])
    arguments = parser.parse_args()
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=arguments.repeats, random_state=0)
    for name in arguments.sets:
        data = fetch(name)
        for what, model in MODELS.items():
            model.fit(data.bags, data.y)  # compiles
            started = process_time()
            model.fit(data.bags, data.y)
            seconds = process_time() - started
            accuracy = 100 * np.mean(cross_val_score(model, data.bags, data.y, cv=folds))
            print(f"{name:9} {what:25} {seconds:6.3f} s  accuracy {accuracy:.1f}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
