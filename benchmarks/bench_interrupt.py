"""How long Ctrl-C takes to be answered, per kind of loop.

A child process computes for minutes; SIGINT is sent to it at random moments. Printed is the time
from the signal until the child has caught KeyboardInterrupt outside of the computation.
"""

import argparse
import random
import signal
import subprocess
import sys
import time

import numpy as np

from bagwise import Bags
from bagwise.bags import BagSource, scan_max, segment_logsumexp, segment_sum

GOAL = 0.25


def jobs(n_threads):
    """Return long computations by name; each would run for minutes."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2_000_000, 32))
    bags = Bags(values, np.arange(0, 2_000_001, 20))
    starts, stops = bags.offsets[:-1], bags.offsets[1:]
    source = BagSource(bags, n_threads=n_threads)
    many = rng.standard_normal((1000, 32))

    def forever(function):
        def run():
            while True:
                function()

        return run

    def products(chunk):
        return chunk.instances.T @ chunk.instances

    def scans(chunk):
        return scan_max(chunk.instances, many, chunk.starts, chunk.stops)[0].sum()

    return {
        "BagSource.reduce(X'X)": forever(lambda: source.reduce(products)),
        "BagSource.reduce(scan, 1000 outputs)": forever(lambda: source.reduce(scans)),
        "scan_max, 1000 outputs": forever(
            lambda: scan_max(values, many, starts, stops, n_threads=n_threads)
        ),
        "scan_max, 1000 outputs, one bag": forever(
            lambda: scan_max(values, many, [0], [len(values)], n_threads=n_threads)
        ),
        "segment_logsumexp, bags of 20": forever(
            lambda: segment_logsumexp(values, starts, stops, n_threads=n_threads)
        ),
        "segment_sum, one bag of 2M x 32": forever(
            lambda: segment_sum(values, [0], [len(values)], n_threads=n_threads)
        ),
        "segment_logsumexp, one bag of 2M x 32": forever(
            lambda: segment_logsumexp(values, [0], [len(values)], n_threads=n_threads)
        ),
    }


def child(name, n_threads):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    job = jobs(n_threads)[name]
    tiny = np.ones((20, 32))
    for function in (segment_logsumexp, segment_sum):  # compiled before the clock runs
        function(tiny, [0], [20])
    scan_max(tiny, tiny, [0], [20])
    while True:
        try:
            print("ready", flush=True)
            job()
        except KeyboardInterrupt:
            print(repr(time.time()), flush=True)
        if sys.stdin.readline() != "again\n":
            return


def measure(name, n_threads, repeats):
    """Return the times until interrupts were answered, in seconds."""
    rng = random.Random(name)
    command = [sys.executable, __file__, "--child", name, "--threads", str(n_threads)]
    times = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for i in range(repeats):
            assert process.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.3, 0.8))
            sent = time.time()
            process.send_signal(signal.SIGINT)
            times.append(float(process.stdout.readline()) - sent)
            process.stdin.write("again\n" if i < repeats - 1 else "enough\n")
            process.stdin.flush()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.threads)
        return
    print(f"time until Ctrl-C is answered [s], {options.repeats} times; the goal is {GOAL}")
    print(f"{'':40}{'threads':>8}{'median':>9}{'worst':>9}")
    for n_threads in [options.threads] if options.threads else [1, 2]:
        for name in jobs(n_threads):
            times = measure(name, n_threads, options.repeats)
            print(f"{name:40}{n_threads:8}{np.median(times):9.3f}{max(times):9.3f}", flush=True)


if __name__ == "__main__":
    main()
