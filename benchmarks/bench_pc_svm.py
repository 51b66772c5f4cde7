"""What projection constraints cost: a fit of PCSVM, its start included, beside one of MISVM.

Features scaled to [0, 1], gamma = 0.2, one start each, one thread; both take turns in one process
and the medians of processor seconds count (the first fit of each is not measured):

    BAGWISE_DATA=... OMP_NUM_THREADS=1 python benchmarks/bench_pc_svm.py [data sets]
"""

import sys
import warnings
from itertools import product
from statistics import median
from time import process_time

from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler

from bagwise.datasets import fetch
from bagwise.exceptions import ConstantModelWarning
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MISVM, PCSVM

DATASETS = ("musk1", "elephant", "musk2")
REPEATS = 5


def seconds(model, bags, y):
    started = process_time()
    model.fit(bags, y)
    return process_time() - started


def main(datasets):
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", ConstantModelWarning)
    print(f"{'data':>9} {'C':>4} spread penalty  rounds   MISVM   PCSVM  ratio")
    for name in datasets:
        data = fetch(name)
        bags = InstanceTransformer(MinMaxScaler()).fit_transform(data.bags)
        for C, spread, penalty in product((1.0, 10.0, 100.0), (0.5, 0.75, 0.9), (0.1, 1.0)):
            plain = MISVM(C=C, gamma=0.2, n_init=1)
            model = PCSVM(C=C, gamma=0.2, n_init=1, spread=spread, penalty=penalty)
            seconds(plain, bags, data.y)
            seconds(model, bags, data.y)
            pairs = [[seconds(m, bags, data.y) for m in (plain, model)] for _ in range(REPEATS)]
            one, other = (median(column) for column in zip(*pairs, strict=True))
            print(
                f"{name:>9} {C:4g} {spread:6g} {penalty:7g} {model.n_iter_:7} {one:7.3f} "
                f"{other:7.3f} {other / one:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:] or DATASETS)
