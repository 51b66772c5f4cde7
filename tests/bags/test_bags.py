"""The container: selection, what follows a selection, copies, conversion, representation."""

import copy
import pickle
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from bags.naive import ALIGNED, address, assert_same_bags, dense, full_bags, sizes_lists
from bagwise import Bags
from bagwise.exceptions import InvalidBagsError

LAYOUTS = [None, sparse.csr_array]


@pytest.fixture(params=LAYOUTS, ids=["dense", "csr"])
def bags(request):
    return full_bags(layout=request.param)


# ----------------------------------------------------------------------------------- shape


def test_shape(bags):
    assert len(bags) == bags.n_bags == 4
    assert bags.shape == (4, 3)
    assert bags.ndim == 2
    assert bags.n_instances == 10
    assert bags.n_features == 3
    assert bags.sizes.tolist() == [3, 1, 4, 2]
    assert bags.offsets.tolist() == [0, 3, 4, 8, 10]
    assert bags.instances.shape == (10, 3)


def test_attributes_cannot_be_set(bags):
    for name in [*ALIGNED, "instances", "offsets", "sizes", "shape", "dtype", "anything"]:
        with pytest.raises(AttributeError):
            setattr(bags, name, None)


def arrays_of(bags):
    yield from (bags.sizes, bags.offsets)
    yield from (getattr(bags, name) for name in ALIGNED)
    for matrix in [bags.instances, *bags]:
        yield from [matrix] if isinstance(matrix, np.ndarray) else [
            matrix.data, matrix.indices, matrix.indptr,
        ]  # fmt: skip


@pytest.mark.parametrize("key", [np.s_[:], np.s_[1:3], [2, 0], [True, False, True, True]])
def test_arrays_handed_out_are_read_only(bags, key):
    selected = bags[key]
    joined = Bags.concatenate([selected, selected])
    mapped = selected.map_instances(lambda X: X * 2, feature_names=["a", "b", "c"])
    for made in (selected, selected.compact(), copy.deepcopy(selected), joined, mapped):
        for array in arrays_of(made):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = array


# ------------------------------------------------------------------------------- selection


@pytest.mark.parametrize("i", [0, 3, -1, -4, np.int32(2), np.uint8(1)])
def test_int_gives_a_view_of_the_matrix(bags, i):
    begin, end = bags.offsets[:-1][i], bags.offsets[1:][i]
    np.testing.assert_array_equal(dense(bags[i]), dense(bags.instances)[begin:end])
    assert dense(bags[i]).dtype == bags.dtype
    values, base = (bags[i], bags.instances) if not bags.is_sparse else (
        bags[i].data, bags.instances.data,
    )  # fmt: skip
    assert not values.size or np.shares_memory(values, base)


@pytest.mark.parametrize("i", [4, -5, np.int64(99)])
def test_bag_that_does_not_exist(bags, i):
    with pytest.raises(IndexError, match=f"Bag {i} does not exist: there are 4 bags"):
        bags[i]
    with pytest.raises(IndexError, match=f"Bag {i} does not exist"):
        bags[[0, i]]


