"""The SVM family beside its peers: seconds to fit and to predict, objective, memory.

RBF kernel with gamma = 1 / d on standardised features, C = 10, one thread, every fit in a process
of its own (compiled code is loaded before the clock starts, the best of three counts):

    BAGWISE_DATA=... BAGWISE_PEERS=python1:python2 python benchmarks/bench_svm_family.py [data sets]

A peer is measured where it can be imported: by this interpreter, or by one of those listed in
BAGWISE_PEERS (misvm needs an old NumPy; on a current one it returns a model that is not fitted).
Where none has it, the figure printed is one that was measured before, on one core of another
machine, and is marked with a star.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).with_name("_fit_one.py")
DATASETS = ("musk1", "elephant", "musk2")

#: Ours, the peer's package and name, its seconds on the data sets where it was measured before.
PAIRS = [
    ("MISVM", "misvm", "MISVM", (0.050, 0.89, 92.7)),
    ("miSVM", "misvm", "miSVM", (0.035, 5.1, None)),
    ("MIKernelSVM", "misvm", "NSK", (0.055, 0.32, 1.3)),
    ("MIKernelSVM", "sawmil", "NSK", (0.008, 0.048, 0.42)),
    ("MissSVM", "misvm", "MissSVM", (3.3, None, None)),
    ("MICA", "misvm", "MICA", (0.14, 10.8, None)),
    ("STMIL", "misvm", "stMIL", (0.14, 4.6, None)),
    ("SBMIL", "misvm", "sbMIL", (0.075, 1.8, None)),
    ("MILES", "mil", "MILES", (0.054, 0.47, 12.4)),
    ("SIL", "sklearn", "SVC", (0.007, 0.06, 0.29)),
]
PATIENCE = 300  # seconds for one fit of a peer


def run(interpreter, package, method, dataset, repeats):
    environment = dict(os.environ)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1"
    environment["BAGWISE_NUM_THREADS"] = "1"
    command = [interpreter, str(WORKER), package, method, dataset, str(repeats)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if done.returncode == 0 and lines else None


def interpreters():
    return [sys.executable, *filter(None, os.environ.get("BAGWISE_PEERS", "").split(os.pathsep))]


def peer(package, method, dataset, known):
    """Return what the peer needs, or its figure from before."""
    slow = known is not None and known > 10
    for interpreter in interpreters():
        measured = run(interpreter, package, method, dataset, 1 if slow else 3)
        if measured is not None:
            return measured, ""
    return (None if known is None else {"fit": known}), "*"


def shown(value, form):
    return format(value, form) if value is not None else "-"


def main(datasets):
    print(f"{'data':>9} {'ours':>13} {'fit s':>8} {'MB':>5} {'predict':>8} {'objective':>12} |"
          f" {'peer':>16} {'fit s':>9} {'MB':>6} {'objective':>12} | {'ratio':>7}")  # fmt: skip
    for dataset in datasets:
        position = DATASETS.index(dataset) if dataset in DATASETS else None
        measured = {}
        for ours, package, method, figures in PAIRS:
            if ours not in measured:
                measured[ours] = run(sys.executable, "bagwise", ours, dataset, 3)
            known = None if position is None else figures[position]
            mine = measured[ours]
            theirs, mark = peer(package, method, dataset, known)
            if mine is None or theirs is None:
                print(f"{dataset:>9} {ours:>13}   not measured beside {package} {method}")
                continue
            print(
                f"{dataset:>9} {ours:>13} {mine['fit']:8.4f} {mine['peak_mb']:5.0f} "
                f"{mine['predict']:8.4f} {shown(mine['objective'], '12.6f'):>12} | "
                f"{package + ' ' + method:>16} {theirs['fit']:8.3f}{mark or ' '} "
                f"{shown(theirs.get('peak_mb'), '6.0f'):>6} "
                f"{shown(theirs.get('objective'), '12.6f'):>12} | "
                f"{theirs['fit'] / mine['fit']:7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:] or DATASETS)
