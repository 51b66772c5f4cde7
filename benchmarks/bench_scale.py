"""From a folder of feature files to a model: seconds and memory of each step.

Made-up slides, one ``.npy`` file each, with features in units that differ; tumour slides hold some
tiles that are shifted along one direction. The folder is packed into a store, and a scaler with a
linear machine is fitted to the store: with the scaled features in memory, and with features that
are scaled whenever they are read. Memory is what Python's allocations peak at; pages of the store
that are mapped do not count.

Figures of the guide: ``python benchmarks/bench_scale.py``.
"""

import argparse
import tempfile
import tracemalloc
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.io import pack
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MISVM, LabelMeanSVM


def write_slides(folder, n_slides, n_tiles, n_features):
    """Write a file of features for each slide, and the table of labels."""
    rng = np.random.default_rng(0)
    units = rng.uniform(0.1, 10.0, n_features).astype(np.float32)
    direction = rng.standard_normal(n_features).astype(np.float32)
    direction *= 6.0 / np.linalg.norm(direction)
    lines = ["bag,label"]
    for i in range(n_slides):
        tiles = rng.standard_normal((n_tiles, n_features), dtype=np.float32)
        if i % 2:
            tiles[: n_tiles // 20] += direction
        np.save(folder / f"slide{i}.npy", units * tiles)
        lines.append(f"slide{i},{'tumour' if i % 2 else 'normal'}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


def measured(what, function):
    """Run a function, print seconds and the peak of memory, and return what it returns.

    It runs twice, as counting allocations takes time: once for each figure.
    """
    clock, processor = perf_counter(), process_time()
    result = function()
    clock, processor = perf_counter() - clock, process_time() - processor
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"| {what} | {clock:.1f} | {processor:.1f} | {peak / 1e6:.0f} MB |", flush=True)
    return result


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slides", type=int, default=100)
    parser.add_argument("--tiles", type=int, default=1000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--max-memory", default="100MB")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with tempfile.TemporaryDirectory() as name:
        folder, store = Path(name) / "slides", Path(name) / "slides.bags"
        folder.mkdir()
        write_slides(folder, options.slides, options.tiles, options.features)
        print("| step | seconds | processor seconds | memory |\n|---|---|---|---|")
        measured("pack", lambda: pack(folder, store, overwrite=True))
        bags = Bags.open(store)
        limits = (("in memory", None), ("when read", options.max_memory))
        models = (
            LabelMeanSVM(kernel="linear"),
            MISVM(C=0.01, kernel="linear", pos_label="tumour"),
        )
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        LabelMeanSVM(kernel="linear").fit(np.eye(2), [0, 1])  # compiles
        for model in models:
            for where, limit in limits:
                scale = InstanceTransformer(StandardScaler(), max_memory=limit)
                pipeline = make_pipeline(scale, model)
                label = f"`{type(model).__name__}`, scaled {where}"
                measured(label, lambda fitted=pipeline: fitted.fit(bags, bags.labels))
        found = measured(
            "`MISVM`, scaled when read, three random folds",
            lambda: cross_validate(pipeline, bags, bags.labels, cv=folds),
        )
        print(f"\nstore: {bags}\naccuracy of the folds: {found['test_score'].mean():.2f}")


if __name__ == "__main__":
    main()
