"""Bags whose values may be missing."""

import json
import pickle

import numpy as np
import pytest
from scipy import sparse

from bags.naive import assert_same_bags, dense, full_bags
from bagwise import Bags
from bagwise.bags import BagSource, StoreWriter
from bagwise.exceptions import BagFileError, InvalidBagsError

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}


def holes(layout=np.asarray, dtype=np.float64):
    """Return bags of 3, 1, 4 and 2 instances; the third misses two values."""
    X = np.arange(1.0, 31.0).reshape(10, 3).astype(dtype)
    X[5, 1] = X[7, 0] = np.nan
    return Bags(layout(X), [0, 3, 4, 8, 10], bag_names=list("abcd"), allow_nan=True)


@pytest.fixture(params=LAYOUTS)
def bags(request):
    return holes(LAYOUTS[request.param])


def test_missing_values_have_to_be_allowed(bags):
    with pytest.raises(InvalidBagsError, match=r"bag 2 holds NaN.*allow_nan=True.*SimpleImputer"):
        Bags(bags.instances, bags.offsets)
    assert bags.allow_nan
    assert np.argwhere(np.isnan(dense(bags.instances))).tolist() == [[5, 1], [7, 0]]
    assert not Bags([[1.0]], [0, 1]).allow_nan


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_infinity_is_never_allowed(layout, value):
    X = dense(holes().instances).copy()
    X[8, 2] = value  # behind the missing ones
    with pytest.raises(InvalidBagsError, match="bag 3 holds infinity at instance 0, feature 2"):
        Bags(LAYOUTS[layout](X), [0, 3, 4, 8, 10], allow_nan=True)


def test_every_maker_takes_the_flag():
    expected = holes()
    X, sizes = expected.instances, expected.sizes
    names = {"bag_names": list("abcd")}
    parts = np.split(X, expected.offsets[1:-1])
    assert_same_bags(Bags.from_list(parts, allow_nan=True, **names), expected)
    ids = np.repeat(list("abcd"), sizes)
    assert_same_bags(Bags.from_groups(X, ids, allow_nan=True), expected)
    for make in (lambda **a: Bags.from_list(parts, **a), lambda **a: Bags.from_groups(X, ids, **a)):
        with pytest.raises(InvalidBagsError, match="holds NaN"):
            make()
    cube = np.full((2, 2, 1), np.nan)
    assert Bags.from_array(cube, allow_nan=True).allow_nan


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library):
    module = pytest.importorskip(library)
    columns = {"bag": ["a", "a", "b"], "u": [1.0, None, 3.0], "v": [None, 5, 6]}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    found = Bags.from_frame(frame, allow_nan=True)
    np.testing.assert_array_equal(found.instances, [[1, np.nan], [np.nan, 5], [3, 6]])
    with pytest.raises(InvalidBagsError, match=r"bag 0 \('a'\) holds NaN"):
        Bags.from_frame(frame)


def test_arrow_columns():
    pa = pytest.importorskip("pyarrow")
    column = pa.array([[[1.0, None]], [[2.0, 3.0]]], pa.list_(pa.list_(pa.float32(), 2)))
    with pytest.raises(InvalidBagsError, match=r"must not be null: 1 are\. allow_nan=True"):
        Bags.from_arrow(column)
    found = Bags.from_arrow(column, allow_nan=True)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.instances, [[1, np.nan], [2, 3]])


def test_the_flag_travels(bags, tmp_path):
    bags.write(tmp_path / "a.bags")
    copies = {
        "selection": bags[[3, 2]][1:],
        "copy": bags[2:3].compact(),
        "pickle": pickle.loads(pickle.dumps(bags))[2:3],
        "part of a pickle": pickle.loads(pickle.dumps(bags[2:3])),
        "store": Bags.open(tmp_path / "a.bags", verify=True)[2:3],
        "pickled store": pickle.loads(pickle.dumps(Bags.open(tmp_path / "a.bags")))[2:3],
        "concatenation": Bags.concatenate([bags[:1], bags[2:3]])[1:],
        "shared": bags.with_shared(object())[2:3],
        "mapped": bags.map_instances(lambda X: X)[2:3],
    }
    for name, other in copies.items():
        assert other.allow_nan, name
        np.testing.assert_array_equal(dense(other[0]), dense(bags[2]), err_msg=name)
    assert not Bags.concatenate([Bags([[1.0]], [0, 1])]).allow_nan


def test_chunks_keep_the_flag(tmp_path):
    holes().write(tmp_path / "a.bags")
    for limit in (None, "10MB"):
        source = BagSource(Bags.open(tmp_path / "a.bags"), max_memory=limit)
        assert all(source.map(lambda chunk: chunk.bags.allow_nan))
        assert source.reduce(lambda chunk: int(np.isnan(chunk.instances).sum())) == 2


def test_what_is_filled_is_no_longer_marked(bags):
    filled = bags.map_instances(lambda X: np.nan_to_num(dense(X), nan=-1.0))
    assert not filled.allow_nan
    filled.check_finite()
    with pytest.raises(InvalidBagsError, match="holds NaN"):  # only where some were missing before
        filled.map_instances(lambda X: X * np.nan)


def test_dropping_instances(bags):
    found = bags.drop_missing()
    kept = [0, 1, 2, 3, 4, 6, 8, 9]
    np.testing.assert_array_equal(dense(found.instances), dense(bags.instances)[kept])
    assert found.sizes.tolist() == [3, 1, 2, 2]
    assert not found.allow_nan
    some = bags[[2, 0]].map_instances(lambda X: np.where(np.arange(7) < 4, np.nan, 1.0)[:, None])
    assert some.drop_missing().bag_names.tolist() == ["a"]
    full = full_bags()
    assert_same_bags(full.drop_missing(), full)


def test_dropping_all_instances():
    none = Bags([[np.nan]], [0, 1], labels=[1], allow_nan=True).drop_missing()
    assert (len(none), none.n_features, none.labels.tolist()) == (0, 1, [])


def test_check_names_the_bag_of_a_selection(bags):
    bags[:2].check_finite()
    with pytest.raises(InvalidBagsError, match=r"bag 1 \('c'\) holds NaN at instance 1, feature 1"):
        bags[[3, 2]].check_finite()


def test_writer(tmp_path):
    row = np.array([[1.0, np.nan]])
    with pytest.raises(InvalidBagsError, match="holds NaN"), StoreWriter(tmp_path / "a") as writer:
        writer.append(row)
    with StoreWriter(tmp_path / "b", allow_nan=True) as writer:
        writer.append(row)
    assert Bags.open(tmp_path / "b").allow_nan
    with StoreWriter(tmp_path / "c") as writer:
        writer.extend(Bags([[1.0]], [0, 1]))
        writer.extend(Bags([[np.nan]], [0, 1], allow_nan=True))
    assert Bags.open(tmp_path / "c").allow_nan


def test_store_without_the_entry_has_no_missing_values(tmp_path):
    Bags([[1.0]], [0, 1]).write(tmp_path / "a")
    meta = json.loads((tmp_path / "a" / "meta.json").read_text())
    del meta["allow_nan"]
    (tmp_path / "a" / "meta.json").write_text(json.dumps(meta))
    assert not Bags.open(tmp_path / "a").allow_nan
    (tmp_path / "a" / "meta.json").write_text(json.dumps({**meta, "allow_nan": "yes"}))
    with pytest.raises(BagFileError, match="allow_nan in meta"):
        Bags.open(tmp_path / "a")
