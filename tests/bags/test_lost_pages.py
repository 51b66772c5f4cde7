"""Files that get shorter while their maps are read: an error, where the process would end."""

import os
import platform
import signal
import subprocess
import sys
from collections import deque

import numba
import pytest
import scipy.sparse

from bags.naive import full_bags
from bagwise.bags import Bags, _lost_pages, unchanged_files

pytestmark = pytest.mark.skipif(
    sys.platform != "linux"
    or platform.machine() not in ("x86_64", "aarch64")
    or bool(numba.config.DISABLE_JIT),
    reason="elsewhere the process ends, or the file cannot be cut",
)

BEGIN = """
import faulthandler, gc, os, pickle, shutil, signal, sys
import numpy as np
from bagwise.bags import Bags, BagSource, unchanged_files
from bagwise.bags._lost_pages import _watch
from bagwise.exceptions import BagFileError

def cut(bags, size=4096):
    for name in ("instances", "data", "indices"):
        path = sys.argv[1] + f"/{name}.npy"
        if os.path.exists(path):
            os.truncate(path, size)

def values(bags):
    return np.asarray(bags._base.data if bags.is_sparse else bags._base)

def refused(function, *arguments):
    try:
        function(*arguments)
    except BagFileError as error:
        return "which has changed since" in str(error) and "Open it anew." in str(error)
    return False

def cut_and_read(bags):
    with unchanged_files(bags):
        cut(bags)
        return float(values(bags).sum())

def fault_elsewhere():
    path = sys.argv[1] + "/other"
    np.ones(10_000).tofile(path)
    other = np.memmap(path, float, "r")
    os.truncate(path, 0)
    print("reads", flush=True)
    other.sum()

bags = Bags.open(sys.argv[1])
"""


