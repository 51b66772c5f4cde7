"""Linear fits on many instances: time in passes, memory, gaps, beside a bare scan in the same run.

Made-up bags: the positive ones hold some instances that are shifted along one direction, and a
fifth of the labels is wrong. The unit is the processor time of `scan_max` over the same rows. Each
fit is done from memory or, with ``--store``, from a store in a temporary folder. Then the first
convex problem of MISVM, beside liblinear's hinge until its objective, with its penalised bias, is
within 1e-3 of our lower bound. Last, with ``--largest``, the slope of log time against log rows.

The rows of the guide, each by itself: ``--instances 400000 --store --methods MISVM SIL``; wide data
``--features 1000 --instances 100000``; text ``--features 50000 --filled 50 --instances 1000000``;
narrow data ``--features 20 --instances 1000000``; any cost ``--even --features 2000 --filled 60
--instances 20000 --size 100 --costs 1e-3 1 100 1e4 --methods MISVM SIL miSVM``; the slope
``--methods none --largest 3000000``.
"""

import argparse
import tempfile
import tracemalloc
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from bagwise import Bags
from bagwise.bags import scan_max
from bagwise.solvers import PassRows, solve_svm_by_passes
from bagwise.solvers.svm import _linear_svm
from bagwise.svm import MISVM, SIL, LabelMeanSVM, MIKernelSVM, StatisticKernelSVM, miSVM
from bagwise.svm.machinery import _kernel_machine


