"""Rows that are read in passes: the same numbers wherever the bags lie, and no copies."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise import Bags
from bagwise.bags import BagSource, _matrix
from bagwise.exceptions import BagFileError, InvalidBagsError, MemoryLimitError
from bagwise.solvers import PassRows
from bagwise.solvers.operators import _pass_rows

LAYOUTS = ("dense", "float32", "csr", "scattered", "mapped", "mapped csr")
OFFSETS = np.array([0, 3, 4, 90, 200, 310, 400])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(_matrix, "_CHUNK_BYTES", 4000)


def matrix(kind="dense"):
    X = np.random.default_rng(0).normal(size=(400, 6))
    X = X.astype(np.float32) if kind == "float32" else X
    return sp.csr_array(X * (np.abs(X) > 0.8)) if "csr" in kind else X


def lay(layout, folder):
    """Return bags in a layout, and their instances in order."""
    X = matrix(layout)
    bags = Bags(X, OFFSETS)
    if layout == "scattered":
        order = [4, 0, 5, 2]
        return bags[order], np.concatenate([X[OFFSETS[i] : OFFSETS[i + 1]] for i in order])
    if layout.startswith("mapped"):
        bags.write(folder / "made.bags")
        bags = Bags.open(folder / "made.bags")
    return bags, X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("with_more", [False, True])
def test_products_are_those_of_the_matrix(layout, with_more, tmp_path, monkeypatch):
    bags, X = lay(layout, tmp_path)
    more = np.random.default_rng(1).normal(size=(5, 6)).astype(X.dtype)
    rows = PassRows(
        bags, more=(sp.csr_array(more) if bags.is_sparse else more) if with_more else None
    )
    X = np.concatenate([X, more]) if with_more else X
    w, factor = np.linspace(-1, 1, 6), np.cos(np.arange(len(X)))
    assert rows.n == len(X)
    np.testing.assert_allclose(rows.dot(w), X @ w, atol=1e-6)
    np.testing.assert_allclose(rows.combine(factor), X.T @ factor, atol=1e-4)
    bend = np.abs(factor)
    squares = np.column_stack([X, np.ones(len(X))]) ** 2
    np.testing.assert_allclose(rows.curvature_diagonal(bend), bend @ squares, rtol=1e-6)
    some = np.array([len(X) - 1, 5, 0, len(X) - 3, 7, 5])
    np.testing.assert_allclose(rows.take(some).dot(w), X[some] @ w, atol=1e-6)
    for values in (2**22, 500, 1):  # that may be copied at a time
        monkeypatch.setattr(_pass_rows, "_FEW_VALUES", values)
        np.testing.assert_allclose(rows.gram(), X.astype(float) @ X.T, atol=1e-5)


@pytest.mark.parametrize("layout", ["scattered", "mapped", "mapped csr"])
@pytest.mark.parametrize("options", [{"n_threads": 1}, {"n_threads": 4}, {"max_memory": "1MB"}])
def test_bits_do_not_depend_on_where_the_rows_lie(layout, options, tmp_path):
    bags, X = lay(layout, tmp_path)
    X = matrix("csr") if "csr" in layout else X
    here, there = PassRows(Bags(X, bags.offsets)), PassRows(bags, **options)
    w, factor = np.linspace(-1, 1, 6), np.cos(np.arange(here.n))
    np.testing.assert_array_equal(here.dot(w), there.dot(w))
    np.testing.assert_array_equal(here.combine(factor), there.combine(factor))


@pytest.mark.parametrize("layout", ["mapped", "mapped csr"])
def test_lazy_rows_are_those_in_memory(layout, tmp_path):
    bags, _ = lay(layout, tmp_path)
    here = PassRows(bags.map_instances(lambda rows: 2 * rows))
    there = PassRows(bags.map_instances(lambda rows: 2 * rows, lazy=True))
    assert here.width == there.width  # which sizes of working sets are made of
    w, factor = np.linspace(-1, 1, 6), np.cos(np.arange(here.n))
    np.testing.assert_array_equal(here.dot(w), there.dot(w))
    np.testing.assert_array_equal(here.combine(factor), there.combine(factor))
    for some in (np.array([3, 0, 9]), np.empty(0, np.int64)):
        np.testing.assert_array_equal(here.take(some).dot(w), there.take(some).dot(w))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("limit", [None, "1MB"])
def test_a_part_is_what_it_is_in_the_whole(layout, limit, tmp_path):
    bags, X = lay(layout, tmp_path)
    more = np.random.default_rng(1).normal(size=(5, 6)).astype(X.dtype)
    more = sp.csr_array(more) if bags.is_sparse else more
    rows = PassRows(bags, more=more, max_memory=limit)
    some = np.concatenate([np.arange(20, 80), [len(X) - 1, len(X) + 1, len(X) + 4]])
    part, w = rows.part(some), np.linspace(-1, 1, 6)
    np.testing.assert_array_equal(part.dot(w), rows.dot(w)[some])
    within = np.array([3, 50, 60, 62])
    np.testing.assert_array_equal(part.part(within).dot(w), rows.dot(w)[some[within]])
    np.testing.assert_array_equal(part.take(within).dot(w), rows.dot(w)[some[within]])
    factor = np.zeros(rows.n)
    factor[some] = np.cos(some)
    np.testing.assert_array_equal(part.combine(factor[some]), rows.combine(factor))
    assert not rows.part(some[:0]).combine(np.zeros(0)).any()


def test_chunks_without_a_row_of_the_part_are_not_read(monkeypatch, tmp_path):
    bags, _ = lay("mapped", tmp_path)
    read, chunk = [], BagSource._chunk

    def counted(source, number):
        read.append(number)
        return chunk(source, number)

    monkeypatch.setattr(BagSource, "_chunk", counted)
    part = PassRows(bags, max_memory="1MB").part(np.array([1, 2, 395]))
    read.clear()
    part.dot(np.ones(6))
    assert len(read) == 2 < BagSource(bags).n_chunks


def test_features_are_made_when_rows_are_read(tmp_path):
    bags, X = lay("mapped", tmp_path)
    rows = PassRows(bags, transform=lambda part: np.hstack([part, part**2]), n_features=12)
    both = np.hstack([X, X**2])
    w = np.arange(12.0)
    np.testing.assert_allclose(rows.dot(w), both @ w)
    np.testing.assert_allclose(rows.combine(np.ones(400)), both.sum(axis=0))
    np.testing.assert_allclose(rows.take(np.array([300, 2])).dot(w), both[[300, 2]] @ w)


def test_a_scattered_selection_is_not_copied(monkeypatch):
    bags = Bags(matrix(), OFFSETS)[[4, 0, 5, 2]]
    largest, take = [], _matrix.take_rows

    def counted(matrix, index):
        largest.append(len(index))
        return take(matrix, index)

    monkeypatch.setattr(_matrix, "take_rows", counted)
    PassRows(bags).dot(np.ones(6))
    PassRows(bags, transform=np.square).dot(np.ones(6))
    assert max(largest, default=0) < bags.n_instances / 2


@pytest.mark.parametrize("product", ["dot", "combine"])
def test_a_value_that_is_not_finite_is_named(product, tmp_path):
    lay("mapped", tmp_path)
    path = tmp_path / "made.bags" / "instances.npy"
    stored = np.load(path, mmap_mode="r+")
    stored[395, 2] = np.nan
    stored.flush()
    rows = PassRows(Bags.open(tmp_path / "made.bags"))
    with pytest.raises(InvalidBagsError, match="bag 5 holds NaN at instance 85, feature 2"):
        getattr(rows, product)(np.ones(6 if product == "dot" else 400))


def test_a_limit_too_small_for_a_chunk_is_refused(tmp_path):
    bags, _ = lay("mapped", tmp_path)
    with pytest.raises(MemoryLimitError, match="largest chunk"):
        PassRows(bags, max_memory=1000).dot(np.ones(6))


@pytest.mark.parametrize("limit", [None, "1MB"])
def test_a_store_that_changes_is_refused(limit, tmp_path):
    bags, X = lay("mapped", tmp_path)
    rows = PassRows(bags, max_memory=limit)
    rows.dot(np.ones(6))
    path = tmp_path / "made.bags" / "instances.npy"
    np.save(path, X[:, ::-1])
    with pytest.raises(BagFileError, match="has changed since"):
        rows.dot(np.ones(6))