def run(path, code, *options):
    command = [sys.executable, *options, "-c", BEGIN + code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def said(path, code, *options):
    done = run(path, code, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(params=["dense", "csr"])
def store(tmp_path, request):
    """Return a store of several pages."""
    layout = scipy.sparse.csr_array if request.param == "csr" else None
    full_bags(sizes=[200] * 20, layout=layout).write(tmp_path / "x.bags")
    return tmp_path / "x.bags"


@pytest.fixture
def dense_store(tmp_path):
    full_bags(sizes=[200] * 20).write(tmp_path / "x.bags")
    return tmp_path / "x.bags"


def test_without_it_the_process_ends(store):
    """Else the tests below would say nothing."""
    done = run(store, "cut(bags); print(values(bags).sum())")
    assert done.returncode == -signal.SIGBUS


def test_pages_that_were_lost_are_zeros_and_an_error_follows(store):
    code = """
def read(bags):
    with unchanged_files(bags):
        cut(bags)
        print(values(bags).sum() != 0.0, values(bags)[-1].sum())
print(refused(read, bags))
"""
    assert said(store, code) == ["True", "0.0", "True"]


@pytest.mark.parametrize("what", ["fit", "predict"])
def test_a_store_that_is_cut_under_work_in_compiled_loops(store, what):
    """The file is cut where an estimator begins to learn, or to score."""
    code = f"""
from bagwise.svm import LabelMeanSVM
y = np.arange(20) % 2
model = LabelMeanSVM(kernel="linear").fit(bags.compact(), y)
known = vars(model).copy()
method = "_learn" if {what!r} == "fit" else "_bag_outputs"
once = getattr(LabelMeanSVM, method)
def cut_first(self, *arguments):
    cut(bags)
    return once(self, *arguments)
setattr(LabelMeanSVM, method, cut_first)
fresh = LabelMeanSVM(kernel="linear")
print(refused(fresh.fit, bags, y) if {what!r} == "fit" else refused(model.predict, bags))
print(sorted(vars(fresh)) == sorted(fresh.get_params()), vars(model) == known)
"""
    assert said(store, code) == ["True", "True", "True"]


# ------------------------------------------------------------------ what was lost stays lost


AFTERWARDS = {
    "it is as it was": "",
    "restored": """
for name, (content, stat) in kept.items():
    with open(name, "r+b") as file:
        file.write(content)
    os.utime(name, ns=(stat.st_atime_ns, stat.st_mtime_ns))
""",
    "replaced": "copy.write(sys.argv[1], overwrite=True)",
    "deleted": "shutil.rmtree(sys.argv[1])",
}


@pytest.mark.parametrize("then", AFTERWARDS)
def test_a_map_with_lost_pages_is_refused_whatever_its_file_is(store, then):
    code = f"""
folder = sys.argv[1]
names = [f"{{folder}}/{{name}}" for name in os.listdir(folder)]
kept = {{name: (open(name, "rb").read(), os.stat(name)) for name in names}}
copy, bag = bags.compact(), bags[3:5]
print(refused(cut_and_read, bags))
{AFTERWARDS[then]}
print(refused(cut_and_read, bags), refused(lambda: list(BagSource(bags).map(len))))
for work in (
    lambda: bags.instances, lambda: bags[2], lambda: list(bags), bags.compact,
    lambda: bags.segments, lambda: bag.instances, lambda: bags.take_instances(np.array([3])),
    lambda: pickle.dumps(bags), lambda: pickle.dumps(bag),
    lambda: bags.map_instances(np.negative),
):
    print(refused(work))
"""
    assert said(store, code) == ["True"] * 13


def test_zeros_are_locked_away(store):
    """Who still holds the array, as some models do, does not take them for values."""
    done = run(
        store, "held = values(bags); print(refused(cut_and_read, bags), flush=True); held.sum()"
    )
    assert done.stdout.split() == ["True"]
    assert done.returncode == -signal.SIGSEGV


def test_they_are_not_while_others_read(store):
    code = """
with unchanged_files(bags[::2]):
    print(refused(cut_and_read, bags), values(bags)[-1].sum(), flush=True)
"""
    done = run(store, code)
    assert done.stdout.split() == ["True", "0.0"]
    assert done.returncode == 1  # the outer block is told, too
    assert "BagFileError" in done.stderr


def test_maps_that_nobody_watches_any_more_are_not_answered_for(dense_store):
    """Zeros that nobody is told of would be worse than the end."""
    code = """
with unchanged_files(bags):
    pass
print(len(_watch.free), _watch.table[:-1].any(), len(_watch.maps))
cut(bags)
print(values(bags).sum())
"""
    done = run(dense_store, code)
    assert done.returncode == -signal.SIGBUS
    assert done.stdout.split() == ["256", "False", "0"]


def test_a_file_cut_inside_of_a_page_and_replaced_is_refused(dense_store):
    """No page is lost then, and the name leads to another file."""
    code = """
copy, n = bags.compact(), os.path.getsize(sys.argv[1] + "/instances.npy")
cut(bags, n - 8)
copy.write(sys.argv[1], overwrite=True)
print(refused(lambda: unchanged_files(bags).__enter__()))
"""
    assert said(dense_store, code) == ["True"]


def test_who_comes_while_the_last_reader_leaves_is_refused(dense_store):
    code = """
from bagwise.bags import _files
once = _files.watched
def later(maps):
    refused(cut_and_read, other)  # after the first look at these bags
    _files.watched = once
    return once(maps)
other = bags[::2]
_files.watched = lambda maps: (setattr(_files, "watched", once), later(maps))[1]
print(refused(lambda: unchanged_files(bags).__enter__()))
"""
    assert said(dense_store, code) == ["True"]


# ------------------------------------------------------------------------- faults elsewhere


@pytest.mark.parametrize("before", ["nothing", "faulthandler"])
@pytest.mark.parametrize("inside", [False, True])
def test_faults_elsewhere_go_where_they_went_before(dense_store, before, inside):
    code = """
if inside:
    with unchanged_files(bags):
        fault_elsewhere()
for _ in range(2):
    with unchanged_files(bags):
        pass
fault_elsewhere()
"""
    options = ["-X", "faulthandler"] if before == "faulthandler" else []
    done = run(dense_store, f"inside = {inside}\n{code}", *options)
    assert done.returncode == -signal.SIGBUS
    assert done.stdout.split() == ["reads"]
    told = "Fatal Python error: Bus error" in done.stderr
    assert told == (before == "faulthandler")


@pytest.mark.parametrize(
    "changes",
    [
        "faulthandler.enable()",
        "faulthandler.enable(); faulthandler.disable()",
        "signal.signal(signal.SIGBUS, signal.SIG_DFL)",
    ],
)
def test_somebody_who_comes_after_us_makes_no_endless_loop(dense_store, changes):
    """Handlers that put back what they found find ours."""
    code = f"""
with unchanged_files(bags):
    {changes}
with unchanged_files(bags):
    pass
print(refused(cut_and_read, bags))
fault_elsewhere()
"""
    done = run(dense_store, code)
    assert done.stdout.split() == ["True", "reads"]
    assert done.returncode == -signal.SIGBUS
    assert done.stderr.count("Fatal Python error") <= 1


def test_a_signal_that_is_sent_is_no_fault(dense_store):
    code = "with unchanged_files(bags): os.kill(os.getpid(), signal.SIGBUS)"
    assert run(dense_store, code).returncode == -signal.SIGBUS


# ------------------------------------------------------------------------- several at once


def test_several_at_once_and_one_inside_another(store):
    """Errors inside give way."""
    code = """
from threading import Barrier, Thread
barrier, said = Barrier(3), []
def read():
    with unchanged_files(bags):
        with unchanged_files(bags[::2]):
            barrier.wait()
        barrier.wait()  # the file is cut after it
        barrier.wait()
        raise ValueError(float(values(bags).sum()))
threads = [Thread(target=lambda: said.append(refused(read))) for _ in range(2)]
for thread in threads:
    thread.start()
barrier.wait()
barrier.wait()
cut(bags)
barrier.wait()
for thread in threads:
    thread.join()
print(*said)
"""
    assert said(store, code) == ["True", "True"]


def test_a_process_may_be_forked_meanwhile(dense_store):
    code = """
from threading import Thread
stop = False
def enter():
    while not stop:
        with unchanged_files(bags):
            pass
with unchanged_files(bags):
    pass  # the first one loads a compiler
thread = Thread(target=enter)
thread.start()
codes = []
for _ in range(20):
    child = os.fork()
    if not child:
        with unchanged_files(bags):
            pass
        os._exit(7)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop = True
thread.join()
print(set(codes))
"""
    assert said(dense_store, code) == ["{7}"]


def test_more_maps_than_rows(dense_store, monkeypatch):
    """The rest are read as if nothing were watched."""
    bags, watch = Bags.open(dense_store), _lost_pages._watch
    monkeypatch.setattr(watch, "free", deque([0]))
    with unchanged_files(bags), unchanged_files(bags[::2]):
        assert not watch.free
        assert len(watch.maps) == 1
    assert list(watch.free) == [0]
    assert not watch.maps


def test_bags_in_memory_are_not_watched(dense_store):
    watch = _lost_pages._watch
    mapped = Bags.open(dense_store)
    with unchanged_files(mapped):
        assert len(watch.maps) == 1
    with unchanged_files(mapped.compact()):
        assert not watch.maps


def test_interpreted_code_watches_nothing(dense_store):
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    code = "with unchanged_files(bags): print(_watch.answer, values(bags).sum() != 0.0)"
    command = [sys.executable, "-c", BEGIN + code, str(dense_store)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    assert done.stdout.split() == ["None", "True"]
