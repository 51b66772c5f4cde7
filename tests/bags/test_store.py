"""The store on disk: what is written is what is opened, and it is whole or not there."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bags.naive import ALIGNED, FLOATS, assert_same_bags, full_bags, sizes_lists
from bagwise import Bags
from bagwise.bags import StoreWriter
from bagwise.exceptions import BagFileError, InvalidBagsError

LAYOUTS = [None, sparse.csr_array]


@pytest.fixture
def target(tmp_path):
    return tmp_path / "x.bags"


def left_in(folder):
    """Names in a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


# -------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_round_trip(target, layout, dtype):
    bags = full_bags(dtype=dtype, layout=layout)
    bags.write(target)
    stored = Bags.open(target)
    assert stored.is_memory_mapped
    assert_same_bags(stored, bags)
    assert_same_bags(Bags.open(str(target), verify=True), bags)
    assert left_in(target.parent) == ["x.bags"]


@settings(max_examples=25)
@given(sizes_lists(max_bags=30), st.sampled_from(LAYOUTS), st.data())
def test_round_trip_of_selections(tmp_path_factory, sizes, layout, data):
    folder = tmp_path_factory.mktemp("store")
    bags = full_bags(sizes, layout=layout)
    places = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=20))
    bags[places].write(folder / "one.bags")
    assert_same_bags(Bags.open(folder / "one.bags"), bags[places])
    Bags.open(folder / "one.bags")[::-1].write(folder / "two.bags")
    assert_same_bags(Bags.open(folder / "two.bags"), bags[places][::-1])


def test_bare_bags_and_single_labels(target):
    bags = Bags(np.arange(6.0).reshape(3, 2), [0, 1, 3], labels=["yes", "no"])
    bags.write(target)
    stored = Bags.open(target)
    assert stored.labels.tolist() == ["yes", "no"]
    assert [name for name in ALIGNED if getattr(stored, name) is not None] == ["labels"]


@pytest.mark.parametrize(
    "labels", [np.array([True, False]), np.array([1, -1], np.int8), np.array([0.5, np.nan])]
)
def test_labels_keep_their_type(target, labels):
    Bags(np.zeros((2, 1)), [0, 1, 2], labels=labels).write(target)
    stored = Bags.open(target).labels
    assert stored.dtype == labels.dtype
    np.testing.assert_array_equal(stored, labels)


def test_text_of_all_alphabets(target):
    names = ["", "Straße", "浮世絵", "\U0001f9ec", "a\tb\nc"]
    Bags(np.zeros((5, 1)), np.arange(6), bag_names=names).write(target)
    assert Bags.open(target).bag_names.tolist() == names


def test_labels_in_fortran_order(target):
    labels = np.asfortranarray(np.arange(6).reshape(3, 2))
    Bags(np.zeros((3, 1)), np.arange(4), labels=labels).write(target)
    np.testing.assert_array_equal(Bags.open(target).labels, labels)


def test_sparse_without_a_single_value(target):
    Bags(sparse.csr_array((3, 5)), [0, 1, 3]).write(target)
    assert Bags.open(target).instances.nnz == 0


def test_sparse_with_more_columns_than_int32_counts(target):
    matrix = sparse.csr_array(([1.0, 2.0], ([0, 1], [5, 2**32])), shape=(2, 2**33))
    Bags(matrix, [0, 2]).write(target)
    assert Bags.open(target).instances.indices.tolist() == [5, 2**32]


def test_positions_are_mapped_too(target):
    """scipy would copy positions of two integer types into memory."""
    full_bags([50] * 20, layout=sparse.csr_array).write(target)
    stored = Bags.open(target)
    matrix = stored._base
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    for array in (matrix.data, matrix.indices, matrix.indptr):
        while not isinstance(array, np.memmap):
            array = array.base
            assert array is not None


def test_store_is_readable_with_numpy_alone(target):
    bags = full_bags()
    bags.write(target)
    np.testing.assert_array_equal(np.load(target / "instances.npy"), bags.instances)
    np.testing.assert_array_equal(np.load(target / "offsets.npy"), bags.offsets)
    meta = json.loads((target / "meta.json").read_text())
    assert (meta["n_bags"], meta["n_instances"], meta["n_features"]) == (4, 10, 3)
    assert meta["aligned"] == sorted(ALIGNED)


