"""A scaler and linear machines on a store of many gigabytes: seconds, and memory besides the map.

Made-up slides of 20,000 tiles with 512 features in units that differ; tumour slides hold some tiles
that are shifted along one direction, and a tenth of the labels is wrong. The scaler reads the store
chunk by chunk, and what it hands on is scaled whenever it is read. Memory is the peak of anonymous
pages of the process, ten times a second: those of the store, which is mapped, do not count. Linux
only.

    python benchmarks/bench_large_store.py [--gigabytes 20] [--max-memory 1GB] [--folder FOLDER]
"""

import argparse
import re
import tempfile
import threading
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.bags import StoreWriter
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


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--max-memory", default="1GB")
    parser.add_argument("--folder", help="where the store is made, and removed; a temporary one")
    options = parser.parse_args()
    n_slides = max(8, round(1e9 * options.gigabytes / (4 * TILES * FEATURES)))
    limit = options.max_memory
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        y = write_store(Path(name) / "slides.bags", n_slides)
        bags = Bags.open(Path(name) / "slides.bags")
        print(bags, flush=True)
        print("| | seconds | processor seconds | memory | accuracy |\n|---|---|---|---|---|")
        for model in (
            LabelMeanSVM(kernel="linear"),
            MISVM(C=0.01, kernel="linear", max_memory=limit),
        ):
            scale = InstanceTransformer(StandardScaler(), max_memory=limit)
            clock, processor = perf_counter(), process_time()
            with Peak() as peak:
                fitted = make_pipeline(scale, model).fit(bags, y)
            clock, processor = perf_counter() - clock, process_time() - processor
            print(
                f"| `{type(model).__name__}` | {clock:.0f} | {processor:.0f} | "
                f"{peak.bytes / 1e6:.0f} MB | {fitted.score(bags, y):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
