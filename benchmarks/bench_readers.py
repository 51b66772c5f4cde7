"""Time and peak memory of reading a long table, beside pandas and pyarrow alone.

Each reading runs in a process of its own (Linux). Its memory is the peak resident size less what
the process had after its imports; its time is the best of the repetitions. The peers give a table,
not bags: grouping the rows and laying them out as one matrix is extra work on our side.

    python benchmarks/bench_readers.py [--rows 1000000] [--features 30] [--repeat 3]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CASES = {
    "csv": {
        "pyarrow": ("import pyarrow.csv as m", "m.read_csv(path)"),
        "pandas": ("import pandas as m", "m.read_csv(path)"),
        "bagwise": ("import bagwise.io as m, pyarrow.csv", "m.read(path)"),
        "bagwise, no pyarrow": (
            "import sys, bagwise.io as m; sys.modules['pyarrow.csv'] = None",
            "m.read(path)",
        ),
        "bagwise pack": ("import bagwise.io as m, pyarrow.csv", "m.pack(path, path + '.bags')"),
    },
    "parquet": {
        "pyarrow": ("import pyarrow.parquet as m", "m.read_table(path)"),
        "pandas": ("import pandas as m", "m.read_parquet(path)"),
        "bagwise": ("import bagwise.io as m, pyarrow.parquet", "m.read(path)"),
        "bagwise pack": ("import bagwise.io as m, pyarrow.parquet", "m.pack(path, path + '.bags')"),
    },
}

CHILD = """
import json, sys, time

def peak_kb():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

path = sys.argv[1]
{setup}
before = peak_kb()
start, cpu = time.perf_counter(), time.process_time()
kept = {call}
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
print(json.dumps([seconds, cpu, (peak_kb() - before) / 1024]))
"""


def write_tables(folder, n_rows, n_features):
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    bag = np.sort(rng.integers(0, n_rows // 20, n_rows))
    columns = {"bag": bag, "label": bag % 2}
    columns |= {f"x{j}": rng.normal(size=n_rows) for j in range(n_features)}
    table = pa.table(columns)
    pa.csv.write_csv(table, folder / "t.csv")
    pa.parquet.write_table(table, folder / "t.parquet")


def measure(path, setup, call, repeat):
    import shutil

    runs = []
    for _ in range(repeat):
        shutil.rmtree(f"{path}.bags", ignore_errors=True)
        code = CHILD.format(setup=setup, call=call)
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        )
        runs.append(json.loads(done.stdout))
    return [min(column) for column in zip(*runs, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), args.rows, args.features)
        matrix = args.rows * args.features * 8 / 2**20
        print(f"{args.rows:,} rows, {args.features} features; as a matrix {matrix:.0f} MB")
        for kind, readers in CASES.items():
            path = Path(folder) / f"t.{kind}"
            print(f"\n{kind}, {path.stat().st_size / 2**20:.0f} MB on the disk")
            base = None
            for name, (setup, call) in readers.items():
                seconds, cpu, megabytes = found = measure(path, setup, call, args.repeat)
                base = found if base is None else base
                times, cpus, sizes = (a / b for a, b in zip(found, base, strict=True))
                print(
                    f"  {name:20} {seconds:7.2f} s {cpu:7.2f} s CPU {megabytes:6.0f} MB    "
                    f"{times:5.2f} x time {cpus:5.2f} x CPU {sizes:5.2f} x memory"
                )


if __name__ == "__main__":
    main()
