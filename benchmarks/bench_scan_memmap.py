"""The fused scan over bags in memory and over the same bags memory-mapped, in one run.

Writes a store (2 GB by default) into a temporary folder, and removes it. The file has just been
written and read, so it is in the page cache: this measures what mapping costs, not the disk.
The peak of memory under ``max_memory`` is taken in a fresh process that only reduces.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bagwise import Bags
from bagwise.bags import BagSource, StoreWriter, scan_max

WIDTH, OUTPUTS, BAG = 64, 5, 32


def scan(chunk, coef):
    return scan_max(chunk.instances, coef, chunk.starts, chunk.stops, n_threads=1)


def product(chunk):
    return chunk.instances.T @ chunk.instances


def in_turn(function, sources, repeats):
    """Return the shortest time for each source, and the results; they take turns."""
    results = [function(source) for source in sources]
    times = np.full((repeats, len(sources)), np.inf)
    for i in range(repeats):
        for j, source in enumerate(sources):
            start = time.perf_counter()
            results[j] = function(source)
            times[i, j] = time.perf_counter() - start
    return times.min(axis=0), results


def write(path, n_rows):
    rng = np.random.default_rng(0)
    block = 2**18
    with StoreWriter(path) as writer:
        for start in range(0, n_rows, block):
            rows = min(block, n_rows - start)
            values = rng.standard_normal((rows, WIDTH), dtype=np.float32)
            writer.extend(Bags(values, np.append(np.arange(0, rows, BAG), rows)))


def compare(path, repeats):
    mapped = Bags.open(path)
    memory = mapped.compact()
    coef = np.random.default_rng(1).standard_normal((OUTPUTS, WIDTH), dtype=np.float32)
    gigabytes = memory.instances.nbytes / 1e9
    print(f"{memory!r}: {gigabytes:.2f} GB, {OUTPUTS} outputs, best of {repeats}")
    print(f"{'':34}{'memory':>10}{'GB/s':>7}{'map':>10}{'GB/s':>7}{'map/memory':>12}")
    starts, stops = memory.offsets[:-1], memory.offsets[1:]
    for n_threads in (1, 2):
        rows = {
            "scan_max": lambda bags: scan_max(
                bags.instances,
                coef,
                starts,
                stops,
                n_threads=n_threads,  # noqa: B023
            ),
            "BagSource.concatenate(scan)": lambda bags: BagSource(
                bags,
                n_threads=n_threads,  # noqa: B023
            ).concatenate(scan, coef),
            "BagSource.reduce(X'X)": lambda bags: (
                BagSource(bags, n_threads=n_threads).reduce(product),  # noqa: B023
            ),
        }
        for name, function in rows.items():
            (in_memory, on_map), (expected, got) = in_turn(function, (memory, mapped), repeats)
            same = all(a.tobytes() == b.tobytes() for a, b in zip(got, expected, strict=True))
            assert same, "memory and map differ"
            print(
                f"{name:28}{n_threads:2} th {in_memory:9.3f}s{gigabytes / in_memory:7.1f}"
                f"{on_map:9.3f}s{gigabytes / on_map:7.1f}{on_map / in_memory:11.2f}x"
            )
    print("The same bits in memory and on the map.")


def peak_memory():
    """Return the largest resident memory so far, in kB: of this program, not of its parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise OSError("this benchmark reads /proc/self/status, which is not there")


def peak_of_a_reduce(path, limit):
    """Run in a process of its own: print by how much a reduce raised the peak of memory."""
    source = BagSource(Bags.open(path), max_memory=limit or None)
    warm = BagSource(Bags(np.ones((100, WIDTH), np.float32), [0, 100]))
    warm.reduce(product)
    before = peak_memory()
    start = time.perf_counter()
    source.reduce(product)
    seconds = time.perf_counter() - start
    after = peak_memory()
    print(f"{before / 1e3:.0f} MB before, +{(after - before) / 1e3:.0f} MB; {seconds:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", help="where to write; default: the system's temporary folder")
    parser.add_argument("--peak", nargs=2, metavar=("STORE", "LIMIT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        peak_of_a_reduce(*options.peak)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "bench.bags"
        start = time.perf_counter()
        write(path, int(options.gigabytes * 1e9) // (4 * WIDTH))
        print(f"written in {time.perf_counter() - start:.1f} s")
        compare(path, options.repeats)
        for limit in ("", "64MB", "20MB"):
            command = [sys.executable, __file__, "--peak", str(path), limit]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            shown = f"max_memory={limit!r}" if limit else "mapped, no limit"
            print(f"peak of BagSource.reduce(X'X), {shown}: {done.stdout.strip()}")


if __name__ == "__main__":
    main()