KEYS = [
    slice(None), slice(1, 3), slice(None, None, -1), slice(0, 0), slice(-2, None), slice(0, 99, 2),
    [0], [2, 0], [1, 1, 1], [-1, 0], [], (), np.array([3, 2, 1]), np.array([0, 1], dtype=np.uint8),
    [True, False, False, True], np.zeros(4, dtype=bool), np.array([], dtype=np.int64),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("as_sklearn_asks", [False, True])
def test_selection_and_what_follows_it(bags, key, as_sklearn_asks):
    places = np.arange(4)[np.array(key, dtype=int) if isinstance(key, list) and not key else key]
    is_tuple = isinstance(key, tuple)
    selected = bags[key, ...] if as_sklearn_asks and not is_tuple else bags[key]
    rows = np.concatenate([np.arange(10)[a:b] for a, b in ranges(bags, places)] or [[]]).astype(int)
    assert isinstance(selected, Bags)
    assert len(selected) == len(places)
    assert selected.shape == (len(places), 3)
    np.testing.assert_array_equal(selected.sizes, bags.sizes[places])
    np.testing.assert_array_equal(selected.offsets, np.append(0, np.cumsum(bags.sizes[places])))
    np.testing.assert_array_equal(dense(selected.instances), dense(bags.instances)[rows])
    np.testing.assert_array_equal(selected.bag_names, bags.bag_names[places])
    np.testing.assert_array_equal(selected.labels, bags.labels[places])
    np.testing.assert_array_equal(selected.instance_names, bags.instance_names[rows])
    np.testing.assert_array_equal(selected.instance_labels, bags.instance_labels[rows])
    np.testing.assert_array_equal(selected.feature_names, bags.feature_names)
    np.testing.assert_array_equal(selected.label_names, bags.label_names)
    for mine, theirs in zip(selected, (bags[int(i)] for i in places), strict=True):
        np.testing.assert_array_equal(dense(mine), dense(theirs))


def ranges(bags, places):
    return [(bags.offsets[i], bags.offsets[i + 1]) for i in places]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([True, False], "mask must have one entry per bag, 4. Got 2"),
        (np.ones(5, dtype=bool), "mask must have one entry per bag, 4. Got 5"),
        ([[0, 1]], r"1-D array of positions. Got shape \(1, 2\)"),
        (np.ones((4, 3), dtype=bool), r"shape \(4, 3\)"),
        ([0.0, 1.0], "dtype float64"),
        (["bag0"], "dtype <U4"),
        (None, "dtype object"),
        (Ellipsis, "dtype object"),
        (1.0, "dtype float64"),
        (True, "dtype bool"),
        ((slice(None), 0), "one axis"),
        ((slice(None), [0, 1]), "one axis"),
        ((0, np.array([0, 1])), "one axis"),
        ((slice(None), slice(1, 2)), "one axis"),
        ((slice(None), None), "one axis"),
    ],
)
def test_keys_that_select_nothing(bags, key, message):
    with pytest.raises(IndexError, match=message):
        bags[key]


def test_whole_second_axis_is_allowed(bags):
    for key in [(slice(1, 3), ...), (slice(1, 3), slice(None)), ([1, 2], ..., slice(None))]:
        assert_same_bags(bags[key], bags[1:3])
    np.testing.assert_array_equal(dense(bags[2, ...]), dense(bags[2]))


@pytest.mark.parametrize(
    ("key", "is_view"),
    [
        (slice(None), True), (slice(1, 3), True), ([1, 2], True), ([3], True),
        ([False, True, True, False], True), ([2, 1], False), ([0, 2], False), ([1, 1], False),
        (slice(None, None, 2), False), (slice(None, None, -1), False),
    ],
)  # fmt: skip
def test_instances_are_a_view_exactly_if_contiguous(key, is_view):
    bags = full_bags()
    assert np.shares_memory(bags[key].instances, bags.instances) is is_view
    assert np.shares_memory(bags[key]._base, bags._base)  # the selection itself never copies
    assert np.shares_memory(bags[key][0], bags.instances)


def test_csr_view_shares_its_values():
    bags = full_bags(layout=sparse.csr_array)
    assert np.shares_memory(bags[1:3].instances.data, bags.instances.data)
    assert np.shares_memory(bags[1:3].instances.indices, bags.instances.indices)
    assert not np.shares_memory(bags[[2, 0]].instances.data, bags.instances.data)


def test_segments_are_rows_of_the_shared_matrix(bags):
    whole, *_ = bags.segments
    matrix, starts, stops = bags[[3, 1]].segments
    assert matrix is whole
    for i, start, stop in zip([3, 1], starts, stops, strict=True):
        np.testing.assert_array_equal(dense(matrix[start:stop]), dense(bags[i]))


def test_selection_of_many_bags_makes_no_copy_of_instances():
    big = Bags(np.zeros((1000, 500)), np.arange(1001))
    shuffled = big[np.random.default_rng(0).permutation(1000)]
    assert shuffled._base is big._base


