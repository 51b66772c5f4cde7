"""Every file that the library writes is whole or not there, after an error and a power cut too."""

import ast
import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import bagwise
from bagwise import Bags
from bagwise.bags import StoreWriter
from bagwise.cli import _demo, main
from bagwise.inspection import write_report
from bagwise.io import open_bags
from bagwise.svm import SIL
from durability import DiskSpy, tree

ROOT = Path(bagwise.__file__).parent
DIGITS = "digits --read n_bags=6"

BAGS = Bags(np.arange(12.0).reshape(6, 2), [0, 2, 3, 6], labels=[0, 1, 1], bag_names=list("abc"))
SPARSE = Bags(sparse.csr_array(BAGS.instances), BAGS.offsets)
MODEL = SIL(kernel="linear").fit(BAGS, BAGS.labels)
TABLE = "bag,y,x\na,0,1\nb,1,2\na,0,3\n"  # a bag in two pieces: spooled before it is packed


def append_bags(path):
    with StoreWriter(path, overwrite=True) as writer:
        for i, bag in enumerate(BAGS):
            writer.append(bag, name=f"bag {i}")


def pack_table(path, text=TABLE):
    source = path.parent / "table.csv"
    source.write_text(text)
    open_bags(source).pack(path, overwrite=True)


def command(line):
    """Return a writer: a command that is told where to write."""

    def run(path):
        model = path.parent / "saved.model"
        if not model.exists():
            data = bagwise.datasets.load_digit_bags(6)
            bagwise.save(SIL(kernel="linear").fit(data.bags, data.y), model)
        words = line.format(model=model, path=path).split()
        code = main([*words, "--overwrite", "--quiet"])  # what is there is of no kind
        if code == 130:
            raise KeyboardInterrupt
        if code:
            raise OSError(code)

    return run


#: For each kind of file: how it is written.
WRITERS = {
    "model": lambda path: bagwise.save(MODEL, path),
    "store": lambda path: BAGS.write(path, overwrite=True),
    "sparse store": lambda path: SPARSE.write(path, overwrite=True),
    "appended store": append_bags,
    "packed table": pack_table,
    "packed bags in order": lambda path: pack_table(path, "bag,y,x\na,0,1\na,0,3\nb,1,2\n"),
    "report": lambda path: write_report(path, MODEL, BAGS, BAGS.labels),
    "fit": command(f"fit {DIGITS} -m SIL -o {{path}}"),
    "predict": command(f"predict {{model}} {DIGITS} -o {{path}}"),
    "explain": command(f"explain {{model}} {DIGITS} --report {{path}}"),
    "cluster": command(f"cluster {DIGITS} -m BagKMeans -k 2 -o {{path}}"),
    "annotate": command(f"annotate {DIGITS} -m SIL -o {{path}}"),
    "pack": command(f"pack {DIGITS} {{path}}"),
    "demo": command("demo -o {path}"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_demo, "METHODS", ("SIL",))
    monkeypatch.setattr(_demo, "COSTS", (1.0,))
    monkeypatch.setattr(_demo, "N_BAGS", 10)
    return tmp_path


def fill(path, kind):
    """Put something of the same kind there, and prepare what the writer needs."""
    WRITERS[kind](path)  # leaves a table or a model beside the target
    if path.is_file():
        path.write_text("old")
        path.chmod(0o666)  # more than the umask leaves


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "replaced"])
@pytest.mark.parametrize("kind", WRITERS)
def test_durable(folder, monkeypatch, kind, is_there):
    path = folder / "target"
    fill(path, kind)
    beside = set(folder.iterdir()) - {path}
    if not is_there:
        path = folder / "another"
    before = tree(path)
    with monkeypatch.context() as patch:
        spy = DiskSpy(patch, folder)
        WRITERS[kind](path)
    spy.check(path)
    assert tree(path) not in (None, b"old")
    assert set(folder.iterdir()) - beside - {folder / "target"} <= {path}
    if is_there and path.is_file():
        assert before == b"old"
        assert os.name == "nt" or path.stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()], ids=["full", "Ctrl-C"]
)
@pytest.mark.parametrize("kind", WRITERS)
def test_failure_before_the_rename_leaves_what_was_there(folder, monkeypatch, kind, error):
    path = folder / "target"
    fill(path, kind)
    with monkeypatch.context() as patch:
        spy = DiskSpy(patch, folder)
        WRITERS[kind](path)
    if path.is_file():
        path.write_text("old")
    before = tree(folder)
    n_steps = len(spy.calls) - spy.calls[::-1].index("rename")  # the last rename is the decision
    assert n_steps >= 2
    for fail_at in range(1, n_steps + 1):
        with monkeypatch.context() as patch:
            failing = DiskSpy(patch, folder, fail_at, error)
            with pytest.raises((OSError, KeyboardInterrupt, bagwise.exceptions.BagwiseError)):
                WRITERS[kind](path)
        assert len(failing.calls) >= fail_at
        assert tree(folder) == before


# ------------------------------------------------------------------------------------ one home

WRITING = {"write_text", "write_bytes", "tofile", "rename", "fsync", "fdopen"}
HOMES = {"_files.py", "bags/_store.py"}
#: A spool, gone when the command ends.
SPOOLS = {("io/_pack.py", "tofile")}


def writes(source):
    """Yield the calls of a module that write or rename files, and their lines."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(ast.Attribute(ast.Name("os"), "replace" | "write" as name)):
                yield name, node.lineno
            case ast.Call(ast.Attribute(_, "open") | ast.Name("open")):
                values = [*node.args, *(keyword.value for keyword in node.keywords)]
                modes = [str(value.value) for value in values if isinstance(value, ast.Constant)]
                if any(re.fullmatch(r"(?=.*[wax+])[rwaxbt+]+", mode) for mode in modes):
                    yield "open", node.lineno
            case ast.Call(ast.Attribute(_, name)) if name in WRITING:
                yield name, node.lineno


def test_files_are_written_in_one_place():
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if file not in HOMES:
            calls = writes(path.read_text(encoding="utf-8"))
            found += [f"{file}:{line}" for name, line in calls if (file, name) not in SPOOLS]
    assert not found, f"written elsewhere than in bagwise._files: {found}"


@pytest.mark.parametrize(
    ("line", "is_seen"),
    [
        ("path.write_text('x')", True),
        ("path.open('wb')", True),
        ("open(path, mode='a', encoding='utf-8')", True),
        ("os.replace(a, b)", True),
        ("temporary.rename(path)", True),
        ("path.open('rb')", False),
        ("text.replace('a', 'b')", False),
        ("replace(record, name='b')", False),
    ],
)
def test_writing_elsewhere_is_seen(line, is_seen):
    assert bool(list(writes(line))) is is_seen
