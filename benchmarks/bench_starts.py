"""What the default starts cost beside the first one alone: processor seconds of a fit.

Default parameters but C = 1, standardised features, one thread, both variants in turn in one
process; the median of the repeats counts (the first fit of each is not measured: it loads compiled
code):

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/bench_starts.py [data sets]
"""

import sys
import warnings
from statistics import median
from time import process_time

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from bagwise.datasets import fetch
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MICA, MISVM, STMIL, MissSVM, RegSVM, miSVM

MODELS = (
    MISVM(C=1.0),
    miSVM(),
    MICA(C=1.0),
    STMIL(C=1.0),
    MissSVM(),
    RegSVM(C=1.0),
    RegSVM(C=1.0, normalization="feature_space"),
)
DATASETS = ("musk1", "elephant", "musk2")
REPEATS = 9
BUDGET = 20.0  # processor seconds for the repeats of one line


def seconds(model, bags, y):
    started = process_time()
    model.fit(bags, y)
    return process_time() - started


def medians(models, bags, y):
    """Return the medians of the seconds of both, which take turns."""
    times = [[] for _ in models]
    for model in models:
        model.fit(bags, y)
    while sum(map(sum, times)) < BUDGET and len(times[0]) < REPEATS:
        for model, record in zip(models, times, strict=True):
            record.append(seconds(model, bags, y))
    return map(median, times)


def main(datasets):
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{'data':>9} {'method':>8} {'one start':>10} {'default':>9} {'ratio':>6}  ends")
    for name in datasets:
        data = fetch(name)
        bags = InstanceTransformer(StandardScaler()).fit_transform(data.bags)
        for model in MODELS:
            one, several = clone(model).set_params(n_init=1), clone(model)
            before, after = medians((one, several), bags, data.y)
            ends = ", ".join(f"{end:.6g}" for end in several.result_.ends)
            print(f"{name:>9} {type(model).__name__:>8} {before:10.4f} {after:9.4f} "
                  f"{after / before:6.2f}  {ends}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:] or DATASETS)
