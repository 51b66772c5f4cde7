"""MIMLCA at the size of Labeled Yahoo! News, split into its parts, beside the bare Gram product.

28,031 instances of 4,992 features in 18,063 bags with lists of 5,873 labels, or a fraction of all
of these; lists are sets of labels, bag sizes those of the paper's Table 5. The paper names 163 s on
4 cores. Printed are processor seconds and those by the clock, the most memory of the process (the
instances included) and the precision of names in bags of several instances:

    OMP_NUM_THREADS=1 python benchmarks/bench_mimlca.py [--fraction 0.25] [--dtype float32]
        [--bags 18063] [--features 4992] [--labels 5873]
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np

from bagwise import Bags
from bagwise.datasets import make_weak_label_bags
from bagwise.metric import MIMLCA, _cluster_metric_learner, _mimlca
from bagwise.solvers import FeaturePasses

SIZES = {"bags": 18_063, "features": 4992, "labels": 5873}
#: What is timed: a name, where it is looked up, and what it is called there.
PARTS = (
    ("gram", FeaturePasses, "gram"),
    ("basis", _cluster_metric_learner, "whitening"),
    ("coordinates", FeaturePasses, "whitened"),
    ("sweeps", _mimlca, "solve_label_assignments"),
    ("metric", _cluster_metric_learner, "learn_cluster_metric"),
)


def make(path, n_bags, n_features, n_labels, dtype):
    """Write the data to files, in a process whose memory does not count."""
    data = make_weak_label_bags(
        n_bags, n_labels=n_labels, n_features=n_features, separation=1.0, noisy=False
    )
    np.save(path / "X.npy", data.bags.instances.astype(dtype))
    bags, labels = np.nonzero(data.y)
    ends = np.searchsorted(bags, np.arange(1, n_bags))
    np.savez(
        path / "rest.npz",
        offsets=data.bags.offsets,
        labels=labels,
        ends=ends,
        truth=data.instance_y,
    )


@contextmanager
def timed(spent, name):
    clock, processor = perf_counter(), process_time()
    yield
    before = spent.get(name, (0.0, 0.0))
    spent[name] = (before[0] + process_time() - processor, before[1] + perf_counter() - clock)


def spied(spent, name, function):
    def call(*args, **kwargs):
        with timed(spent, name):
            return function(*args, **kwargs)

    return call


def coordinates_in_advance(function):
    """Return `FeaturePasses.whitened` that does its first pass at once, so that it is timed."""

    def call(*args, **kwargs):
        rows = function(*args, **kwargs)
        for _ in rows():
            pass
        return rows

    return call


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fraction", type=float, default=1.0)
    for name in SIZES:
        parser.add_argument(f"--{name}", type=int, help="in place of the fraction of all")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make is not None:
        sizes = (
            getattr(options, name) or max(2, round(options.fraction * size))
            for name, size in SIZES.items()
        )
        make(options.make, *sizes, options.dtype)
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--make", folder], check=True)
        X = np.load(Path(folder) / "X.npy")
        with np.load(Path(folder) / "rest.npz") as rest:
            bags, truth = Bags(X, rest["offsets"]), rest["truth"]
            lists = [set(own.tolist()) for own in np.split(rest["labels"], rest["ends"])]
    measure(bags, lists, truth)


def measure(bags, lists, truth):
    n_labels = len(set().union(*lists))
    print(f"{bags.n_instances} instances, {bags.n_features} features, {n_labels} labels")
    MIMLCA().fit(*_small())  # what is compiled is compiled
    spent = {}
    patches = []
    for name, home, attribute in PARTS:
        function = getattr(home, attribute)
        if name == "coordinates":
            function = coordinates_in_advance(function)
        patches.append(patch.object(home, attribute, spied(spent, name, function)))
    for one in patches:
        one.start()
    with timed(spent, "fit"):
        model = MIMLCA().fit(bags, lists)
    for one in patches:
        one.stop()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    with timed(spent, "bare product"):
        bags.instances.T @ bags.instances
    for name, (processor, clock) in spent.items():
        print(f"{name:>14} {processor:8.2f} s {clock:8.2f} s by the clock")
    several = np.repeat(bags.sizes > 1, bags.sizes) & (model.assignments_ >= 0)
    right = (model.classes_[model.assignments_] == truth)[several].mean()
    print(f"{memory:.2f} GiB at most, {model.n_iter_} sweeps, precision {right:.3f}")


def _small():
    data = make_weak_label_bags(60, n_labels=5, n_features=8)
    return data.bags, data.y


if __name__ == "__main__":
    main()