def test_verify_finds_what_a_foreign_writer_let_in(target):
    full_bags().write(target)
    values = np.load(target / "instances.npy")
    values[5, 1] = np.nan
    np.save(target / "instances.npy", values)
    assert len(Bags.open(target)) == 4
    with pytest.raises(InvalidBagsError, match=r"bag 2 \('bag2'\) holds NaN at instance 1"):
        Bags.open(target, verify=True)


# --------------------------------------------------------------------------------- streaming


@pytest.mark.parametrize("layout", LAYOUTS)
def test_streaming_equals_writing_at_once(target, layout):
    bags = full_bags([5, 1, 9, 2, 2], layout=layout)
    rows = bags.offsets
    with StoreWriter(target) as writer:
        for i, bag in enumerate(bags):
            assert not target.exists()
            writer.append(
                bag, name=bags.bag_names[i], label=bags.labels[i],
                instance_names=bags.instance_names[rows[i] : rows[i + 1]],
                instance_labels=bags.instance_labels[rows[i] : rows[i + 1]],
            )  # fmt: skip
    stored = Bags.open(target)
    for name in ("bag_names", "labels", "instance_names", "instance_labels", "sizes"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(bags, name))
    assert stored.is_sparse == bags.is_sparse
    assert abs(stored.instances - bags.instances).sum() == 0


def test_blocks_dense_and_sparse_mix(target):
    dense, csr = full_bags(), full_bags(layout=sparse.csr_array)
    for parts in ((dense, csr, dense), (csr, dense, csr)):
        with StoreWriter(target, overwrite=True) as writer:
            for part in parts:
                writer.extend(part)
        stored = Bags.open(target)
        assert stored.is_sparse == parts[0].is_sparse
        expected = Bags.concatenate(parts)
        got = stored.instances.toarray() if stored.is_sparse else stored.instances
        np.testing.assert_array_equal(got, expected.instances)
        np.testing.assert_array_equal(stored.bag_names, expected.bag_names)


def test_column_names_are_kept_where_all_agree(target):
    same = full_bags()
    other = Bags(
        same.instances, same.offsets, feature_names=["c", "b", "a"], bag_names=same.bag_names,
        labels=same.labels, instance_names=same.instance_names,
        instance_labels=same.instance_labels, label_names=same.label_names,
    )  # fmt: skip
    for last, kept in ((same, ["f0", "f1", "f2"]), (other, None)):
        with StoreWriter(target, overwrite=True) as writer:
            writer.extend(same)
            writer.extend(last)
        names = Bags.open(target).feature_names
        assert (None if names is None else names.tolist()) == kept
        assert Bags.open(target).label_names.tolist() == ["cat", "dog"]


def test_float32_rows_fit_into_a_float64_store_and_not_the_reverse(target):
    single, double = np.ones((2, 3), np.float32), np.full((1, 3), 1e300)
    with StoreWriter(target) as writer:
        writer.append(double)
        writer.append(single)
    assert Bags.open(target).dtype == np.float64
    with pytest.raises(InvalidBagsError, match="float32: bag 1 is float64"):
        write_bags(target.with_name("y.bags"), [single, double])
    assert left_in(target.parent) == ["x.bags"]


# ----------------------------------------------------------------------------------- refusals


def write_bags(target, matrices, names=None, *, meanwhile=lambda: None, overwrite=False):
    names = names or [None] * len(matrices)
    with StoreWriter(target, overwrite=overwrite) as writer:
        for matrix, name in zip(matrices, names, strict=True):
            writer.append(matrix, name=name)
        meanwhile()


