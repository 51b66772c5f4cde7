"""Segment reductions beside numpy's ``reduceat``, in one run.

Both get the same values and bags, and results are compared before anything is timed. numpy has no
argmax by segment: `np.maximum.reduceat` finds only the value, and is what ours is held against.
"""

import argparse
import time

import numpy as np

from bagwise.bags import segment_argmax, segment_max, segment_sum


def best_of(function, repeats):
    """Return the shortest time of several calls, in seconds; the first call is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bag", type=float, default=10, help="mean number of instances in a bag")
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    inner = rng.choice(options.rows - 1, int(options.rows / options.bag) - 1, replace=False) + 1
    offsets = np.concatenate([[0], np.sort(inner), [options.rows]])
    starts, stops = offsets[:-1], offsets[1:]
    print(f"{options.rows:,} rows x 1 column, {len(starts):,} bags, best of {options.repeats} [ms]")
    print(f"{'':34}{'numpy':>8}{'ours, 1 thread':>24}{'ours, 2 threads':>24}")
    for dtype in (np.float32, np.float64):
        values = rng.normal(size=options.rows).astype(dtype)
        rows = starts + segment_argmax(values, starts, stops)
        np.testing.assert_array_equal(values[rows], np.maximum.reduceat(values, starts))
        np.testing.assert_allclose(
            segment_sum(values, starts, stops), np.add.reduceat(values, starts), atol=1e-3
        )
        for ours, peer in (
            (segment_argmax, np.maximum),
            (segment_max, np.maximum),
            (segment_sum, np.add),
        ):
            numpy_time = best_of(lambda: peer.reduceat(values, starts), options.repeats)  # noqa: B023
            line = f"{ours.__name__} | {peer.__name__}.reduceat"
            text = f"{line:26} {np.dtype(dtype).name:7}{1e3 * numpy_time:8.2f}"
            for n_threads in (1, 2):
                own_time = best_of(
                    lambda: ours(values, starts, stops, n_threads=n_threads),  # noqa: B023
                    options.repeats,
                )
                text += f"{1e3 * own_time:12.2f}{own_time / numpy_time:8.2f} x  "
            print(text)


if __name__ == "__main__":
    main()
