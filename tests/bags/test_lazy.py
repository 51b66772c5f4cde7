"""Bags whose instances are transformed when they are read: the same as those transformed before."""

import pickle
import sys

import numpy as np
import pytest
from scipy import sparse

from bagwise import Bags
from bagwise.bags import BagSource, bag_digests, distinct_instances, in_parts, instance_bytes
from bagwise.exceptions import BagFileError, InvalidBagsError, MemoryLimitError

N_BAGS, WIDTH = 60, 256


def double(rows):
    return 2 * rows


def first_half(rows):
    return rows[:, : rows.shape[1] // 2]


class Counter:
    """A function that notes how many rows it gets."""

    def __init__(self, function=double):
        self.function, self.lengths = function, []

    def __call__(self, rows):
        self.lengths.append(rows.shape[0])
        return self.function(rows)


@pytest.fixture(scope="module")
def plain():
    """About 20 MB: five chunks."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(200, 500, N_BAGS)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Bags(
        rng.normal(size=(offsets[-1], WIDTH)).astype(np.float32),
        offsets,
        bag_names=[f"slide {i}" for i in range(N_BAGS)],
        labels=np.arange(N_BAGS) % 2,
        instance_labels=rng.integers(0, 2, offsets[-1]),
        feature_names=[f"f{i}" for i in range(WIDTH)],
    )


@pytest.fixture(scope="module")
def stored(plain, tmp_path_factory):
    path = tmp_path_factory.mktemp("lazy") / "plain.bags"
    plain.write(path)
    return Bags.open(path)


@pytest.fixture(scope="module")
def csr(tmp_path_factory):
    rng = np.random.default_rng(1)
    rows = sparse.random_array((300, 40), density=0.1, format="csr", rng=rng)
    bags = Bags(rows, np.arange(0, 301, 10))
    path = tmp_path_factory.mktemp("lazy") / "csr.bags"
    bags.write(path)
    return Bags.open(path)


SELECTIONS = {
    "all": slice(None),
    "half": slice(10, 40),
    "scattered": np.random.default_rng(2).permutation(N_BAGS)[:25],
}


def same(a, b):
    """Compare all that bags hold."""
    x, y = a.instances, b.instances
    if a.is_sparse:
        x, y = x.toarray(), y.toarray()
    np.testing.assert_array_equal(x, y)
    for name in ("sizes", "offsets", "bag_names", "labels", "instance_labels", "feature_names"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.is_sparse == b.is_sparse


@pytest.mark.parametrize("chosen", SELECTIONS.values(), ids=SELECTIONS)
@pytest.mark.parametrize("before", [True, False], ids=["selected before", "selected after"])
def test_lazy_bags_hold_what_eager_ones_hold(plain, stored, chosen, before):
    eager = plain[chosen].map_instances(double)
    if before:
        lazy = stored[chosen].map_instances(double, lazy=True)
    else:
        lazy = stored.map_instances(double, lazy=True)[chosen]
    assert lazy.is_lazy
    assert lazy.is_memory_mapped
    assert lazy.n_values == eager.n_values
    np.testing.assert_array_equal(lazy[3], eager[3])
    rows = np.array([5, 0, lazy.n_instances - 1, 700])
    np.testing.assert_array_equal(lazy.take_instances(rows), eager.instances[rows])
    for made, expected in zip(lazy, eager, strict=True):
        np.testing.assert_array_equal(made, expected)
    same(lazy, eager)
    same(lazy[::-1], eager[::-1])  # now that they are loaded


@pytest.mark.parametrize("max_memory", [None, "30MB"])
@pytest.mark.parametrize("chosen", SELECTIONS.values(), ids=SELECTIONS)
def test_chunks_are_those_of_eager_bags(plain, stored, chosen, max_memory):
    eager = BagSource(plain[chosen].map_instances(double))
    lazy = BagSource(stored.map_instances(double, lazy=True)[chosen], max_memory=max_memory)
    np.testing.assert_array_equal(lazy.grid, eager.grid)
    np.testing.assert_array_equal(
        lazy.reduce(lambda chunk: chunk.instances.T @ chunk.instances),
        eager.reduce(lambda chunk: chunk.instances.T @ chunk.instances),
    )


def test_functions_follow_each_other(plain, stored):
    lazy = stored.map_instances(double, lazy=True).map_instances(first_half, lazy=True)
    assert lazy.shape == (N_BAGS, WIDTH // 2)
    assert instance_bytes(lazy) == instance_bytes(plain) // 2
    same(lazy, plain.map_instances(lambda rows: first_half(double(rows))))


def test_sparse_stays_sparse(csr):
    lazy, eager = csr.map_instances(double, lazy=True), csr.map_instances(double)
    assert lazy.is_sparse
    assert lazy.n_values == eager.n_values == csr.instances.nnz
    assert instance_bytes(lazy) == instance_bytes(eager)
    same(lazy[[3, 1, 7]], eager[[3, 1, 7]])
    same(lazy, eager)


@pytest.mark.parametrize("kind", ["stored", "csr"])
def test_functions_are_not_asked_about_no_rows(kind, request):
    count = Counter()
    lazy = request.getfixturevalue(kind).map_instances(count, lazy=True)
    none = lazy.take_instances(np.empty(0, np.int64))
    assert none.shape == (0, lazy.n_features)
    assert none.dtype == lazy.dtype
    assert sparse.issparse(none) == lazy.is_sparse
    assert lazy[:0].instances.shape == (0, lazy.n_features)
    assert not len(bag_digests(lazy[:0]))
    assert min(count.lengths) > 0


def test_dense_can_become_sparse(plain):
    few = plain[:3]
    lazy = few.map_instances(sparse.csr_array, lazy=True)
    assert lazy.is_sparse
    same(lazy.compact(), few.map_instances(sparse.csr_array))


def test_no_more_than_a_chunk_is_transformed_at_a_time(stored):
    count = Counter()
    lazy = stored.map_instances(count, lazy=True)
    source = BagSource(lazy)
    for _ in source.map(lambda chunk: chunk.instances.sum()):
        pass
    largest = np.diff(lazy.offsets[source.grid]).max()
    assert max(count.lengths) <= largest < lazy.n_instances / 3
    assert sum(count.lengths) == 1 + lazy.n_instances


def test_everything_is_made_once(stored):
    count = Counter()
    lazy = stored[:9].map_instances(count, lazy=True)
    for _ in range(3):
        matrix, starts, stops = lazy.segments
        np.testing.assert_array_equal(lazy.instances, matrix)
        np.testing.assert_array_equal(stops - starts, lazy.sizes)
        np.testing.assert_array_equal(lazy[[2]].instances, matrix[starts[2] : stops[2]])
    assert sum(count.lengths) == 1 + lazy.n_instances
    assert sys.getsizeof(lazy) > instance_bytes(lazy)


def test_loading_during_a_walk_does_not_disturb_it(plain, stored):
    lazy = stored[10:].map_instances(double, lazy=True)
    source = BagSource(lazy, max_memory="30MB")
    chunks = source.map(lambda chunk: chunk.instances.copy())
    first = next(chunks)
    assert len(lazy.segments[0]) == lazy.n_instances
    made = np.concatenate([first, *chunks])
    np.testing.assert_array_equal(made, 2 * plain[10:].instances)


def test_pickles_carry_the_path_and_the_function(stored):
    lazy = stored[[4, 2]].map_instances(double, lazy=True)
    content = pickle.dumps(lazy)
    assert len(content) < instance_bytes(stored) / 50
    again = pickle.loads(content)
    assert again.is_lazy
    same(again, lazy)


def test_pickles_of_lazy_bags_in_memory(plain):
    for lazy in (
        plain.map_instances(double, lazy=True),
        plain.map_instances(double, lazy=True)[:2],
    ):
        same(pickle.loads(pickle.dumps(lazy)), lazy)


def test_digests_and_draws_agree(plain, stored):
    lazy, eager = stored.map_instances(double, lazy=True), plain.map_instances(double)
    np.testing.assert_array_equal(bag_digests(lazy), bag_digests(eager))
    np.testing.assert_array_equal(distinct_instances(lazy, 5, 0), distinct_instances(eager, 5, 0))
    assert lazy._loaded is None


def test_in_parts_reads_chunks_of_lazy_bags_only(plain, stored):
    sizes = []

    def means(bags):
        sizes.append(len(bags))
        return np.array([bag.mean() for bag in bags])

    in_memory = in_parts(plain.map_instances(double), means)
    assert sizes == [N_BAGS]
    np.testing.assert_array_equal(
        in_parts(stored.map_instances(double, lazy=True), means), in_memory
    )
    assert max(sizes[1:]) < N_BAGS / 3


def test_a_store_is_made_of_lazy_bags_in_chunks(plain, stored, tmp_path):
    count = Counter()
    lazy = stored.map_instances(count, feature_names=plain.feature_names, lazy=True)
    lazy.write(tmp_path / "doubled.bags")
    assert max(count.lengths) < plain.n_instances / 3
    expected = plain.map_instances(double, feature_names=plain.feature_names)
    same(Bags.open(tmp_path / "doubled.bags"), expected)


def test_lazy_bags_say_so(stored):
    lazy = stored.map_instances(double, lazy=True)
    assert ", memory-mapped, lazy;" in repr(lazy)
    assert "transformed when read" in lazy._repr_html_()
    assert "lazy" not in repr(stored)
    assert not stored.is_lazy


def test_concatenation_is_in_memory(plain, stored):
    joined = Bags.concatenate([stored[:2].map_instances(double, lazy=True), plain[2:4]])
    assert not joined.is_lazy
    np.testing.assert_array_equal(joined[1], 2 * plain[1])
    np.testing.assert_array_equal(joined[3], plain[3])


def test_missing_values_stay_missing_until_they_are_filled():
    holes = Bags([[1.0], [np.nan], [3.0]], [0, 2, 3], allow_nan=True)
    with pytest.raises(InvalidBagsError, match="bag 0"):
        holes.map_instances(double, lazy=True).check_finite()
    filled = holes.map_instances(np.nan_to_num, lazy=True)
    filled.check_finite()
    np.testing.assert_array_equal(filled.instances, [[1.0], [0.0], [3.0]])


def test_an_overflow_names_the_bag(stored):
    def overflow(rows):
        with np.errstate(over="ignore"):
            return rows * np.float32(3e38)

    lazy = stored.map_instances(overflow, lazy=True)
    with pytest.raises(InvalidBagsError, match=r"'slide \d+'"):
        BagSource(lazy).reduce(lambda chunk: chunk.instances.sum())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda rows: rows[:1].repeat(2, axis=0), "one row per instance: 1 were given, 2 came"),
        (lambda rows: rows[: min(3, len(rows))], "one row per instance"),
        (lambda rows: rows[:, : len(rows)], "1 columns of float32 came first"),
        (
            lambda rows: rows.astype(float) if len(rows) > 1 else rows,
            "columns of float64 came later",
        ),
        (lambda rows: rows[:, :0], "at least one feature"),
    ],
    ids=["more rows", "fewer rows", "other width", "other type", "no columns"],
)
def test_functions_that_are_none_of_rows_are_refused(stored, function, message):
    with pytest.raises(InvalidBagsError, match=message):
        _ = stored.map_instances(function, lazy=True).instances


def test_a_limit_below_one_chunk_is_refused(stored):
    lazy = stored.map_instances(double, lazy=True)
    largest = BagSource(lazy).chunk_bytes
    assert largest == 2 * BagSource(stored).chunk_bytes  # what is read, and what is made of it
    with pytest.raises(MemoryLimitError, match="too little"):
        BagSource(lazy, max_memory=largest - 1).reduce(lambda chunk: 0)
    assert BagSource(lazy, max_memory=largest).reduce(lambda chunk: len(chunk.bags)) == N_BAGS


@pytest.mark.parametrize("max_memory", [None, "30MB"])
def test_a_file_that_changed_is_refused(plain, tmp_path, max_memory):
    plain[:20].write(tmp_path / "short.bags")
    lazy = Bags.open(tmp_path / "short.bags").map_instances(double, lazy=True)
    source = BagSource(lazy, max_memory=max_memory)
    with (tmp_path / "short.bags" / "instances.npy").open("ab") as file:
        file.write(b"more")
    with pytest.raises(BagFileError, match="changed"):
        source.reduce(lambda chunk: chunk.instances.sum())


@pytest.mark.parametrize("max_memory", [None, "1MB"])
def test_what_narrow_rows_are_made_of_is_read_in_parts(tmp_path, monkeypatch, max_memory):
    """Rows of two numbers are made of rows of 200: a chunk of them is not read at once."""
    monkeypatch.setattr("bagwise.bags._matrix._CHUNK_BYTES", 2**15)
    X = np.random.default_rng(0).normal(size=(2000, 200))
    Bags(X, np.arange(0, 2001, 5)).write(tmp_path / "wide.bags")
    count = Counter(lambda rows: rows[:, :2] + 1.0)
    order = np.random.default_rng(1).permutation(400)
    lazy = Bags.open(tmp_path / "wide.bags").map_instances(count, lazy=True)[order]
    count.lengths.clear()
    source = BagSource(lazy, max_memory=max_memory)
    assert source.n_chunks == 1
    made = source.concatenate(lambda chunk: chunk.instances)
    assert max(count.lengths) <= 2**15 / 1600 + 5
    expected = X[(5 * order[:, None] + np.arange(5)).ravel(), :2] + 1.0
    np.testing.assert_array_equal(made, expected)
    assert source.chunk_bytes < 2000 * 16 + 2**15 + 5 * 1600
