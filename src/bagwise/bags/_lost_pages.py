"""Maps of files that get shorter while they are read.

A page of a map that is behind the end of its file cannot be read: the system sends the process
SIGBUS, which ends it without a word. Whoever enters `zeros_for_lost_pages` gets zeros for such
pages instead, and so do all who read the same map; `has_lost_pages` tells that they did. Other
faults go where they went before.

What is asked of the system is as Linux has it on 64-bit processors. Elsewhere nothing is done.
"""

import ctypes
import mmap
import platform
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from weakref import WeakSet

import numpy as np

_IS_KNOWN = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
_ON_OWN_TERMS = 0x4 | 0x08000000 | 0x40000000  # SA_SIGINFO, SA_ONSTACK, SA_NODEFER
_SLOTS = 256  # maps at the same time; of more, nothing is done for the rest


class _Action(ctypes.Structure):
    """What the system does about a signal: C's ``struct sigaction``."""

    _fields_ = (
        ("handler", ctypes.c_size_t),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_size_t),
    )


class _Watch:
    """The maps in question, where compiled code finds them, and the answer to their faults."""

    def __init__(self) -> None:
        self.lock, self.answer = Lock(), 0
        #: First address, address behind the last one and whether pages were lost, of each map.
        self.slots = np.zeros((_SLOTS, 3), np.uint64)
        self.users: dict[int, int] = {}  # of each first address
        self.before = _Action()

    def add(self, start: int, stop: int) -> None:
        with self.lock:
            if not self.users:
                self._install()
            self.users[start] = self.users.get(start, 0) + 1
            free = np.flatnonzero(self.slots[:, 0] == 0)
            if self.users[start] == 1 and len(free):
                # In this order: until both are there, no address lies between them.
                self.slots[free[0]] = start, 0, 0
                self.slots[free[0], 1] = stop

    def remove(self, start: int) -> bool:
        """Stop watching a map for one user; return whether pages were lost."""
        with self.lock:
            found = self.slots[:, 0] == start
            lost = bool(self.slots[found, 2].any())
            self.users[start] -= 1
            if not self.users[start]:
                del self.users[start]
                self.slots[found, 1] = 0
                self.slots[found] = 0
            if not self.users:
                self._uninstall()
        return lost

    def _install(self) -> None:
        from bagwise.bags._lost_page_kernels import answer_to_faults

        if not self.answer:
            self.compiled = answer_to_faults(
                self.slots.ctypes.data, len(self.slots), ctypes.addressof(self.before)
            )
            self.answer = int(self.compiled.address)
        ours = _Action(handler=self.answer, flags=_ON_OWN_TERMS)
        _sigaction(ctypes.byref(ours), ctypes.byref(self.before))

    def _uninstall(self) -> None:
        """Put back what was there, unless somebody else came after us."""
        now = _Action()
        _sigaction(None, ctypes.byref(now))
        if now.handler == self.answer:
            _sigaction(ctypes.byref(self.before), None)


def _sigaction(new: object, old: object) -> None:
    if ctypes.CDLL(None).sigaction(int(signal.SIGBUS), new, old) != 0:
        msg = "The system refused to say or change what it does about SIGBUS."
        raise OSError(msg)


_watch = _Watch()

#: Maps of which pages were lost.
_lost: WeakSet[mmap.mmap] = WeakSet()


def has_lost_pages(memory: mmap.mmap) -> bool:
    """Tell whether pages of a map were replaced by zeros: it is of no use any more."""
    return memory in _lost


@contextmanager
def zeros_for_lost_pages(maps: Sequence[mmap.mmap]) -> Iterator[None]:
    """Let pages of maps be zero if their files get too short for them, instead of ending all.

    `has_lost_pages` then tells of which.

    Parameters
    ----------
    maps : sequence of mmap
        Maps to be read.
    """
    watched: list[tuple[int, mmap.mmap]] = []
    try:
        for memory in maps if _IS_KNOWN else ():
            start = np.frombuffer(memory, np.uint8).ctypes.data
            _watch.add(start, start + -(-len(memory) // mmap.PAGESIZE) * mmap.PAGESIZE)
            watched.append((start, memory))
        yield
    finally:
        _lost.update([memory for start, memory in watched if _watch.remove(start)])
