"""M3IC beside k-means with as many starts.

Three questions: one fit on the eleven sets of the M3IC paper (C = 1, balance = 1, five starts),
against scikit-learn's KMeans(n_init=5, init="random") on their instances; a fit of 10^5 bags with
10^6 instances of 100 features; and how the time grows with the number of bags. Ratios below 1 mean
that M3IC is faster. ``--cpu`` compares processor time of one thread, for a machine that is busy.

    python benchmarks/bench_m3ic.py [--sets] [--large] [--growth] [--sparse] [--cpu] [--repeats 5]
"""

import argparse
import os
import sys
import time
import warnings

SETS = ("corel3", *(f"scene{i}" for i in range(1, 5)), *(f"reuters{i}" for i in range(1, 7)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("sets", "large", "growth", "sparse", "cpu"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.cpu:  # before numpy and OpenMP are loaded
        os.environ.update(OMP_NUM_THREADS="1", BAGWISE_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    warnings.simplefilter("ignore")
    clock = time.process_time if options.cpu else time.perf_counter
    every = not (options.sets or options.large or options.growth or options.sparse)
    if options.sets or every:
        bench_sets(clock, options.repeats)
    if options.sparse or every:
        bench_sparse(clock, options.repeats)
    if options.large or every:
        bench_large(clock)
    if options.growth or every:
        bench_growth(clock)


def median_times(functions, clock, repeats):
    """Return the median time of each function; they take turns, after one call each."""
    import numpy as np

    for function in functions:
        function(0)
    times = np.empty((repeats, len(functions)))
    for repeat in range(repeats):
        for number, function in enumerate(functions):
            started = clock()
            function(repeat)
            times[repeat, number] = clock() - started
    return np.median(times, axis=0)


def fits(bags, k, n_init=5):
    """Return the two competitors as functions of a seed."""
    from sklearn.cluster import KMeans

    from bagwise.cluster import M3IC

    instances = bags.instances
    return [
        lambda seed: M3IC(k, n_init=n_init, random_state=seed).fit(bags),
        lambda seed: KMeans(k, n_init=n_init, init="random", random_state=seed).fit(instances),
    ]


def bench_sets(clock, repeats):
    import numpy as np

    from bagwise.datasets import fetch
    from bagwise.metrics import clustering_accuracy

    print(f"{'set':10}{'M3IC ms':>9}{'KMeans ms':>11}{'ratio':>7}{'J':>9}{'accuracy':>10}")
    ratios = []
    for name in SETS:
        data = fetch(name)
        pair = fits(data.bags, len(data.label_names))
        ours, theirs = median_times(pair, clock, repeats)
        model = pair[0](0)
        ratios.append(ours / theirs)
        print(
            f"{name:10}{1e3 * ours:9.1f}{1e3 * theirs:11.1f}{ratios[-1]:7.2f}"
            f"{model.result_.objective:9.4f}{clustering_accuracy(data.y, model.labels_):10.3f}"
        )
        sys.stdout.flush()
    print(f"geometric mean of the ratios {np.exp(np.log(ratios).mean()):.2f}")


def bench_sparse(clock, repeats):
    """The text sets as CSR matrices beside the same fits on dense ones."""
    from scipy import sparse

    from bagwise import Bags
    from bagwise.datasets import fetch

    for name in SETS[5:]:
        data = fetch(name)
        k = len(data.label_names)
        csr = Bags(sparse.csr_array(data.bags.instances), data.bags.offsets)
        ours = median_times([fits(csr, k)[0], *fits(data.bags, k)], clock, repeats)
        density = csr.instances.nnz / (csr.shape[1] * csr.n_instances)
        print(
            f"{name:10} CSR {1e3 * ours[0]:7.1f} ms, dense {1e3 * ours[1]:7.1f} ms, "
            f"KMeans dense {1e3 * ours[2]:7.1f} ms (density {density:.2f})"
        )
        sys.stdout.flush()


def synthetic(n_bags, n_features=100, k=5, size=10, seed=0):
    import numpy as np

    from bagwise import Bags

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_bags * size, n_features)).astype(np.float32)
    X += 0.3
    keys = np.arange(n_bags) * size + rng.integers(size, size=n_bags)
    X[keys, rng.integers(k, size=n_bags)] += 6.0
    return Bags(X, np.arange(0, n_bags * size + 1, size))


def bench_large(clock):
    bags = synthetic(100_000)
    functions = fits(bags, 5)
    for function in fits(synthetic(100), 5):  # compiled code is loaded before the clock runs
        function(0)
    times = []
    for function in functions:
        started = clock()
        function(0)
        times.append(clock() - started)
    print(
        f"100,000 bags, 1,000,000 instances x 100: M3IC {times[0]:.2f} s, KMeans {times[1]:.2f} s, "
        f"ratio {times[0] / times[1]:.2f}"
    )


def bench_growth(clock):
    import numpy as np

    sizes = [1000, 3000, 10_000, 30_000, 100_000]
    times = []
    for n_bags in sizes:
        fit = fits(synthetic(n_bags), 5)[0]
        times.append(median_times([fit], clock, 3 if n_bags < 50_000 else 1)[0])
        print(f"{n_bags:7} bags: {times[-1]:.3f} s")
        sys.stdout.flush()
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(f"slope of log time in log bags {slope:.2f}")


if __name__ == "__main__":
    main()
