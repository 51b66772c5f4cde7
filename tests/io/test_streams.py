"""Compressed input: read, cut off, damaged, too large."""

import bz2
import gzip
import lzma
import zipfile

import pytest

from bagwise.io import inspect, read

TEXT = b"bag,label,u,v\na,1,0.5,-1.0\na,1,2.0,3.25\nb,0,0.001,4.0\n"
TEXT += b"c,1,7.0,8.5\nc,1,-9.0,0.0\nc,1,1.5,2.5\n"
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write_zip(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_table(tmp_path, suffix, assert_toy):
    path = tmp_path / f"toy.csv{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT))
    assert_toy(read(path))
    assert inspect(path).compression == {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}[suffix]


@pytest.mark.parametrize("least", [0, 10**9])
def test_compressed_table_by_both_ways(tmp_path, least, monkeypatch, assert_toy):
    monkeypatch.setattr("bagwise.io._csv_quick._LEAST_BYTES", least)
    monkeypatch.setattr("bagwise.io._csv_quick._PIECE_BYTES", 20)
    path = tmp_path / "toy.csv.gz"
    path.write_bytes(gzip.compress(TEXT))
    assert_toy(read(path))


@pytest.mark.parametrize("name", ["relational", "flat_arff", "c45", "svmlight"])
def test_other_compressed_text(write, name, assert_toy):
    path = write(name)
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert_toy(read(packed))


def test_zip_with_one_file(tmp_path, assert_toy):
    path = write_zip(tmp_path / "any.zip", **{"folder/toy.csv": TEXT, "__MACOSX/x": b""})
    assert_toy(read(path))
    assert inspect(path).compression == "zip"


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_cut_off(tmp_path, fails, suffix, keep):
    path = tmp_path / f"toy.csv{suffix}"
    packed = PACKERS[suffix](TEXT)
    path.write_bytes(packed[: int(keep * len(packed))])
    assert "data are damaged or cut off" in fails(path)


@pytest.mark.parametrize("suffix", [*PACKERS, ".zip"])
def test_not_compressed_at_all(tmp_path, fails, suffix):
    path = tmp_path / f"toy.csv{suffix}"
    path.write_bytes(TEXT)
    assert "damaged or cut off" in fails(path)


def test_empty_archives(tmp_path, fails):
    (tmp_path / "toy.csv.gz").write_bytes(gzip.compress(b""))
    assert "the file is empty" in fails(tmp_path / "toy.csv.gz")
    assert "it has 0 (none)" in fails(write_zip(tmp_path / "none.zip"))


def test_zip_with_several_files(tmp_path, fails):
    path = write_zip(tmp_path / "two.zip", **{"a.csv": TEXT, "b.csv": TEXT})
    assert "it has 2 (a.csv, b.csv)" in fails(path)


@pytest.mark.parametrize(
    "name", ["../../toy.csv", "/etc/toy.csv", "a/../../toy.csv", "C:\\toy.csv"]
)
def test_zip_member_that_leads_out(tmp_path, fails, name):
    path = write_zip(tmp_path / "bad.zip", **{name: TEXT})
    assert "leads out of the archive" in fails(path)


def test_zip_with_password(tmp_path, fails):
    path = write_zip(tmp_path / "toy.zip", **{"toy.csv": TEXT})
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + flags] |= 1
    path.write_bytes(data)
    assert "encrypted" in fails(path)


@pytest.mark.parametrize("suffix", PACKERS)
def test_bomb(tmp_path, fails, suffix):
    path = tmp_path / f"bomb.csv{suffix}"
    path.write_bytes(PACKERS[suffix](b"bag,x\n" + b"a,0\n" * 500_000))
    message = fails(path, max_bytes=100_000)
    assert "bomb.csv" in message
    assert "100,000 are allowed" in message
    assert "max_bytes" in message


def test_bomb_is_stopped_without_being_asked(tmp_path, fails, monkeypatch):
    monkeypatch.setattr("bagwise.io._streams._FREE_BYTES", 10_000)
    path = tmp_path / "bomb.csv.bz2"
    path.write_bytes(bz2.compress(b"bag,x\n" + b"a,0\n" * 500_000))
    assert "allow more with max_bytes" in fails(path)
    assert read(path, max_bytes=10**9).n_instances == 500_000


def test_rows_larger_than_the_limit(tmp_path, fails):
    path = tmp_path / "t.csv"
    path.write_text("bag,x\n" + "a,0\n" * 1000)
    assert "the features would take 8,000 bytes" in fails(path, max_bytes=5000)


def test_binary_formats_are_not_unpacked(write, fails):
    path = write("npz")
    packed = path.with_name("toy.npz.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert "npz inside gzip is not read" in fails(packed)
