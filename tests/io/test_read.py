"""The door: formats found, guesses told, options checked; pack and inspect say the same."""

import logging
import subprocess
import sys

import numpy as np
import pytest

from bagwise import Bags
from bagwise.exceptions import BagFileError
from bagwise.io import READ_OPTIONS, inspect, open_bags, pack, read
from bagwise.io._registry import FORMATS

NAMELESS = {"mat", "mat_compressed"}


def test_read_gives_the_toy_bags(sample, assert_toy):
    name, path = sample
    assert_toy(read(path), named=name not in NAMELESS)


def test_bags_read_is_the_same_door(write, assert_toy):
    assert_toy(Bags.read(write("csv")))


def test_pack_gives_what_read_gives(sample, tmp_path, assert_same):
    _, path = sample
    packed = pack(path, tmp_path / "packed.bags")
    assert packed.is_memory_mapped
    assert_same(packed, read(path))


def test_inspect_counts_what_read_gives(sample):
    name, path = sample
    found, bags = inspect(path), read(path)
    assert (found.n_bags, found.n_instances, found.n_features) == (3, 6, 2)
    assert (found.smallest_bag, found.median_bag, found.largest_bag) == (1, 2.0, 3)
    assert found.label_counts == {"0": 1, "1": 2}
    assert found.dtype == str(bags.dtype)
    assert found.is_sparse == bags.is_sparse
    assert found.has_bag_names == (name not in NAMELESS)
    assert found.has_instance_names == (bags.instance_names is not None)
    assert found.n_bytes > 0
    assert found.to_dict()["guessed"] == found.guessed


def test_guesses_are_logged_once_and_shown(write, caplog):
    path = write("csv")
    with caplog.at_level(logging.INFO, logger="bagwise"):
        read(path)
    (record,) = caplog.records
    assert "bag: column 'bag'" in record.getMessage()
    assert "separator: ," in record.getMessage()
    guessed = inspect(path).guessed
    assert guessed["label"] == "column 'label'"
    assert guessed["format"] == "csv (the suffix .csv)"


def test_what_is_said_is_not_a_guess(write):
    path = write("csv")
    guessed = inspect(path, format="csv", bag="bag", label="label", separator=",").guessed
    assert guessed == {}


def test_missing_path(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv does not exist"):
        read(tmp_path / "nothing.csv")


def test_unknown_suffix_lists_the_formats(tmp_path, fails):
    path = tmp_path / "data.xyz"
    path.write_text("what is this")
    message = fails(path)
    assert "'.xyz'" in message
    for name in FORMATS:
        assert name in message


@pytest.mark.parametrize("name", ["parquet", "arrow", "npz", "relational", "svmlight", "mat"])
def test_content_tells_the_format_of_an_unknown_suffix(write, name, assert_toy):
    path = write(name)
    renamed = path.rename(path.with_suffix(".unknown"))
    assert_toy(read(renamed), named=name not in NAMELESS)


def test_format_can_be_said(write, assert_toy):
    path = write("csv")
    assert_toy(read(path.rename(path.with_suffix(".txt")), format="csv"))


def test_unknown_format():
    with pytest.raises(ValueError, match="format must be one of csv, parquet"):
        read(__file__, format="exel")


def test_unknown_option(write):
    with pytest.raises(TypeError, match="no option 'bags'"):
        read(write("csv"), bags="bag")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("csv", {"preset": "clam"}, "format csv have no option 'preset'"),
        ("store", {"label": "y"}, "format store have no option 'label'"),
        ("csv", {"separator": "::"}, "separator must be one character"),
        ("csv", {"label_separator": ""}, "label_separator must be at least one character"),
        ("csv", {"label_separator": 3}, "label_separator must be a string"),
        ("folder", {"on_empty": "drop"}, "on_empty must be 'error' or 'skip'"),
        ("folder", {"preset": "hover"}, "preset must be 'trident'"),
        ("csv", {"max_bytes": 0}, "max_bytes must be at least 1"),
        ("csv", {"encoding": "utf-99"}, "encoding must be one that Python knows"),
    ],
)
def test_wrong_options(write, name, options, message):
    with pytest.raises(ValueError, match=message):
        read(write(name), **options)


def test_format_must_fit_file_or_folder(write, fails):
    assert "this is a file, which the format folder is not" in fails(write("csv"), format="folder")
    assert "this is a folder, which the format csv is not" in fails(write("folder"), format="csv")


def test_unreadable_file(write, fails, monkeypatch):
    path = write("csv")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    assert "Permission denied" in fails(path)