BAD_BAGS = [
    (np.zeros((0, 2)), r"at least one instance; bag 2 \('third'\) has none"),
    (np.full((1, 2), np.nan), r"bag 2 \('third'\) holds NaN at instance 0, feature 0"),
    (
        sparse.csr_array([[0.0, np.inf]]),
        r"bag 2 \('third'\) holds infinity at instance 0, feature 1",
    ),
    (np.zeros((1, 3)), "one number of features: bag 2 has 3, those before it 2"),
    (np.zeros(2), "bag 2 must be a 2-D matrix"),
    ([["a", "b"]], "bag 2 must be real numbers"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_BAGS)
def test_bad_bag_is_named_and_nothing_is_left(target, bad, message):
    with pytest.raises(InvalidBagsError, match=message):
        write_bags(target, [np.ones((2, 2)), np.ones((1, 2)), bad], ["first", "second", "third"])
    assert left_in(target.parent) == []


def test_bags_known_by_halves_are_refused(target):
    with pytest.raises(InvalidBagsError, match="bag_names must be given for all bags or for none"):
        write_bags(target, [np.ones((2, 2))] * 2, ["first", None])
    assert left_in(target.parent) == []


def test_no_bags_are_refused(target):
    with pytest.raises(InvalidBagsError, match="at least one bag"), StoreWriter(target):
        pass
    with pytest.raises(InvalidBagsError, match="at least one bag"):
        full_bags()[:0].write(target)
    assert left_in(target.parent) == []


def test_existing_store_is_kept_unless_told(target):
    full_bags().write(target)
    with pytest.raises(BagFileError, match=r"exists\. Choose another name or pass overwrite=True"):
        full_bags([1]).write(target)
    assert len(Bags.open(target)) == 4
    full_bags([1]).write(target, overwrite=True)
    assert len(Bags.open(target)) == 1
    full_bags().write(target.with_name("new.bags"), overwrite=True)
    assert left_in(target.parent) == ["new.bags", "x.bags"]


def test_store_of_a_later_release_may_be_replaced(target):
    full_bags().write(target)
    meta = json.loads((target / "meta.json").read_text())
    (target / "meta.json").write_text(json.dumps({**meta, "format": 99}))
    with pytest.raises(BagFileError, match="format 99"):
        Bags.open(target)
    full_bags([1]).write(target, overwrite=True)
    assert len(Bags.open(target)) == 1


def test_store_can_be_replaced_by_a_selection_of_itself(target):
    bags = full_bags()
    bags.write(target)
    Bags.open(target)[[2, 0]].write(target, overwrite=True)
    assert_same_bags(Bags.open(target), bags[[2, 0]])


@pytest.mark.parametrize("meta", [None, "{}", '{"kind": "other"}', "[1]", "no json", "x" * 2**21])
def test_folders_of_others_are_left_alone(target, meta):
    target.mkdir()
    (target / "thesis.txt").write_text("years of work")
    if meta is not None:
        (target / "meta.json").write_text(meta)
    with pytest.raises(BagFileError, match="not a store of bags: it is left alone"):
        full_bags().write(target, overwrite=True)
    assert (target / "thesis.txt").read_text() == "years of work"
    assert left_in(target.parent) == ["x.bags"]


def test_files_of_others_are_left_alone(target):
    target.write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(BagFileError, match="exists"):
            full_bags().write(target, overwrite=overwrite)
    target.unlink()
    target.symlink_to("nowhere")
    with pytest.raises(BagFileError, match="exists"):
        full_bags().write(target)
    assert target.is_symlink()


@pytest.mark.parametrize("overwrite", [False, True])
def test_folder_that_appears_meanwhile_is_left_alone(target, overwrite):
    def appear():
        target.mkdir()
        (target / "thesis.txt").write_text("years of work")

    with pytest.raises(BagFileError, match="exists"):
        write_bags(target, [np.ones((2, 2))], meanwhile=appear, overwrite=overwrite)
    assert left_in(target) == ["thesis.txt"]
    assert left_in(target.parent) == ["x.bags"]


def test_two_writers_of_one_name(target):
    with pytest.raises(BagFileError, match="exists"):
        write_bags(target, [np.zeros((1, 1))], meanwhile=lambda: full_bags().write(target))
    assert_same_bags(Bags.open(target), full_bags())


def test_folder_that_cannot_be_made(target):
    with pytest.raises(BagFileError, match="cannot be made"):
        full_bags().write(target / "deeper" / "x.bags")


# --------------------------------------------------------------------------- injected failures

CALLS = {
    "fsync": (os, "fsync"),
    "rename": (Path, "rename"),
    "open": (Path, "open"),
    "mkdir": (Path, "mkdir"),
    "save": (np, "save"),
    "write": (np.lib.format, "write_array_header_1_0"),
    "ascontiguousarray": (np, "ascontiguousarray"),  # each block of rows passes here
}


class Interrupt(BaseException):
    """Like KeyboardInterrupt, but it does not end the test run."""


def fail_at(patch, owner, name, at, error):
    """Let the call number ``at`` of a function fail; return the counter of its calls."""
    function, count = getattr(owner, name), [0]

    def wrapper(*args, **kwargs):
        count[0] += 1
        if count[0] == at:
            raise error
        return function(*args, **kwargs)

    patch.setattr(owner, name, wrapper)
    return count


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), Interrupt()])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("is_there", [False, True])
def test_failure_at_every_call_leaves_what_was_there(
    target, monkeypatch, call, error, layout, is_there
):
    old, new = full_bags(), full_bags([3, 3], seed=1, layout=layout)
    if is_there:
        old.write(target)
    for at in range(1, 100):
        with monkeypatch.context() as patch:
            count = fail_at(patch, *CALLS[call], at, error)
            try:
                new.write(target, overwrite=True)
            except (Interrupt, OSError, BagFileError):
                assert count[0] >= at
        if count[0] < at:
            break
        assert left_in(target.parent) == (["x.bags"] if is_there else [])
        if is_there:
            assert_same_bags(Bags.open(target), old)
    assert at > 1
    assert left_in(target.parent) == ["x.bags"]
    assert_same_bags(Bags.open(target), new)


