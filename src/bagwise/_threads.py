"""Threads over independent pieces of work: ordered, interruptible, one BLAS thread each.

Every parallel loop of the library goes through `ordered_map`. Workers run compiled code or BLAS
calls that release the GIL; numba's own threads are never used. While a map runs, BLAS keeps to
one thread, because threads of our own over a fixed grid give the same bits for any thread count.

Ctrl-C reaches the thread that consumes the results. It abandons the map: work that has not
started is dropped, and running work stops at its next `checkpoint`.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Any, TypeVar

Item = TypeVar("Item")
Output = TypeVar("Output")

_POLL_SECONDS = 0.05
_SLICE_SECONDS = 0.02  # compiled loops come back this often, so that Ctrl-C is answered

_worker = threading.local()  # .abandoned: the Event of the map that this worker thread serves


class Abandoned(BaseException):
    """Raised by `checkpoint` in a worker whose map was given up; nobody should catch it."""


def checkpoint() -> None:
    """Let a long computation be cut here.

    In the main thread the interpreter itself delivers Ctrl-C between two compiled slices, so there
    this does nothing. In a worker it raises `Abandoned` once the map has been given up.
    """
    abandoned: threading.Event | None = getattr(_worker, "abandoned", None)
    if abandoned is not None and abandoned.is_set():
        raise Abandoned


def slice_length(seconds: float) -> int:
    """Return how many items a compiled loop may take before it comes back, after about 20 ms.

    Parameters
    ----------
    seconds : float
        About how long an item takes.
    """
    return max(1, int(_SLICE_SECONDS / max(seconds, 1e-9)))


def short_slices(n: int, seconds: float, *, multiple: int = 1) -> Iterator[slice]:
    """Cut items into slices of about 20 ms, with a `checkpoint` before each.

    Parameters
    ----------
    n : int
        Number of items.
    seconds : float
        About how long an item takes.
    multiple : int
        What the length of a slice is a multiple of, for loops that take several items at once.
    """
    length = multiple * slice_length(multiple * seconds)
    for start in range(0, n, length):
        checkpoint()
        yield slice(start, min(start + length, n))


def thread_count(n_threads: int | None = None) -> int:
    """Return how many threads to use.

    Parameters
    ----------
    n_threads : int or None
        ``None`` asks the environment: ``BAGWISE_NUM_THREADS``, else the processors that this
        process may run on, capped by ``OMP_NUM_THREADS`` (which joblib sets in its workers).
        Inside a worker the answer is 1: maps do not nest.
    """
    if getattr(_worker, "abandoned", None) is not None:
        return 1
    if n_threads is not None:
        if n_threads < 1:
            msg = f"n_threads must be at least 1 or None. Got {n_threads}."
            raise ValueError(msg)
        return n_threads
    if own := _positive_int(os.environ.get("BAGWISE_NUM_THREADS")):
        return own
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        available = os.cpu_count() or 1
    return min(available, _positive_int(os.environ.get("OMP_NUM_THREADS")) or available)


def _positive_int(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() and int(text) > 0 else None


def ordered_map(
    function: Callable[[Item], Output],
    items: Iterable[Item],
    *,
    n_threads: int | None = None,
    window: int | None = None,
) -> Generator[Output, None, None]:
    """Yield ``function(item)`` for each item, in the order of the items.

    Parameters
    ----------
    function : callable
        Called in worker threads; called here if one thread is asked for.
    items : iterable
        Consumed as workers become free.
    n_threads : int or None
        See `thread_count`.
    window : int or None
        At most this many items are started and not yet yielded, which bounds the memory that
        waiting results take. Default: four times the number of threads.
    """
    n_threads = thread_count(n_threads)
    window = 4 * n_threads if window is None else window
    with single_blas_thread():
        if n_threads == 1 or window == 1:
            for item in items:
                checkpoint()
                yield function(item)
            return
        yield from _threaded_map(function, items, n_threads, window)


def _threaded_map(
    function: Callable[[Item], Output], items: Iterable[Item], n_threads: int, window: int
) -> Iterator[Output]:
    abandoned = threading.Event()

    def work(item: Item) -> Output:
        _worker.abandoned = abandoned
        try:
            checkpoint()
            return function(item)
        finally:
            _worker.abandoned = None

    pool = _pool(n_threads)
    running: deque[Future[Output]] = deque()
    try:
        for item in items:
            running.append(pool.submit(work, item))
            if len(running) >= window:
                yield _result(running)
        while running:
            yield _result(running)
    finally:  # reached with work left over only on an error, an interrupt or a closed generator
        abandoned.set()
        wait([future for future in running if not future.cancel()])


def _result(running: "deque[Future[Output]]") -> Output:
    """Take the oldest result, waking up regularly so that signals are seen on every platform."""
    while True:
        try:
            output = running[0].result(timeout=_POLL_SECONDS)
        except TimeoutError:
            if not running[0].done():
                continue
            output = running[0].result()  # it ended just now, or raised TimeoutError itself
        running.popleft()
        return output


_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def _pool(n_threads: int) -> ThreadPoolExecutor:
    with _pools_lock:
        if n_threads not in _pools:
            _pools[n_threads] = ThreadPoolExecutor(n_threads, thread_name_prefix="bagwise")
        return _pools[n_threads]


def _forget_after_fork() -> None:
    """Threads and held locks do not survive a fork: start afresh in the child."""
    global _pools_lock, _blas_lock, _blas_users
    _pools.clear()
    _pools_lock, _blas_lock, _blas_users = threading.Lock(), threading.Lock(), 0
    _worker.abandoned = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


_blas_lock = threading.Lock()
_blas_users = 0
_blas_libraries: list[Any] = []
_blas_modules = 0  # how many modules were loaded when the libraries were looked for
_blas_before: list[tuple[Any, int]] = []  # what the libraries were set to before the first user


class _SingleBlasThread:
    """Counts who asks for one BLAS thread. A class, as it is entered for every small map."""

    def __enter__(self) -> None:
        global _blas_users, _blas_before
        with _blas_lock:
            if _blas_users == 0:
                _find_blas()
                _blas_before = [(library, library.num_threads) for library in _blas_libraries]
                _set_blas([(library, 1) for library in _blas_libraries])
            _blas_users += 1

    def __exit__(self, *error: object) -> None:
        global _blas_users
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:
                _set_blas(_blas_before)


_single_blas_thread = _SingleBlasThread()


def single_blas_thread() -> AbstractContextManager[None]:
    """Keep BLAS to one thread in a block: the bits of a result do not depend on their number.

    The setting belongs to the process, so users that overlap in different threads share it: the
    first sets it, the last restores what was there.
    """
    return _single_blas_thread


def _find_blas() -> None:
    """Look for BLAS libraries, and again after an import: scipy brings a BLAS of its own."""
    global _blas_libraries, _blas_modules
    if _blas_modules != len(sys.modules):
        from threadpoolctl import ThreadpoolController

        _blas_libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        _blas_modules = len(sys.modules)


def _set_blas(counts: list[tuple[Any, int]]) -> None:
    for library, count in counts:
        # Recent threadpoolctl obeys only the first thread that ever set OpenBLAS, and ignores the
        # others without a word. Counting the users already keeps threads from quarrelling over it.
        set_count = getattr(library, "_real_set_num_threads", library.set_num_threads)
        set_count(count)
