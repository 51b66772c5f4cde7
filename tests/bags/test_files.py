"""Pickles: memory as content, files as paths, and never the wrong content."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from bags.naive import assert_same_bags, dense, full_bags, sizes_lists
from bagwise import Bags
from bagwise.bags import BagSource
from bagwise.bags._files import FileSlice
from bagwise.exceptions import BagFileError

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def there_and_back(bags, protocol=None):
    return pickle.loads(pickle.dumps(bags, protocol=protocol))


# -------------------------------------------------------------------------------- in memory


@given(sizes_lists(), st.sampled_from([None, sparse.csr_array]), st.data())
def test_selections_survive(sizes, layout, data):
    bags = full_bags(sizes=sizes, layout=layout)
    places = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=10))
    protocol = data.draw(st.sampled_from(PROTOCOLS))
    assert_same_bags(there_and_back(bags[places], protocol), bags[places])


def test_small_selection_of_a_large_matrix_is_small():
    big = Bags(np.zeros((10_000, 100)), np.arange(0, 10_001, 10), instance_labels=np.zeros(10_000))
    assert len(pickle.dumps(big)) > big.instances.nbytes
    assert len(pickle.dumps(big[[3, 990]])) < 30_000
    assert_same_bags(there_and_back(big[[3, 990]]), big[[3, 990]])


def test_repeated_bags_are_sent_once():
    bags = Bags(np.zeros((1000, 10)), np.arange(0, 1001, 10))
    assert len(pickle.dumps(bags[np.zeros(5000, dtype=int)])) < 2 * bags.instances.nbytes + 90_000


# --------------------------------------------------------------------------------- in files


@pytest.fixture(params=[None, sparse.csr_array], ids=["dense", "csr"])
def stored(request, tmp_path):
    sizes = np.tile([7, 1, 12], 100)
    full_bags(sizes, n_features=40, layout=request.param).write(tmp_path / "x.bags")
    return Bags.open(tmp_path / "x.bags")


def test_pickle_of_a_store_is_its_path(stored, tmp_path):
    text = pickle.dumps(stored)
    assert str(tmp_path).encode() in text
    assert len(text) < 20_000 + stored.bag_names.nbytes
    back = pickle.loads(text)
    assert_same_bags(back, stored)
    assert back.is_memory_mapped


def test_arrays_about_instances_stay_in_the_file(tmp_path):
    n = 50_000
    names = [f"instance number {i}" for i in range(n)]
    bags = Bags(np.zeros((n, 1)), [0, n], instance_labels=np.arange(n), instance_names=names)
    bags.write(tmp_path / "x.bags")
    stored = Bags.open(tmp_path / "x.bags")
    assert len(pickle.dumps(stored)) < 3000
    assert sys.getsizeof(stored) < 3000
    assert_same_bags(there_and_back(stored[[0, 0]]), bags[[0, 0]])


def test_selections_of_a_store(stored):
    shuffled = stored[np.random.default_rng(0).permutation(300)[:50]]
    back = there_and_back(shuffled)
    assert_same_bags(back, shuffled)
    assert back.is_memory_mapped
    assert len(pickle.dumps(shuffled)) < 15_000
    for made in (copy.copy(shuffled), copy.deepcopy(shuffled)):
        assert made.is_memory_mapped
        assert_same_bags(made, shuffled)


def test_compact_leaves_the_file(stored):
    compact = stored.compact()
    assert not compact.is_memory_mapped
    assert_same_bags(compact, stored)


def test_size_does_not_count_the_file(stored):
    assert sys.getsizeof(stored) < sys.getsizeof(stored.compact()) - 10_000


def test_another_process_opens_the_file(stored, tmp_path):
    (tmp_path / "pickle").write_bytes(pickle.dumps(stored[[5, 2]]))
    code = (
        "import pickle, sys; bags = pickle.load(open(sys.argv[1], 'rb'));"
        "print(bags.is_memory_mapped, bags.bag_names.tolist(), float(bags.instances.sum()).hex())"
    )
    command = [sys.executable, "-c", code, tmp_path / "pickle"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
    total = float(stored[[5, 2]].instances.sum()).hex()
    assert done.stdout.strip() == f"True ['bag5', 'bag2'] {total}"


def values_file(bags):
    values = bags._base.data if bags.is_sparse else bags._base
    return Path(FileSlice.of(values).path)


def test_changed_file_is_refused(stored):
    text = pickle.dumps(stored)
    path = values_file(stored)
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    with pytest.raises(BagFileError, match="has changed since"):
        pickle.loads(text)


def test_grown_file_is_refused(stored):
    text = pickle.dumps(stored)
    path = values_file(stored)
    before = path.stat().st_mtime_ns
    with path.open("ab") as file:
        file.write(b"more")
    os.utime(path, ns=(before, before))
    with pytest.raises(BagFileError, match="has changed since"):
        pickle.loads(text)


def test_file_that_changed_since_it_was_mapped_is_not_sent(stored):
    """A pickle that is made later knows the file as it was mapped, not as it is now."""
    path = values_file(stored)
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    for bags in (stored, stored[::2], stored.map_instances(np.negative, lazy=True)):
        with pytest.raises(BagFileError, match="has changed since"):
            pickle.loads(pickle.dumps(bags))


@pytest.mark.parametrize("max_memory", [None, "1GB"])
@pytest.mark.parametrize("n_read", [0, 1, -1])
def test_file_that_changes_during_a_pass(stored, monkeypatch, max_memory, n_read):
    """It is found before the next chunk is read, and after the last."""
    monkeypatch.setattr("bagwise.bags._matrix._CHUNK_BYTES", 256)
    source, path = BagSource(stored, n_threads=1, max_memory=max_memory), values_file(stored)
    n_read = n_read % source.n_chunks
    later, numbers = path.stat().st_mtime_ns + 10**9, []

    def change(chunk):
        numbers.append(chunk.span.start)
        if len(numbers) == n_read + 1:
            os.utime(path, ns=(later, later))

    with pytest.raises(BagFileError, match="has changed since"):
        source.concatenate(change)
    assert source.n_chunks > 2
    assert len(numbers) == n_read + 1


def test_deleted_file_is_refused_and_the_map_still_serves(stored):
    text, expected = pickle.dumps(stored), stored.compact()
    values_file(stored).unlink()
    with pytest.raises(BagFileError, match="cannot be opened"):
        pickle.loads(text)
    assert_same_bags(stored, expected)
    assert_same_bags(there_and_back(stored), expected)  # as content now
    assert_same_bags(there_and_back(stored[[3]]), expected[[3]])


def test_replaced_store_is_not_mistaken_for_the_one_that_was_opened(stored, tmp_path):
    """The name leads to another file now; the map, and what is made of it, is the old one."""
    expected = stored.compact()
    text = pickle.dumps(stored)
    stored[::-1].map_instances(lambda X: X * 2).write(tmp_path / "x.bags", overwrite=True)
    assert not stored.is_memory_mapped
    assert_same_bags(there_and_back(stored), expected)
    read = BagSource(stored, max_memory="1GB").concatenate(lambda chunk: dense(chunk.instances))
    np.testing.assert_array_equal(read, dense(expected.instances))
    with pytest.raises(BagFileError, match="has changed since"):
        pickle.loads(text)


def test_file_replaced_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("bagwise.bags._matrix._CHUNK_BYTES", 256)
    bags = full_bags(sizes=[3] * 100)
    bags.write(tmp_path / "x.bags")
    source = BagSource(Bags.open(tmp_path / "x.bags"), n_threads=1, max_memory=10_000)
    results = source.map(lambda chunk: chunk.instances.copy())
    np.testing.assert_array_equal(next(results), bags.instances[: len(next(source.map(rows_of)))])
    bags[::-1].write(tmp_path / "x.bags", overwrite=True)
    with pytest.raises(BagFileError, match="has changed since"):
        list(results)


def rows_of(chunk):
    return chunk.instances.copy()


# ------------------------------------------------------------------- maps that users made


@pytest.mark.parametrize("offset", [0, 1, 3, 128, 4095, 4096, 4097, 70_001])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maps_at_any_offset(tmp_path, offset, dtype):
    values = np.random.default_rng(0).normal(size=(300, 7)).astype(dtype)
    (tmp_path / "raw").write_bytes(b"\xaa" * offset + values.tobytes() + b"\xbb" * 5)
    mapped = np.memmap(tmp_path / "raw", dtype, "r", offset, (300, 7))
    for cut in (mapped, mapped[100:], mapped[50:52], mapped[7:7][:0]):
        bags = Bags(cut, [0, len(cut)] if len(cut) else [0])
        back = there_and_back(bags)
        np.testing.assert_array_equal(back.instances, cut)
        assert len(pickle.dumps(bags)) < 2000
    assert bags.n_instances == 0


@pytest.mark.parametrize("mode", ["r", "r+", "w+", "c"])
def test_maps_of_any_mode(tmp_path, mode):
    values = np.random.default_rng(0).normal(size=(200, 50))
    values.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", np.float64, mode, shape=(200, 50))
    if mode in ("w+", "c"):
        mapped[:] = values + 1
    bags = Bags(mapped, [0, 200])
    np.testing.assert_array_equal(there_and_back(bags).instances, mapped)
    assert (len(pickle.dumps(bags)) < 2000) == (mode != "c")


def test_views_that_are_not_contiguous_are_sent_as_content(tmp_path):
    values = np.arange(600.0).reshape(100, 6)
    values.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", np.float64, "r", shape=(100, 6))
    for cut in (mapped[::2], mapped[:, :3], mapped[::-1]):
        bags = Bags(cut, [0, len(cut)])
        assert not bags.is_memory_mapped
        np.testing.assert_array_equal(there_and_back(bags).instances, cut)
    assert FileSlice.of(mapped[::2]) is None


def test_csr_made_of_maps(tmp_path):
    matrix = sparse.random_array((100, 30), density=0.2, rng=0, format="csr")
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(matrix, name))
    parts = [np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in ("data", "indices", "indptr")]
    bags = Bags(sparse.csr_array(tuple(parts), shape=matrix.shape), [0, 40, 100])
    assert bags.is_memory_mapped
    assert len(pickle.dumps(bags)) < 2000
    assert_same_bags(there_and_back(bags), Bags(matrix, [0, 40, 100]))


def test_map_of_an_open_file_without_a_name(tmp_path):
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(np.arange(20.0).tobytes())
        file.flush()
        bags = Bags(np.memmap(file, np.float64, "r", shape=(10, 2)), [0, 10])
        np.testing.assert_array_equal(there_and_back(bags).instances, bags.instances)


# -------------------------------------------------------------------------------- read_rows


def test_read_rows_equals_the_map(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(60.0).reshape(20, 3))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    whole, part = FileSlice.of(mapped), FileSlice.of(mapped[5:15])
    for start, stop in [(0, 20), (3, 4), (7, 7), (19, 20)]:
        np.testing.assert_array_equal(whole.read_rows(start, stop), mapped[start:stop])
    np.testing.assert_array_equal(part.read_rows(2, 9), mapped[7:14])
    assert whole.read_rows(0, 20).flags.owndata or whole.read_rows(0, 20).base.flags.owndata


def test_file_that_ends_early(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(60.0).reshape(20, 3))
    described = FileSlice.of(np.load(tmp_path / "x.npy", mmap_mode="r"))
    os.truncate(tmp_path / "x.npy", 300)
    with pytest.raises(BagFileError, match="ended early"):
        described.read_rows(10, 20)
