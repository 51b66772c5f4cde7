"""Mutated files: read, or refused with the one error; never a hang, never a flood of memory."""

import io
import os
import random
import sys
import time
import warnings
import zipfile

import pytest

from bagwise.exceptions import BagFileError
from bagwise.io import _csv_quick, inspect, read

resource = pytest.importorskip("resource", reason="memory is measured by Unix means")

N_MUTATIONS = min(int(os.environ.get("BAGWISE_FUZZ", "1000")), 20_000)
SECONDS = 20  # of processor time: what no file of a kilobyte may take, on the slowest machine
MEGABYTES = 600

TOKENS = [
    b"", b"0", b"-1", b"1e309", b"nan", b"inf", b'"', b"'", b",", b";", b"\n", b"\r", b"\0", b"{",
    b"}", b"?", b"%", b"#", b"\\", b":", b"qid:", b"@data", b"@attribute x numeric\n", b"@end",
    b"..", b"../", b"9" * 40, b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80",
    b"\xef\xbb\xbf", b"\xc3", b"bag", b"label", b"y", b"a" * 300, b"(1000000000, 1000)", b"|O",
    b"True", b"[" * 200,
]  # fmt: skip

READERS = ["csv", "csv_quick", "parquet", "nested", "arrow", "feather", "npz", "npz_repaired",
           "relational", "flat_arff", "c45", "svmlight", "mat", "mat_compressed", "store", "folder",
           "h5_folder"]  # fmt: skip


def mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 10])):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 2:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 3:
            token = rng.choice(TOKENS)
            data[at : at + len(token)] = token
        elif kind == 4:
            del data[at : at + rng.choice([1, 2, 8, 100])]
        else:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start : start + rng.choice([1, 8, 60])]
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.05 else data)


def mutated_member(data, rng):
    """Damage one array of an archive and make its checksum right."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    victim = rng.choice(sorted(members))
    members[victim] = mutated(members[victim], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def outcome(function, path):
    """Return None if the file is refused as it should be, else what came of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return function(path)
    except BagFileError as error:
        if str(error).startswith(str(path)):
            return None
        raise


@pytest.mark.fuzz
@pytest.mark.parametrize("reader", READERS)
def test_mutations_are_read_or_refused(write, reader, monkeypatch):
    monkeypatch.setenv("BAGWISE_NUM_THREADS", "1")
    if reader == "csv_quick":
        pytest.importorskip("pyarrow")
        monkeypatch.setattr(_csv_quick, "_LEAST_BYTES", 0)
        monkeypatch.setattr(_csv_quick, "_PIECE_BYTES", 30)
    path = write(reader.removesuffix("_quick").removesuffix("_repaired"))
    mutate = mutated_member if reader == "npz_repaired" else mutated
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    contents = {file: file.read_bytes() for file in files}
    rng = random.Random(reader)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    n_read = 0
    for i in range(N_MUTATIONS):
        file = rng.choice(files)
        content = mutate(contents[file], rng)
        file.unlink()  # a store that is still mapped keeps its own file
        file.write_bytes(content)
        start = time.process_time()
        try:
            bags = outcome(read, path)
            if i % 5 == 0:
                found = outcome(inspect, path)
                assert (found is None) == (bags is None)
                assert found is None or found.n_bags == len(bags)
        except Exception as error:
            msg = f"{reader}, mutation {i}: {type(error).__name__}: {error}\n{content[:2000]!r}"
            raise AssertionError(msg) from error
        assert time.process_time() - start < SECONDS, f"{reader}, mutation {i}: {content[:2000]!r}"
        n_read += bags is not None
        file.unlink()
        file.write_bytes(contents[file])
    unit = 2**20 if sys.platform == "darwin" else 2**10
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit
    assert grown < MEGABYTES, f"{reader} took {grown:.0f} MB"
    assert n_read < N_MUTATIONS  # the mutations do damage
