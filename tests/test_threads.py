"""Ordered, bounded, interruptible maps; one BLAS thread each; nothing survives a fork."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections import deque
from concurrent.futures import Future

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bagwise import _threads
from bagwise._threads import (
    Abandoned,
    checkpoint,
    ordered_map,
    short_slices,
    single_blas_thread,
    thread_count,
)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("BAGWISE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def run(code, **environment):
    """Run a script in another process; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ------------------------------------------------------------------------------------- order


@pytest.mark.parametrize("n_threads", [1, 2, 4, None])
@pytest.mark.parametrize("window", [1, 2, 3, 100, None])
def test_results_come_in_the_order_of_the_items(n_threads, window):
    pauses = np.random.default_rng(0).random(40) * 0.003

    def work(i):
        time.sleep(pauses[i])
        return i * i

    got = list(ordered_map(work, range(40), n_threads=n_threads, window=window))
    assert got == [i * i for i in range(40)]


def test_no_items():
    assert list(ordered_map(str, [], n_threads=2)) == []
    assert list(ordered_map(str, [], n_threads=1)) == []


def test_work_runs_in_so_many_threads():
    together = threading.Barrier(3, timeout=30)
    list(ordered_map(lambda _: together.wait(), range(9), n_threads=3))
    names = set(ordered_map(lambda _: threading.get_ident(), range(50), n_threads=2))
    assert threading.get_ident() not in names
    assert len(names) <= 2
    assert set(ordered_map(lambda _: threading.get_ident(), range(3), n_threads=1)) == {
        threading.get_ident()
    }


@pytest.mark.parametrize("window", [1, 2, 5])
def test_window_bounds_what_is_started_and_not_yielded(window):
    lock, started = threading.Lock(), [0]

    def work(_):
        with lock:
            started[0] += 1
        time.sleep(0.001)

    for n_yielded, _ in enumerate(ordered_map(work, range(40), n_threads=2, window=window)):
        time.sleep(0.001)
        assert started[0] - n_yielded <= window


def test_items_are_taken_as_they_are_needed():
    taken = []

    def items():
        for i in range(1000):
            taken.append(i)
            yield i

    results = ordered_map(str, items(), n_threads=2, window=3)
    assert taken == []
    next(results)
    assert len(taken) == 3
    results.close()


# ------------------------------------------------------------------------------------ nesting


def test_maps_inside_a_worker_run_there():
    def inner(_):
        return threading.get_ident()

    def outer(_):
        mine = threading.get_ident()
        nested = set(ordered_map(inner, range(20), n_threads=4))
        return thread_count(), thread_count(8), nested == {mine}

    assert set(ordered_map(outer, range(6), n_threads=2)) == {(1, 1, True)}
    assert thread_count(8) == 8


def test_maps_of_several_threads_do_not_disturb_each_other():
    results = {}

    def consume(key):
        results[key] = list(ordered_map(lambda i: (key, i), range(200), n_threads=2))

    consumers = [threading.Thread(target=consume, args=(key,)) for key in range(6)]
    for consumer in consumers:
        consumer.start()
    for consumer in consumers:
        consumer.join(timeout=60)
    assert results == {key: [(key, i) for i in range(200)] for key in range(6)}
    assert _threads._blas_users == 0


# ------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("error", [ValueError, TimeoutError, KeyboardInterrupt, SystemExit])
def test_errors_propagate_after_the_results_before_them(n_threads, error):
    def work(i):
        if i == 7:
            raise error("as told")
        return i

    got = []

    def consume():
        for result in ordered_map(work, range(100), n_threads=n_threads):
            got.append(result)  # noqa: PERF402

    with pytest.raises(error, match="as told"):
        consume()
    assert got == list(range(7))
    assert list(ordered_map(str, range(3), n_threads=n_threads)) == ["0", "1", "2"]


def test_error_of_the_items_propagates():
    def items():
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(ordered_map(str, items(), n_threads=2))