@given(sizes_lists(), st.data())
def test_nested_selections_equal_one_selection(sizes, data):
    bags = full_bags(sizes=sizes)
    places = np.arange(len(sizes))
    selected = bags
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(
            st.one_of(
                st.lists(st.integers(-len(places), len(places) - 1), min_size=1, max_size=8),
                st.lists(st.booleans(), min_size=len(places), max_size=len(places)),
                st.slices(len(places)),
            )
        )
        places = places[key if isinstance(key, slice) else np.array(key)]
        selected = selected[key]
        if not len(places):
            break
    assert_same_bags(selected, bags[places])


def test_iteration(bags):
    for listed, bag in zip(bags.to_list(), bags, strict=True):
        np.testing.assert_array_equal(dense(listed), dense(bag))
    assert len(list(bags[[3, 1]])) == 2
    assert not bags.is_sparse or all(sparse.issparse(bag) for bag in bags)


# ------------------------------------------------------------------------- copies and joins


@given(sizes_lists(), st.sampled_from(LAYOUTS), st.data())
def test_compact_is_a_copy_of_the_selection(sizes, layout, data):
    bags = full_bags(sizes=sizes, layout=layout)
    selected = bags[data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=8))]
    compact = selected.compact()
    assert_same_bags(compact, selected)
    assert compact._base.shape[0] == selected.n_instances
    if not bags.is_sparse:
        assert not np.shares_memory(compact.instances, bags.instances)


@given(st.lists(sizes_lists(max_bags=4), min_size=1, max_size=4), st.sampled_from(LAYOUTS))
def test_concatenate_then_cut_apart(parts, layout):
    pieces = [full_bags(sizes=sizes, seed=i, layout=layout) for i, sizes in enumerate(parts)]
    joined = Bags.concatenate(pieces)
    assert len(joined) == sum(map(len, pieces))
    first = 0
    for piece in pieces:
        assert_same_bags(joined[first : first + len(piece)], piece)
        first += len(piece)


def test_concatenate_selections():
    bags = full_bags()
    assert_same_bags(Bags.concatenate([bags[[2, 0]], bags[[3, 1]]]), bags[[2, 0, 3, 1]])
    assert_same_bags(Bags.concatenate([bags[:0], bags]), bags)
    assert Bags.concatenate(bags[i : i + 1] for i in range(4)).n_instances == 10


def test_concatenate_keeps_what_all_parts_have():
    bags = full_bags()
    bare = Bags(bags.instances, bags.offsets, feature_names=["u", "v", "w"], labels=bags.labels)
    joined = Bags.concatenate([bags, bare])
    assert joined.bag_names is joined.instance_labels is joined.feature_names is None
    assert joined.label_names is None
    np.testing.assert_array_equal(joined.labels, np.concatenate([bags.labels, bare.labels]))
    assert Bags.concatenate([bare, bare]).feature_names.tolist() == ["u", "v", "w"]


def test_concatenate_mixes_layouts_and_types():
    single, double = full_bags(dtype=np.float32), full_bags()
    assert Bags.concatenate([single, single]).dtype == np.float32
    assert Bags.concatenate([single, double]).dtype == np.float64
    mixed = Bags.concatenate([double, full_bags(layout=sparse.csr_array)])
    assert not mixed.is_sparse


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "at least one"),
        ([full_bags(), full_bags(n_features=2)], r"one number of features. Got \[2, 3\]"),
        ([full_bags(), np.zeros((2, 3))], r"sequence of Bags.*'ndarray'"),
    ],
)
def test_parts_that_cannot_be_joined(parts, message):
    with pytest.raises(InvalidBagsError, match=message):
        Bags.concatenate(parts)


def test_copies(bags):
    for key in [slice(None), [2, 0]]:
        assert_same_bags(copy.copy(bags[key]), bags[key])
        assert_same_bags(copy.deepcopy(bags[key]), bags[key])


# ---------------------------------------------------------------------------- map_instances


