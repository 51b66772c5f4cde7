"""Files that get shorter while their maps are read: an error, where the process would end."""

import platform
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from bags.naive import full_bags
from bagwise.bags import Bags

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="elsewhere the process ends, or the file cannot be cut",
)

BEGIN = """
import ctypes, faulthandler, os, sys
import numpy as np
from bagwise.bags import Bags, BagSource, segment_max, unchanged_files
from bagwise.bags._lost_pages import _Action, _sigaction
from bagwise.exceptions import BagFileError

def answer():
    now = _Action()
    _sigaction(None, ctypes.byref(now))
    return now.handler

def cut(bags, size=4096):
    for name in ("instances", "data", "indices"):
        path = sys.argv[1] + f"/{name}.npy"
        if os.path.exists(path):
            os.truncate(path, size)

def refused(function, *arguments):
    try:
        function(*arguments)
    except BagFileError as error:
        return "which has changed since. Open it anew." in str(error)
    return False

bags = Bags.open(sys.argv[1])
before = answer()
"""


def run(path, code):
    command = [sys.executable, "-c", BEGIN + code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(params=["dense", "csr"])
def store(tmp_path, request):
    """Return a store of several pages."""
    layout = scipy.sparse.csr_array if request.param == "csr" else None
    bags = full_bags(sizes=[200] * 20, layout=layout)
    bags.write(tmp_path / "x.bags")
    return tmp_path / "x.bags"


READ = """
def read(bags):
    with unchanged_files(bags):
        assert answer() != before
        cut(bags)
        values = bags.instances.data if bags.is_sparse else bags.instances
        print("sum", float(np.asarray(values).sum()) != 0.0, float(np.asarray(values)[-1].sum()))
"""


def test_without_it_the_process_ends(store):
    """Else the tests below would say nothing."""
    done = run(store, "cut(bags); print(float(np.asarray(bags.instances.data).sum()))")
    assert done.returncode == -signal.SIGBUS


def test_pages_that_were_lost_are_zeros_and_an_error_follows(store):
    done = run(store, READ + "print(refused(read, bags), answer() == before)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["sum", "True", "0.0", "True", "True"]


def test_what_was_there_before_is_put_back(store):
    """A fault elsewhere goes where it went before, also while maps are watched."""
    code = """
faulthandler.enable()
other = np.memmap(sys.argv[1] + "/offsets.npy", np.uint8, "r")
before = answer()
with unchanged_files(bags):
    assert answer() != before
assert answer() == before
os.truncate(sys.argv[1] + "/offsets.npy", 0)
with unchanged_files(bags):
    print("reads", flush=True)
    other.sum()
"""
    done = run(store, code)
    assert done.returncode == -signal.SIGBUS
    assert done.stdout.split() == ["reads"]
    assert "Fatal Python error: Bus error" in done.stderr


def test_a_map_with_lost_pages_is_refused_though_its_file_comes_back(store):
    """Size and time of the file are what they were, its content too, but the map is not."""
    code = (
        READ
        + """
import shutil
names = [n for n in os.listdir(sys.argv[1]) if n.endswith(".npy")]
kept = {n: (open(f"{sys.argv[1]}/{n}", "rb").read(), os.stat(f"{sys.argv[1]}/{n}")) for n in names}
def cut_and_come_back(bags):
    with unchanged_files(bags):
        cut(bags)
        values = np.asarray(bags.instances.data if bags.is_sparse else bags.instances)
        float(values.sum())
        for n, (content, stat) in kept.items():
            with open(f"{sys.argv[1]}/{n}", "r+b") as file:
                file.write(content)
            os.utime(f"{sys.argv[1]}/{n}", ns=(stat.st_atime_ns, stat.st_mtime_ns))
print(refused(cut_and_come_back, bags))
print(refused(lambda: list(BagSource(bags).map(len))))
fresh = Bags.open(sys.argv[1])
print(BagSource(fresh).reduce(lambda chunk: len(chunk.bags)))
"""
    )
    done = run(store, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", "20"]


def test_several_at_once_and_one_inside_another(store):
    """What is watched for one is watched until all are done, and errors inside give way."""
    code = """
from threading import Barrier, Thread
barrier, said = Barrier(3), []
def read():
    with unchanged_files(bags):
        with unchanged_files(bags[::2]):
            barrier.wait()
        barrier.wait()  # the file is cut after it
        barrier.wait()
        values = bags.instances.data if bags.is_sparse else bags.instances
        raise ValueError(float(np.asarray(values).sum()))
threads = [Thread(target=lambda: said.append(refused(read))) for _ in range(2)]
for thread in threads:
    thread.start()
barrier.wait()
barrier.wait()
cut(bags)
barrier.wait()
for thread in threads:
    thread.join()
print(*said, answer() == before)
"""
    done = run(store, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", "True"]


@pytest.mark.parametrize("what", ["fit", "predict", "pass"])
def test_a_store_that_is_cut_under_work_in_compiled_loops(store, what):
    """The file is cut by the reading of a chunk, or where an estimator begins to learn."""
    code = f"""
from bagwise.svm import LabelMeanSVM
y = np.arange(20) % 2
if {what!r} == "pass":
    source = BagSource(bags)
    def read(chunk):
        cut(bags)
        return np.asarray(chunk.instances.sum(axis=0))
    print(refused(source.reduce, read), "")
else:
    model = LabelMeanSVM(kernel="linear").fit(Bags(np.asarray(bags.instances.toarray()
        if bags.is_sparse else bags.instances), bags.offsets), y)
    method = "_learn" if {what!r} == "fit" else "_bag_outputs"
    once = getattr(LabelMeanSVM, method)
    def cut_first(self, *arguments):
        cut(bags)
        return once(self, *arguments)
    setattr(LabelMeanSVM, method, cut_first)
    work = (lambda: LabelMeanSVM(kernel="linear").fit(bags, y)) if {what!r} == "fit" else (
        lambda: model.predict(bags))
    print(refused(work), "")
print(answer() == before)
"""
    done = run(store, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]


def test_bags_in_memory_watch_nothing(monkeypatch):
    from bagwise.bags import _lost_pages, unchanged_files

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(_lost_pages._watch, "add", refuse)
    with unchanged_files(Bags(np.ones((3, 2)), [0, 1, 3])):
        pass