def test_interrupt_in_the_block_leaves_nothing(target):
    def write():
        with StoreWriter(target) as writer:
            writer.append(np.ones((2, 2)))
            raise Interrupt

    with pytest.raises(Interrupt):
        write()
    assert left_in(target.parent) == []


# ------------------------------------------------------------------------------------ opening


def test_missing_store(target):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Bags.open(target)


def test_opening_reads_no_instances(target, monkeypatch):
    full_bags([400] * 50).write(target)

    def forbidden(*args):
        raise AssertionError

    monkeypatch.setattr("bagwise.bags._build.first_nonfinite", forbidden)
    assert Bags.open(target).n_instances == 20_000


# ------------------------------------------------------------------------- what is known late


@pytest.mark.parametrize("labels", [["u", "v", "w"], [[0, 1], [1, 0], [1, 1]]])
def test_annotate_says_late_what_could_be_said_at_once(target, labels):
    bags = Bags(np.arange(8.0).reshape(4, 2), [0, 1, 3, 4], bag_names=["a", "b", "c"])
    known = {
        "labels": labels,
        "label_names": None if isinstance(labels[0], str) else ["p", "q"],
        "instance_names": list("stuv"),
        "instance_labels": [3, 1, 2, 0],
    }
    with StoreWriter(target) as writer:
        writer.extend(bags[:2])
        writer.extend(bags[2:])
        writer.annotate(**known)
    wanted = Bags(bags.instances, bags.offsets, bag_names=bags.bag_names, **known)
    assert_same_bags(Bags.open(target), wanted)


def test_annotate_replaces_what_was_said(target):
    bags = Bags(np.ones((2, 1)), [0, 1, 2], labels=[[1, 0], [0, 1]], label_names=["p", "q"])
    with StoreWriter(target) as writer:
        writer.extend(bags)
        writer.annotate(labels=[5, 6])
    stored = Bags.open(target)
    assert stored.labels.tolist() == [5, 6]
    assert stored.label_names is None


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"labels": [1]}, "labels must have 2 entries"),
        ({"labels": [1, 2], "label_names": ["p"]}, "label_names must have 0 entries"),
        ({"instance_names": ["s", "t"]}, "instance_names must have 3 entries"),
        ({"instance_labels": [1, 2]}, "instance_labels must have 3 entries"),
    ],
)
def test_annotations_must_fit(target, known, message):
    with StoreWriter(target) as writer:
        writer.extend(Bags(np.ones((3, 1)), [0, 1, 3]))
        with pytest.raises(InvalidBagsError, match=message):
            writer.annotate(**known)
    stored = Bags.open(target)
    assert stored.labels is stored.instance_names is stored.instance_labels is None


def append_after_annotation(target):
    with StoreWriter(target) as writer:
        writer.append(np.ones((1, 1)))
        writer.annotate(labels=[1])
        writer.append(np.ones((1, 1)))


def test_annotations_are_of_all_bags_or_of_none(target):
    with pytest.raises(InvalidBagsError, match="labels must be given for all bags or for none"):
        append_after_annotation(target)
    with pytest.raises(InvalidBagsError, match="at least one bag"), StoreWriter(target) as writer:
        writer.annotate(labels=[])
    assert left_in(target.parent) == []
