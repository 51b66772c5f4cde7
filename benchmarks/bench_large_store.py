"""A scaler and linear machines on a store of many gigabytes: seconds, and memory besides the map.

Made-up slides of 20,000 tiles with 512 features in units that differ; tumour slides hold some tiles
that are shifted along one direction, and a tenth of the labels is wrong. The scaler reads the store
chunk by chunk, and what it hands on is scaled whenever it is read. Memory is the peak of anonymous
pages of the process, ten times a second: those of the store, which is mapped, do not count. Linux
only. A search and a cross-validation, on two random folds, read the store where it lies as well.

    python benchmarks/bench_large_store.py [--gigabytes 20] [--max-memory 1GB] [--folder FOLDER]
        [--rows LabelMeanSVM BagGridSearchCV MISVM cross_validate]
"""

import argparse
import re
import tempfile
import threading
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.bags import StoreWriter
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MISVM, LabelMeanSVM

TILES, FEATURES = 20_000, 512


def write_store(path, n_slides):
    """Write slides to a store and return their labels."""
    rng = np.random.default_rng(0)
    units = rng.uniform(0.1, 10.0, FEATURES).astype(np.float32)
    direction = rng.standard_normal(FEATURES).astype(np.float32)
    direction *= 6.0 / np.linalg.norm(direction)
    with StoreWriter(path) as writer:
        for i in range(n_slides):
            tiles = rng.standard_normal((TILES, FEATURES), dtype=np.float32)
            if i % 2:
                tiles[: TILES // 20] += direction
            tiles *= units
            writer.append(tiles)
    y = np.arange(n_slides) % 2
    return np.where(rng.random(n_slides) < 0.1, 1 - y, y)


class Peak:
    """The largest number of anonymous bytes while the block runs."""

    def __enter__(self):
        self.bytes, self.ended = 0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def watch(self):
        while not self.ended.wait(0.1):
            status = Path("/proc/self/status").read_text()
            self.bytes = max(self.bytes, 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1]))

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()


def fits(limit):
    """Return what is measured: a name, and a function of bags and labels that gives accuracy."""
    folds = StratifiedKFold(2, shuffle=True, random_state=0)

    def scaled(model):
        return make_pipeline(InstanceTransformer(StandardScaler(), max_memory=limit), model)

    def means():
        return scaled(LabelMeanSVM(kernel="linear"))

    def machine(n_init=None):
        return scaled(MISVM(C=0.01, kernel="linear", n_init=n_init or "auto", max_memory=limit))

    def search(bags, y):
        grid = {"labelmeansvm__C": [0.1, 1.0, 10.0]}
        return BagGridSearchCV(means(), grid, cv=folds, refit=False).fit(bags, y).best_score_

    def validate(bags, y):
        return cross_validate(machine(n_init=1), bags, y, cv=folds)["test_score"].mean()

    return {
        "LabelMeanSVM": lambda bags, y: means().fit(bags, y),
        "BagGridSearchCV": search,
        "MISVM": lambda bags, y: machine().fit(bags, y),
        "cross_validate": validate,
    }


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--max-memory", default="1GB")
    parser.add_argument("--folder", help="where the store is made, and removed; a temporary one")
    parser.add_argument("--rows", nargs="*", help="of the table; all by default")
    options = parser.parse_args()
    n_slides = max(8, round(1e9 * options.gigabytes / (4 * TILES * FEATURES)))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        y = write_store(Path(name) / "slides.bags", n_slides)
        bags = Bags.open(Path(name) / "slides.bags")
        print(bags, flush=True)
        print("| | seconds | processor seconds | memory | accuracy |\n|---|---|---|---|---|")
        for row, fit in fits(options.max_memory).items():
            if options.rows and row not in options.rows:
                continue
            clock, processor = perf_counter(), process_time()
            with Peak() as peak:
                found = fit(bags, y)
            clock, processor = perf_counter() - clock, process_time() - processor
            accuracy = found.score(bags, y) if hasattr(found, "score") else found
            print(
                f"| `{row}` | {clock:.0f} | {processor:.0f} | {peak.bytes / 1e6:.0f} MB | "
                f"{accuracy:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