def test_work_that_ends_just_when_waiting_times_out():
    """The wait gives up, and before anyone looks again the work is done: no error, a result."""

    class Late(Future):
        def result(self, timeout=None):
            if timeout is not None and not self.done():
                self.set_result("in time")
                raise TimeoutError
            return super().result(timeout)

    assert _threads._result(deque([Late()])) == "in time"


def test_long_work_is_waited_for(monkeypatch):
    monkeypatch.setattr(_threads, "_POLL_SECONDS", 0.001)

    def work(i):
        time.sleep(0.03)
        return i

    assert list(ordered_map(work, range(6), n_threads=2)) == list(range(6))


# ------------------------------------------------------------------------------------ giving up


@pytest.mark.parametrize("way", ["close", "error", "del"])
def test_abandoned_work_stops_at_its_checkpoint(way):
    entered, stopped = threading.Event(), []

    def work(i):
        if i == 0:
            return i
        try:
            while True:
                entered.set()
                checkpoint()
                time.sleep(0.001)
        except Abandoned:
            stopped.append(i)
            raise

    results = ordered_map(work, range(1000), n_threads=2, window=8)
    assert next(results) == 0
    assert entered.wait(timeout=30)
    if way == "close":
        results.close()
    elif way == "error":
        with pytest.raises(ZeroDivisionError):
            results.throw(ZeroDivisionError)
    else:
        del results
    assert 1 <= len(stopped) <= 2  # what ran has ended; what waited in the queue was dropped
    assert list(ordered_map(str, range(3), n_threads=2)) == ["0", "1", "2"]
    assert _threads._blas_users == 0


def test_checkpoint_outside_a_map_does_nothing():
    checkpoint()
    list(ordered_map(lambda _: checkpoint(), range(4), n_threads=2))
    checkpoint()


@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("seconds", [0.0, 1e-4, 3e-3, 7.0])
def test_slices_cover_all_items_in_order_and_are_short(seconds, multiple):
    pieces = list(short_slices(1001, seconds, multiple=multiple))
    assert np.array_equal(np.concatenate([np.arange(1001)[piece] for piece in pieces]), range(1001))
    lengths = [piece.stop - piece.start for piece in pieces]
    assert all(length % multiple == 0 for length in lengths[:-1])
    assert max(lengths) * seconds <= max(0.02, multiple * seconds) + 1e-12
    assert list(short_slices(0, seconds)) == []


def test_slices_begin_with_a_checkpoint(monkeypatch):
    calls = []
    monkeypatch.setattr(_threads, "checkpoint", lambda: calls.append(None))
    for number, _ in enumerate(short_slices(10, 0.01)):
        assert len(calls) == number + 1
    assert len(calls) == 5


def test_nobody_catches_abandoned_by_mistake():
    assert not issubclass(Abandoned, Exception)


# --------------------------------------------------------------------------------------- BLAS


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_blas_keeps_to_one_thread_and_is_restored(n_threads):
    with threadpool_limits(3, user_api="blas"):
        assert set(blas_threads()) == {3}
        inside = list(ordered_map(lambda _: blas_threads(), range(4), n_threads=n_threads))
        assert all(set(threads) == {1} for threads in inside)
        assert set(blas_threads()) == {3}

        results = ordered_map(str, range(4), n_threads=n_threads)
        next(results)
        assert set(blas_threads()) == {1}
        results.close()
        assert set(blas_threads()) == {3}

        with pytest.raises(ZeroDivisionError):
            list(ordered_map(lambda i: 1 / i, range(4), n_threads=n_threads))
        assert set(blas_threads()) == {3}


def test_blas_keeps_to_one_thread_without_a_map():
    with threadpool_limits(3, user_api="blas"):
        with single_blas_thread(), single_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {3}
        with pytest.raises(ZeroDivisionError), single_blas_thread():
            raise ZeroDivisionError
        assert set(blas_threads()) == {3}