def test_map_instances_with_a_transformer():
    bags = full_bags()[[2, 0, 3]]
    scaled = bags.map_instances(StandardScaler().fit(bags.instances))
    np.testing.assert_allclose(scaled.instances.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(scaled.sizes, bags.sizes)
    assert scaled.bag_names.tolist() == bags.bag_names.tolist()
    assert scaled.instance_names.tolist() == bags.instance_names.tolist()
    assert scaled.feature_names is None


def test_map_instances_may_change_width_type_and_layout():
    bags = full_bags()
    wider = bags.map_instances(
        lambda X: np.hstack([X, X]).astype(np.float32), feature_names="abcdef"[:0] or list("abcdef")
    )
    assert (wider.n_features, wider.dtype) == (6, np.float32)
    assert wider.feature_names.tolist() == list("abcdef")
    assert bags.map_instances(sparse.csr_array).is_sparse


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: X[:-1], "one row per instance: 10 were given, 9 came back"),
        (lambda X: X[:, 0], "the transformed instances must be a 2-D matrix"),
        (lambda X: X[:, :0], "at least one feature"),
        (lambda X: X * 1j, "the transformed instances must be real numbers"),
        (lambda X: np.where(np.arange(10)[:, None] == 5, np.nan, X), r"bag 2 \('bag2'\) holds NaN"),
    ],
)
def test_map_instances_refuses_what_is_not_bags(function, message):
    with pytest.raises(InvalidBagsError, match=message):
        full_bags().map_instances(function)
    with pytest.raises(InvalidBagsError, match="feature_names must have 3 entries"):
        full_bags().map_instances(lambda X: X, feature_names=["a"])


def test_map_instances_cannot_write_through():
    bags = full_bags()

    def spoil(X):
        X[:] = 0
        return X

    with pytest.raises(ValueError, match="read-only"):
        bags.map_instances(spoil)


# ------------------------------------------------------------------------ not an array; size


def test_is_no_array(bags):
    for convert in (np.asarray, np.array, lambda b: np.asarray(b, dtype=float)):
        with pytest.raises(TypeError, match="InstanceTransformer"):
            convert(bags)
    with pytest.raises(TypeError, match="InstanceTransformer"):
        StandardScaler().fit(bags)


def test_size_is_the_real_number_of_bytes():
    small, large = full_bags(), Bags(np.zeros((1000, 100)), [0, 1000])
    assert sys.getsizeof(large) > large.instances.nbytes
    assert sys.getsizeof(large) < large.instances.nbytes + 1000
    assert sys.getsizeof(small) < 3000
    csr = sparse.random_array((1000, 100), density=0.1, rng=0, format="csr")
    stored = csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes
    assert stored < sys.getsizeof(Bags(csr, [0, 1000])) < stored + 1000


def test_can_be_weakly_referenced():
    """joblib's Dask backend sends only such arguments once instead of with every task."""
    bags = full_bags()
    assert weakref.ref(bags)() is bags


# ----------------------------------------------------------------------------- representation


def test_repr():
    assert repr(full_bags()) == (
        "Bags(4 bags, 10 instances, 3 features, float64; 1 to 4 instances per bag)"
    )
    assert repr(full_bags((1,), 1, np.float32)) == (
        "Bags(1 bag, 1 instance, 1 feature, float32; 1 instance per bag)"
    )
    assert repr(full_bags((2, 2), layout=sparse.csr_array)) == (
        "Bags(2 bags, 4 instances, 3 features, float64, CSR; 2 instances per bag)"
    )
    assert repr(full_bags()[:0]) == "Bags(0 bags, 0 instances, 3 features, float64; no bags)"


def test_repr_of_a_map(tmp_path):
    full_bags().write(tmp_path / "x.bags")
    bags = Bags.open(tmp_path / "x.bags")
    assert "float64, memory-mapped; 1 to 4" in repr(bags)
    assert "memory-mapped" in bags._repr_html_()