def make(n, d, filled=0, size=1000):
    """Return bags of about ``size`` instances and their labels; CSR if some are ``filled``."""
    rng = np.random.default_rng(0)
    n_bags = max(20, n // size)
    offsets = np.linspace(0, n, n_bags + 1).astype(np.int64)
    y = np.arange(n_bags) % 2
    if filled:
        chance = 1.0 / np.arange(1, d + 1)
        words = np.searchsorted(np.cumsum(chance / chance.sum()), rng.random(n * filled))
        words = np.minimum(words, d - 1)
        for i in np.flatnonzero(y):  # some documents speak of a few rare words
            first = offsets[i] * filled
            words[first : first + 20 * filled : 5] = d // 2 + np.arange(4 * filled) % 20
        X = sp.csr_array(
            (np.ones(n * filled, np.float32), words, np.arange(n + 1) * filled), shape=(n, d)
        )
        X.sum_duplicates()
        X.data /= np.repeat(np.sqrt(X.power(2).sum(axis=1)), np.diff(X.indptr)).astype(np.float32)
    else:
        X = rng.standard_normal((n, d), dtype=np.float32)
        X /= np.sqrt(1.0 + 0.05 * np.arange(d, dtype=np.float32))
        direction = rng.standard_normal(d).astype(np.float32)
        direction *= 3.0 / np.linalg.norm(direction)
        for i in np.flatnonzero(y):
            X[offsets[i] : offsets[i] + (offsets[i + 1] - offsets[i]) // 20 + 1] += direction
    wrong = rng.random(n_bags) < 0.2
    return Bags(X, offsets), np.where(wrong, 1 - y, y)


def make_even(n, d, filled, size):
    """Return CSR bags whose words are equally likely; one instance of a positive bag is marked."""
    rng = np.random.default_rng(0)
    offsets = np.linspace(0, n, max(20, n // size) + 1).astype(np.int64)
    y = (rng.random(len(offsets) - 1) < 0.3).astype(int)
    words = rng.integers(0, d, (n, filled))
    values = rng.random((n, filled), dtype=np.float32)
    marked = offsets[:-1][y > 0]
    words[marked, :5], values[marked, :5] = np.arange(5), 1.5
    X = sp.csr_array((values.ravel(), words.ravel(), np.arange(n + 1) * filled), shape=(n, d))
    X.sum_duplicates()
    return Bags(X, offsets), np.where(rng.random(len(y)) < 0.1, 1 - y, y)


def timed(function, repeats=1):
    """Return the least processor time of some calls, and what the last one returned."""
    times = []
    for _ in range(repeats):
        started = process_time()
        result = function()
        times.append(process_time() - started)
    return min(times), result


def memory(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def compile_all(bags):
    """Fit a few instances by passes, by working sets, by Newton steps and by products."""
    tiny = Bags(bags.instances[:2000], np.arange(0, 2001, 50))
    before, _kernel_machine.MANY_VALUES = _kernel_machine.MANY_VALUES, 1
    limits, _linear_svm._DEAR, _linear_svm._SHARE = (_linear_svm._DEAR, _linear_svm._SHARE), 0, 1e3
    models = (
        MISVM(1.0, kernel="linear"),
        SIL(1e-3, kernel="linear"),
        LabelMeanSVM(kernel="linear"),
        MIKernelSVM(kernel="linear"),
        StatisticKernelSVM(kernel="linear"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in models:
            model.fit(tiny, np.arange(40) % 2)
    _kernel_machine.MANY_VALUES = before
    _linear_svm._DEAR, _linear_svm._SHARE = limits


def scan(bags):
    coef = np.random.default_rng(1).normal(size=bags.n_features)
    matrix, starts, stops = bags.segments
    return timed(lambda: scan_max(matrix, coef, starts, stops), repeats=5)[0]


def fits(bags, y, costs, unit, methods, with_memory):
    models = {
        "LabelMeanSVM": LabelMeanSVM(kernel="linear"),
        "MIKernelSVM": MIKernelSVM(kernel="linear"),
        "StatisticKernelSVM": StatisticKernelSVM(kernel="linear"),
    }
    for C in costs:
        models |= {
            f"MISVM C={C:g}": MISVM(C, kernel="linear"),
            f"SIL C={C:g}": SIL(C, kernel="linear"),
            f"miSVM C={C:g}": miSVM(C, kernel="linear"),
        }
    for name, model in models.items():
        if methods and name.split()[0] not in methods:
            continue
        repeats = 3 if "C=" not in name else 1  # one of a few passes, like the bare one
        seconds, _ = timed(lambda model=model: model.fit(bags, y), repeats)
        size = ""
        if with_memory:
            size = f"{memory(lambda model=model: model.fit(bags, y)):8.0f} MB "
        print(
            f"{name:20} {seconds:8.2f} s {seconds / unit:8.1f} passes {size}"
            f"{model.result_.status}, objective {model.result_.objective:.6g}",
            flush=True,
        )


def first_problem(bags, y):
    """Return rows and signs of MISVM's first problem: negatives, then means of positive bags."""
    positive, sign = np.flatnonzero(y > 0), np.repeat(np.where(y > 0, 1.0, -1.0), bags.sizes)
    offsets, negatives = bags.offsets, bags.instances[sign < 0]
    means = [bags.instances[offsets[i] : offsets[i + 1]].mean(axis=0)[None] for i in positive]
    if bags.is_sparse:
        X = sp.vstack([negatives, *map(sp.csr_array, means)], format="csr").astype(bags.dtype)
    else:
        X = np.vstack([negatives, *means])
    return X, np.repeat([-1.0, 1.0], [negatives.shape[0], len(positive)])


def beside_liblinear(bags, y, C):
    """Solve the first problem of MISVM; liblinear until its gap is as small.

    The gap of liblinear is that of its own objective, in which the intercept is penalised: to the
    value at which it ends, or to our lower bound, which is below, where it does not end in time.
    """
    X, sign = first_problem(bags, y)
    rows = PassRows(Bags(X, np.linspace(0, len(sign), len(bags) + 1).astype(np.int64)))
    ours, result = timed(lambda: solve_svm_by_passes(rows, sign, C))
    met, n_sweeps, bound = [], 1, result.lower_bound
    while not met or met[-1][0] < 20.0 * ours:
        machine = LinearSVC(C=C, loss="hinge", max_iter=n_sweeps, tol=1e-10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            seconds, _ = timed(lambda machine=machine: machine.fit(X, sign))
        w, b = machine.coef_[0], float(machine.intercept_[0])
        slack = np.maximum(1.0 - sign * (X @ w + b), 0.0)
        met.append((seconds, n_sweeps, 0.5 * float(w @ w + b * b) + C * float(slack.sum())))
        if machine.n_iter_ < n_sweeps:
            bound = met[-1][2]
            break
        n_sweeps *= 2
    close = [entry for entry in met if entry[2] - bound <= 1e-3 * entry[2]]
    seconds, n_sweeps, value = (close or met[-1:])[0]
    print(
        f"First problem of MISVM, C={C:g}: {ours:.2f} s to a gap of {result.residual:.1e}; "
        f"LinearSVC {seconds:.2f} s, {n_sweeps} sweeps, gap {(value - bound) / value:.1e}",
        flush=True,
    )


def growth(largest, d, C):
    """Print the slope of log time against log rows, from 100,000 on."""
    sizes, times = [10**5], []
    while sizes[-1] < largest:
        sizes.append(min(largest, 10 * sizes[-1]))
    for n in sizes:
        bags, y = make(n, d)
        seconds, model = timed(lambda bags=bags, y=y: MISVM(C, kernel="linear").fit(bags, y))
        times.append(seconds)
        print(f"MISVM, {n:,} x {d}: {seconds:.2f} s, {model.n_iter_} rounds", flush=True)
    if len(sizes) > 1:
        print(f"slope {np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--filled", type=int, default=0, help="non-zeros of a row; 0: dense")
    parser.add_argument("--even", action="store_true", help="words that are equally likely")
    parser.add_argument("--size", type=int, default=1000, help="of a bag")
    parser.add_argument("--costs", type=float, nargs="*", default=[1.0, 100.0])
    parser.add_argument("--store", action="store_true", help="fit from a store")
    parser.add_argument("--methods", nargs="*", help="such as MISVM and LinearSVC; all by default")
    parser.add_argument("--memory", action="store_true", help="fit again to count allocations")
    parser.add_argument("--largest", type=int, default=0, help="rows of 64 features, for the slope")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        maker = make_even if options.even else make
        bags, y = maker(options.instances, options.features, options.filled, options.size)
        if options.store:
            bags.write(Path(folder) / "made.bags")
            bags = Bags.open(Path(folder) / "made.bags")
        compile_all(bags)
        unit = scan(bags)
        print(f"{bags}\nscan_max: {unit:.4f} s of processor time")
        fits(bags, y, options.costs, unit, options.methods, options.memory)
        if not options.methods or "LinearSVC" in options.methods:
            beside_liblinear(bags, y, options.costs[0])
    if options.largest:
        growth(options.largest, 64, options.costs[0])


if __name__ == "__main__":
    main()