def test_blas_is_restored_by_the_last_of_overlapping_maps():
    with threadpool_limits(3, user_api="blas"):
        first, second = (ordered_map(str, range(4), n_threads=1) for _ in range(2))
        next(first)
        next(second)
        first.close()
        assert set(blas_threads()) == {1}
        second.close()
        assert set(blas_threads()) == {3}


def in_another_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_blas_keeps_to_one_thread_in_whichever_thread_the_map_runs():
    """Bits depend on the number of BLAS threads, and fits may run in threads of the user."""
    with threadpool_limits(3, user_api="blas"):
        list(ordered_map(str, range(2), n_threads=1))  # this thread was the first to set BLAS
        [inside] = in_another_thread(
            lambda: list(ordered_map(lambda _: blas_threads(), [0], n_threads=1))
        )
        assert set(inside) == {1}
        assert set(blas_threads()) == {3}


def test_blas_is_restored_by_the_last_map_even_from_another_thread():
    with threadpool_limits(3, user_api="blas"):
        here = ordered_map(str, range(4), n_threads=1)
        next(here)
        there = ordered_map(str, range(4), n_threads=1)
        in_another_thread(lambda: next(there))
        here.close()
        assert set(blas_threads()) == {1}
        in_another_thread(there.close)
        assert set(blas_threads()) == {3}


def test_blas_loaded_after_the_first_map_is_kept_to_one_thread_too():
    code = """
        import sys
        from threadpoolctl import threadpool_info
        from bagwise._threads import ordered_map

        def blas(_):
            return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

        [before] = ordered_map(blas, [0], n_threads=1)
        assert "scipy.linalg" not in sys.modules
        import scipy.linalg
        [after] = ordered_map(blas, [0], n_threads=1)
        assert len(after) >= len(before)
        print(set(before) | set(after))
    """
    assert run(code, OPENBLAS_NUM_THREADS="2") == "{1}"


# --------------------------------------------------------------------------------------- fork


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_fork_after_and_during_a_map():
    code = """
        import os, warnings
        from bagwise._threads import ordered_map, thread_count

        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork beside threads

        def check():
            pid = os.fork()
            if pid == 0:
                right = list(ordered_map(str, range(50), n_threads=2)) == list(map(str, range(50)))
                os._exit(0 if right and thread_count(2) == 2 else 1)
            return os.waitpid(pid, 0)[1]

        list(ordered_map(str, range(50), n_threads=2))
        print(check())
        results = ordered_map(str, range(50), n_threads=2)
        next(results)
        print(check())
        print(len(list(results)))
    """
    assert run(code).split() == ["0", "0", "49"]


# ------------------------------------------------------------------------------- thread_count


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 6),
        ({"BAGWISE_NUM_THREADS": "3"}, 3),
        ({"BAGWISE_NUM_THREADS": "30"}, 30),
        ({"BAGWISE_NUM_THREADS": " 2 "}, 2),
        ({"OMP_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "64"}, 6),
        ({"BAGWISE_NUM_THREADS": "4", "OMP_NUM_THREADS": "1"}, 4),
        ({"BAGWISE_NUM_THREADS": "0", "OMP_NUM_THREADS": "0"}, 6),
        ({"BAGWISE_NUM_THREADS": "", "OMP_NUM_THREADS": "4,2"}, 6),
        ({"BAGWISE_NUM_THREADS": "many"}, 6),
        ({"BAGWISE_NUM_THREADS": "-2"}, 6),
        ({"BAGWISE_NUM_THREADS": "²"}, 6),
    ],
)
def test_environment_decides(monkeypatch, environment, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert thread_count() == expected
    assert thread_count(5) == 5


def test_systems_without_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert thread_count() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert thread_count() == 1


@pytest.mark.parametrize("n_threads", [0, -1])
def test_numbers_of_threads_that_are_none(n_threads):
    with pytest.raises(ValueError, match=f"n_threads must be at least 1 or None. Got {n_threads}"):
        list(ordered_map(str, [1], n_threads=n_threads))
