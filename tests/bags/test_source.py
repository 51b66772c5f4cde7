"""`BagSource`: one result for every source, memory limit and number of threads."""

import signal
import subprocess
import sys
import textwrap
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_info

from bags.naive import FLOATS, dense, full_bags, sizes_lists
from bagwise import Bags
from bagwise.bags import BagSource, scan_max, segment_sum
from bagwise.bags._files import FileSlice
from bagwise.bags._source import chunk_grid, parse_bytes
from bagwise.exceptions import InvalidBagsError, MemoryLimitError


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Let small data have many chunks."""
    monkeypatch.setattr("bagwise.bags._matrix._CHUNK_BYTES", 600)


def cross_product(chunk):
    X = dense(chunk.instances)
    return X.T @ X


def bag_sums(chunk):
    return segment_sum(dense(chunk.instances), chunk.starts, chunk.stops, n_threads=1)


# ----------------------------------------------------------------------------------- the grid


@given(sizes_lists(max_bags=60), st.integers(1, 30), st.sampled_from([None, sparse.csr_array]))
def test_grid_covers_all_bags_once(sizes, n_features, layout):
    bags = full_bags(sizes, n_features, layout=layout)
    grid = chunk_grid(bags)
    assert grid[0] == 0
    assert grid[-1] == len(bags)
    assert (np.diff(grid) > 0).all()


def test_chunks_are_about_as_large_as_said():
    bags = full_bags([3] * 200, n_features=5)  # 120 bytes a bag
    assert np.diff(chunk_grid(bags)).max() == 5
    assert len(chunk_grid(full_bags([500]))) == 2  # bags are not cut
    monster = full_bags([1, 1, 5000, 1, 1], n_features=1)
    assert chunk_grid(monster).tolist() in ([0, 3, 5], [0, 2, 3, 5])


def test_default_chunk_is_16384_rows_of_64_float32(monkeypatch):
    monkeypatch.undo()
    bags = Bags(np.zeros((40_000, 64), np.float32), np.arange(40_001))
    assert chunk_grid(bags).tolist() == [0, 16_384, 32_768, 40_000]


def csr_with_long_indices(matrix):
    matrix = sparse.csr_array(matrix)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


@pytest.mark.parametrize("layout", [None, sparse.csr_array, csr_with_long_indices])
@pytest.mark.parametrize("dtype", FLOATS)
def test_grid_does_not_depend_on_where_the_bags_are(tmp_path, layout, dtype):
    rng = np.random.default_rng(0)
    bags = full_bags(rng.integers(1, 9, size=120), 11, dtype, layout=layout)
    if layout is not None:  # rows differ in how much they store, and so do selections
        kept = np.arange(bags.n_instances) % 7 > 3
        bags = bags.map_instances(lambda X: layout(X.toarray() * kept[:, None]))
    for selected in (bags, bags[rng.permutation(120)[:70]], bags[:40]):
        expected = chunk_grid(selected)
        assert len(expected) > 3
        selected.write(tmp_path / "x.bags", overwrite=True)
        for other in (selected.compact(), Bags.open(tmp_path / "x.bags")):
            np.testing.assert_array_equal(chunk_grid(other), expected)


# ------------------------------------------------------------------------- map and reduce


@given(sizes_lists(max_bags=40), st.integers(1, 20), st.sampled_from([1, 2, 4]))
def test_equal_to_the_direct_computation(sizes, n_features, n_threads):
    bags = full_bags(sizes, n_features)
    source = BagSource(bags, n_threads=n_threads)
    X = bags.instances
    np.testing.assert_allclose(source.reduce(cross_product), X.T @ X, atol=1e-9)
    np.testing.assert_array_equal(source.concatenate(lambda chunk: chunk.instances), X)
    np.testing.assert_array_equal(
        source.concatenate(bag_sums), segment_sum(X, bags.offsets[:-1], bags.offsets[1:])
    )
    assert source.n_chunks == len(list(source.map(lambda chunk: None)))


def test_chunks_say_what_they_are():
    bags = full_bags([2, 5, 1, 7, 3] * 6, n_features=6)
    seen = list(BagSource(bags, n_threads=2).map(lambda chunk: chunk))
    assert len(seen) > 3
    for chunk in seen:
        np.testing.assert_array_equal(chunk.instances, bags.instances[chunk.rows])
        np.testing.assert_array_equal(chunk.bags.bag_names, bags.bag_names[chunk.span])
        np.testing.assert_array_equal(chunk.starts, bags.offsets[chunk.span] - chunk.rows.start)
        np.testing.assert_array_equal(chunk.stops - chunk.starts, bags.sizes[chunk.span])
        np.testing.assert_array_equal(chunk.bags.instance_labels, bags.instance_labels[chunk.rows])
    spans = [(chunk.span.start, chunk.span.stop) for chunk in seen]
    assert [a for a, _ in spans] == [0, *(b for _, b in spans[:-1])]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_results_are_combined_in_order(n_threads):
    bags = full_bags([4] * 80, n_features=6)
    source = BagSource(bags, n_threads=n_threads)
    rng = np.random.default_rng(0)
    pauses = rng.random(source.n_chunks) * 0.004

    def slow(chunk):
        time.sleep(pauses[chunk.span.start % len(pauses)])
        return [chunk.span.start]

    joined = source.reduce(slow, combine=lambda total, one: total + one)
    assert joined == source.grid[:-1].tolist()


def test_broadcast_arguments_and_tuples():
    bags = full_bags([4] * 50, n_features=6)
    coef = np.random.default_rng(0).normal(size=(2, 6))

    def scan(chunk, coef, shift):
        best, where = scan_max(chunk.instances, coef, chunk.starts, chunk.stops, n_threads=1)
        return best + shift, where

    source = BagSource(bags, n_threads=2)
    best, where = source.concatenate(scan, coef, 10.0)
    expected = scan_max(bags.instances, coef, bags.offsets[:-1], bags.offsets[1:])
    np.testing.assert_array_equal(best, expected[0] + 10.0)
    np.testing.assert_array_equal(where, expected[1])
    total, (count, rows) = source.reduce(lambda c: (c.instances.sum(0), (1, len(c.instances))))
    assert (count, rows) == (source.n_chunks, 200)
    np.testing.assert_allclose(total, bags.instances.sum(0))


def test_maps_are_lazy():
    calls = []
    source = BagSource(full_bags([4] * 50, n_features=6), n_threads=1)
    results = source.map(lambda chunk: calls.append(chunk.span.start))
    assert calls == []
    next(results)
    assert len(calls) == 1
    results.close()


# ---------------------------------------------------------------- the same bits everywhere


@pytest.mark.parametrize("layout", [None, sparse.csr_array])
@pytest.mark.parametrize("dtype", FLOATS)
def test_bits_do_not_depend_on_source_memory_or_threads(tmp_path, layout, dtype):
    rng = np.random.default_rng(1)
    bags = full_bags(rng.integers(1, 12, size=150), 13, dtype, layout=layout)
    bags.write(tmp_path / "x.bags")
    stored = Bags.open(tmp_path / "x.bags")
    orders = [np.arange(150), rng.permutation(150), rng.integers(0, 150, size=90)]
    for order in (*orders, np.arange(20, 70)):
        results = set()
        for made in (bags, stored):
            for n_threads in (1, 2, 4):
                for max_memory in (None, 6000, "1GB"):
                    source = BagSource(made[order], n_threads=n_threads, max_memory=max_memory)
                    product, sums = source.reduce(cross_product), source.concatenate(bag_sums)
                    results.add((product.tobytes(), sums.tobytes()))
        copied = BagSource(bags[order].compact(), n_threads=2)
        product, sums = copied.reduce(cross_product), copied.concatenate(bag_sums)
        results.add((product.tobytes(), sums.tobytes()))
        assert len(results) == 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes_lists(max_bags=30), st.data())
def test_reading_equals_mapping(tmp_path_factory, sizes, data):
    folder = tmp_path_factory.mktemp("store")
    bags = full_bags(sizes, 9)
    bags.write(folder / "x.bags")
    order = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=20))
    stored = Bags.open(folder / "x.bags")[order]
    read = BagSource(stored, max_memory=10_000).map(lambda chunk: chunk.bags)
    mapped = BagSource(stored).map(lambda chunk: chunk.bags)
    for one, other in zip(read, mapped, strict=True):
        assert not one.is_memory_mapped
        np.testing.assert_array_equal(one.instances, other.instances)
        np.testing.assert_array_equal(one.instance_names, other.instance_names)
        np.testing.assert_array_equal(one.labels, other.labels)


def test_the_limit_makes_it_read_the_file(tmp_path, monkeypatch):
    full_bags([4] * 60, 6).write(tmp_path / "x.bags")
    stored = Bags.open(tmp_path / "x.bags")
    reads = []
    original = FileSlice.read_rows

    def counting(self, start, stop):
        reads.append((start, stop))
        return original(self, start, stop)

    monkeypatch.setattr(FileSlice, "read_rows", counting)
    BagSource(stored).reduce(cross_product)
    assert reads == []
    source = BagSource(stored, max_memory=10_000, n_threads=1)
    source.reduce(cross_product)
    rows = (4 * source.grid).tolist()
    assert reads == list(pairwise(rows))


# ---------------------------------------------------------------------------- memory limits


@pytest.mark.parametrize("held", [0, 500, 10_000])
@pytest.mark.parametrize(("max_memory", "in_flight"), [(700, 1), (1300, 2), (2000, 3), (10**6, 8)])
def test_chunks_in_flight_are_bounded(max_memory, in_flight, held):
    bags = full_bags([3] * 100, n_features=8)  # 576 bytes a chunk
    started, most, lock = [0], [0], threading.Lock()

    def work(chunk):
        with lock:
            started[0] += 1
        time.sleep(0.0005)
        return 1

    results = BagSource(bags, n_threads=2, max_memory=max_memory, held=held).map(work)
    for n_done, _ in enumerate(results):
        time.sleep(0.0005)
        most[0] = max(most[0], started[0] - n_done)
    assert most[0] <= min(in_flight, max(1, (max_memory - held) // 576))


def test_limit_below_the_largest_chunk():
    bags = full_bags([3] * 100 + [50], n_features=8)
    with pytest.raises(MemoryLimitError, match=r"max_memory=3,000 bytes.*takes \d,\d\d\d bytes"):
        BagSource(bags, max_memory=3000).reduce(cross_product)
    assert BagSource(bags, max_memory=4000).reduce(lambda chunk: 1) > 1
    with pytest.raises(MemoryLimitError, match="100 bytes of scratch per instance"):
        BagSource(bags, max_memory=4000, scratch=100).reduce(cross_product)
    assert issubclass(MemoryLimitError, MemoryError)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (None, None), (1, 1), (np.int64(7), 7), ("12", 12), ("12B", 12), ("1.5kB", 1500),
        ("512MB", 512 * 10**6), ("2 GiB", 2 * 2**30), (" 3 mib ", 3 * 2**20), ("1K", 1000),
        ("2G", 2 * 10**9), ("4KiB", 4096),
    ],
)  # fmt: skip
def test_amounts_of_memory(text, number):
    assert parse_bytes(text) == number


@pytest.mark.parametrize("text", ["", "MB", "-5", "1e6", "12 parsecs", 0, -1, 1.5, [1], "1 TB"])
def test_what_is_no_amount_of_memory(text):
    with pytest.raises(ValueError, match="max_memory must be a number of bytes"):
        BagSource(full_bags(), max_memory=text)


def test_no_bags():
    with pytest.raises(InvalidBagsError, match="at least one bag"):
        BagSource(full_bags()[:0])


# ------------------------------------------------------------------- errors and interrupts


class Gauge:
    """Counts calls, and those that run at this moment."""

    def __init__(self):
        self.lock, self.started, self.running = threading.Lock(), 0, 0

    def __enter__(self):
        with self.lock:
            self.started += 1
            self.running += 1

    def __exit__(self, *_):
        with self.lock:
            self.running -= 1


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("place", ["function", "combine"])
def test_errors_propagate_and_leave_no_work(n_threads, place):
    gauge, before = Gauge(), blas_threads()
    source = BagSource(full_bags([4] * 400, n_features=6), n_threads=n_threads)

    def function(chunk):
        with gauge:
            time.sleep(0.001)
            if place == "function" and chunk.span.start >= 15:
                message = "as told"
                raise ZeroDivisionError(message)
            return 1

    def combine(total, one):
        if place == "combine" and total == 3:
            message = "as told"
            raise ZeroDivisionError(message)
        return total + one

    with pytest.raises(ZeroDivisionError, match="as told") as caught:
        source.reduce(function, combine=combine)
    assert gauge.running == 0  # while the traceback, and its frames, are still held
    assert blas_threads() == before
    assert caught.tb is not None
    assert gauge.started < source.n_chunks
    started = gauge.started
    assert source.reduce(lambda chunk: 1) == source.n_chunks  # the pool is free again
    assert gauge.started == started


CHILD = """
import signal, sys
import numpy as np
from bagwise import Bags
from bagwise.bags import BagSource, scan_max, segment_logsumexp

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have switched it off
values = np.random.default_rng(0).normal(size=(200_000, 8))
bags = Bags(values, np.arange(0, 200_001, 20))
source = BagSource(bags, n_threads=int(sys.argv[2]))