def test_store_that_exists_is_kept(write, tmp_path):
    (tmp_path / "out.bags").mkdir()
    with pytest.raises(BagFileError, match="exists"):
        pack(write("csv"), tmp_path / "out.bags")


def test_pack_of_a_bad_file_leaves_nothing(tmp_path):
    (tmp_path / "bad.csv").write_text("bag,x\na,1\na,2\nb,nothing\n")
    with pytest.raises(BagFileError, match=r"bad\.csv:4"):
        pack(tmp_path / "bad.csv", tmp_path / "out.bags")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_pack_overwrites_when_told(write, tmp_path, assert_toy):
    Bags(np.ones((1, 1)), [0, 1]).write(tmp_path / "out.bags")
    assert_toy(pack(write("csv"), tmp_path / "out.bags", overwrite=True))


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_pack_with_any_size_of_blocks(block, tmp_path, monkeypatch, assert_same):
    monkeypatch.setattr("bagwise.io._cells._BLOCK_ROWS", block)
    monkeypatch.setattr("bagwise.io._pack._PIECE_BYTES", 16)
    together = ["a,1,1", "a,1,2", "a,1,3", "b,0,4", "c,1,5", "c,1,6"]
    mixed = ["b,0,4", "a,1,1", "c,1,5", "a,1,2", "c,1,6", "a,1,3"]
    for i, lines in enumerate((together, mixed)):
        path = tmp_path / f"{i}.csv"
        path.write_text("\n".join(["bag,y,x", *lines]))
        packed = pack(path, tmp_path / f"{i}.bags")
        assert_same(packed, read(path))
        of_bag = dict(zip(packed.bag_names.tolist(), packed, strict=True))
        assert {k: v.ravel().tolist() for k, v in of_bag.items()} == {
            "a": [1, 2, 3], "b": [4], "c": [5, 6],
        }  # fmt: skip
        assert dict(zip(packed.bag_names, packed.labels, strict=True)) == {"a": 1, "b": 0, "c": 1}


def test_import_of_the_door_is_light():
    code = (
        "import sys, bagwise.io; print({'pyarrow', 'h5py', 'pandas', 'torch'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize(("name", "module"), [("parquet", "pyarrow"), ("h5_folder", "h5py")])
def test_missing_package_says_what_to_install(write, name, module, monkeypatch):
    path = write(name)
    for loaded in [m for m in sys.modules if m.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}.*pip install 'bagwise\["):
        read(path)


def test_opened_file_says_what_inspect_says(sample):
    _, path = sample
    file, found = open_bags(path), inspect(path)
    assert (file.format, file.compression, file.n_bytes, file.guessed) == (
        found.format, found.compression, found.n_bytes, found.guessed,
    )  # fmt: skip
    assert str(file.path) == found.path
    assert repr(file) == f"BagFile({str(path)!r}, format={file.format!r})"
    assert file.describe() == found


def test_opened_file_can_be_used_again(sample, tmp_path, assert_same):
    _, path = sample
    file = open_bags(path)
    counts = []
    packed = file.pack(tmp_path / "packed.bags", progress=counts.append)
    assert_same(packed, file.read())
    assert_same(file.read(), read(path))
    assert counts[-1] == 6


def test_progress_counts_rows_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr("bagwise.io._cells._BLOCK_ROWS", 2)
    for name, bags, wanted in [
        ("together", "aabbc", [2, 4, 5]),
        ("mixed", "abcac", [2, 2, 4, 5]),  # the second block brings a again
    ]:
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["bag,x", *(f"{bag},1" for bag in bags)]))
        counts = []
        open_bags(path).pack(tmp_path / f"{name}.bags", progress=counts.append)
        assert counts == wanted


def test_bad_bag_is_named_with_its_file_by_every_method(tmp_path):
    path = tmp_path / "bad.npz"
    np.savez(path, instances=[[1.0], [np.nan]], offsets=[0, 1, 2], bag_names=["a", "b"])
    file = open_bags(path)
    for act in (file.read, file.describe, lambda: file.pack(tmp_path / "out.bags")):
        with pytest.raises(BagFileError, match=r"bad\.npz: .*bag 1 \('b'\) holds NaN"):
            act()
    assert [p.name for p in tmp_path.iterdir()] == ["bad.npz"]


def test_every_option_is_documented():
    text = read.__doc__.partition("Returns")[0]
    names = {
        name.strip()
        for line in text.splitlines()
        if line.startswith("    ") and " : " in line
        for name in line.partition(" : ")[0].split(",")
    }
    assert names == {"path", *READ_OPTIONS}