@pytest.mark.parametrize("sizes", [(1,), (2, 2), tuple(range(1, 40)), (1, 5000, 3), (100,) * 500])
def test_html_shows_counts_and_one_bar_for_each_bag_size(sizes):
    html = Bags(np.zeros((sum(sizes), 2)), np.append(0, np.cumsum(sizes)))._repr_html_()
    assert f"{len(sizes):,}" in html
    assert f"{sum(sizes):,}" in html
    counts = [int(title.split(": ")[1].split()[0]) for title in html.split("<title>")[1:]]
    assert sum(counts) == len(sizes)
    assert html.count("<") == html.count(">")
    assert "nan" not in html


def test_html_of_no_bags():
    assert "no bags" in full_bags()[:0]._repr_html_()


def test_html_escapes_names():
    hostile = "<script>alert(1)</script>\"'&"
    bags = Bags(np.zeros((1, 1)), [0, 1], bag_names=[hostile], feature_names=[hostile])
    assert "<script" not in bags._repr_html_()
    assert "&lt;script&gt;" in bags._repr_html_()


def test_describe():
    assert full_bags().describe(2) == "bag 2 ('bag2')"
    assert Bags(np.zeros((1, 1)), [0, 1]).describe(0) == "bag 0"


def test_address_helper_sees_a_copy():
    """The zero-copy tests compare addresses: those of a copy differ."""
    array = np.zeros(3)
    assert address(array.copy()) != address(array)


# ---------------------------------------------------------------------------- classic sets


@pytest.mark.parametrize(
    ("name", "n_bags", "n_instances"), [("musk1", 92, 476), ("fox", 200, 1320)]
)
def test_classic_sets_are_bags(load_set, name, n_bags, n_instances):
    """Counts as published: Dietterich et al. 1997 (Musk1), Andrews et al. 2003 (fox)."""
    arrays = load_set(name)
    bags = Bags(arrays["X"], arrays["offsets"], labels=arrays["y"])
    assert (len(bags), bags.n_instances) == (n_bags, n_instances)


# ------------------------------------------------------------------------------ wholes and parts


def test_a_selection_knows_its_whole():
    whole = Bags(np.arange(12.0).reshape(6, 2), [0, 1, 3, 4, 6])
    assert whole.selection[0] is whole
    np.testing.assert_array_equal(whole.selection[1], np.arange(4))
    mask, unsigned, none = np.array([True, False, True, True]), np.uint8([1, 3]), np.int64([])
    for key in (slice(None, None, -1), [3, -3], mask, unsigned, none, [2, 2], [0]):
        part = whole[key]
        origin, index = part.selection
        assert origin is whole
        np.testing.assert_array_equal(index, np.arange(4)[key])
        again, inner = part[::-1].selection
        assert again is whole
        np.testing.assert_array_equal(inner, index[::-1])
        for bag, place in zip(part, index, strict=True):
            np.testing.assert_array_equal(bag, whole[int(place)])
        with pytest.raises(ValueError, match="read-only"):
            index[...] = 0


def test_copies_are_wholes_of_their_own():
    whole = Bags(np.arange(12.0).reshape(6, 2), [0, 1, 3, 4, 6]).with_shared("work")
    part = whole[[2, 0]]
    copies = [
        part.compact(),
        part.map_instances(np.square),
        Bags.concatenate([part]),
        pickle.loads(pickle.dumps(part)),
        pickle.loads(pickle.dumps(whole)),
        copy.copy(part),
        copy.deepcopy(part),
    ]
    assert part.shared == whole.shared == whole[::2][:1].shared == "work"
    for each in copies:
        assert each.selection[0] is each
        assert each.shared is None


def test_what_is_shared_hangs_on_a_whole_on_the_same_memory():
    plain = Bags(np.arange(12.0).reshape(6, 2), [0, 1, 3, 4, 6], bag_names=list("abcd"))
    for bags in (plain, plain[[3, 1]]):
        own = bags.with_shared("work")
        assert own.selection[0] is own
        assert own.segments[0] is plain.segments[0]
        assert (own.shared, bags.shared) == ("work", None)
        np.testing.assert_array_equal(own.bag_names, bags.bag_names)
        np.testing.assert_array_equal(own.instances, bags.instances)