def work(chunk):
    for _ in range(20):
        scan_max(chunk.instances, np.ones((30, 8)), chunk.starts, chunk.stops)
    return 1

def reduce():
    source.reduce(work)

def segments():
    segment_logsumexp(values, bags.offsets[:-1], bags.offsets[1:], n_threads=int(sys.argv[2]))

job = {"reduce": reduce, "segments": segments}[sys.argv[1]]
segment_logsumexp(values[:20], [0], [20])
scan_max(values[:20], np.ones((30, 8)), [0], [20])
try:
    print("ready", flush=True)
    while True:
        job()
except KeyboardInterrupt:
    import threading
    segment_logsumexp(values[:1000], [0], [1000])  # everything works as before
    print("interrupted", threading.current_thread() is threading.main_thread(), flush=True)
"""


@pytest.mark.parametrize("job", ["reduce", "segments"])
@pytest.mark.parametrize("n_threads", ["1", "2"])
def test_ctrl_c_ends_a_long_computation(job, n_threads):
    command = [sys.executable, "-c", textwrap.dedent(CHILD), job, n_threads]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.2)
            child.send_signal(signal.SIGINT)
            output, _ = child.communicate(timeout=60)
        finally:
            child.kill()
    assert output == "interrupted True\n"
    assert child.returncode == 0


def test_copied_bytes_are_those_of_selections_and_sparse_matrices():
    X = np.random.default_rng(0).normal(size=(30, 4))
    bags = Bags(X, np.arange(0, 31, 3))
    assert BagSource(bags).copied_bytes == 0
    assert BagSource(bags[2:7]).copied_bytes == 0
    assert BagSource(bags[[0, 4, 2]]).copied_bytes == 9 * 4 * 8
    csr = Bags(sparse.csr_array(X), bags.offsets)
    assert BagSource(csr).copied_bytes > X.nbytes
