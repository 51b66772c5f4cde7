"""Maps of files that get shorter while they are read.

A page of a map that is behind the end of its file cannot be read: the system sends the process
SIGBUS, which ends it without a word. While a map is `watched`, such pages become zeros instead, and
the map is marked: whoever read it has to throw away what it made of it. When nobody reads the map
any more, it is locked away, so that zeros are not mistaken for values.

SIGBUS is answered from the first map on, until the process ends; faults elsewhere, and in maps that
nobody watches, go where they went before. What is asked of the system is as Linux has it on 64-bit
processors; elsewhere nothing is done.
"""

import mmap
import platform
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import numpy as np

_ROWS = 256  # maps that are read at the same time: of more, nothing is done for the rest
_IS_KNOWN = (
    sys.platform == "linux" and sys.maxsize > 2**32 and platform.machine() in ("x86_64", "aarch64")
)


class _Watch:
    """The maps in question, in a table that the answer to faults looks into.

    There are no locks: each change is one operation that Python does not interrupt, and in an order
    that is right at each step. A signal may come or a process be forked anywhere in between.
    """

    def __init__(self) -> None:
        #: First address of a map, that behind its last one, and whether pages were lost. The last
        #: row tells whether a fault was handed on, and whether any pages were lost. Compiled code
        #: knows where this lies.
        self.table = np.zeros((_ROWS + 1, 3), np.uint64)
        self.free = deque(range(_ROWS))
        self.maps: dict[int, mmap.mmap] = {}  # of each row: none is gone before its row is
        self.lost: WeakSet[mmap.mmap] = WeakSet()

    @property
    def answer(self) -> Any:
        """The answer to faults; None where there is none."""
        if not _IS_KNOWN:
            return None
        made = vars(self).get("_answer")
        if made is not None:
            return made
        import numba

        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return None
        from bagwise.bags._lost_page_kernels import Answer

        made = Answer(self.table.ctypes.data, _ROWS)
        return vars(self).setdefault("_answer", made)  # of two threads the first

    @property
    def any_lost(self) -> bool:
        """Whether any map has lost pages so far."""
        return bool(self.table[_ROWS, 1])

    def enter(self, number: int, memory: mmap.mmap) -> None:
        """Watch a map by a row of the table."""
        self.maps[number] = memory
        start = np.frombuffer(memory, np.uint8).ctypes.data
        self.table[number, 0] = start  # until the next is there, no address lies between them
        self.table[number, 1] = start + -(-len(memory) // mmap.PAGESIZE) * mmap.PAGESIZE

    def leave(self, number: int) -> None:
        """Free a row. If no other is of the same map, a map with lost pages is locked away."""
        memory = self.maps.get(number)
        start, stop, is_marked = (int(word) for word in self.table[number])
        if memory is not None and is_marked:
            self.lost.add(memory)
        self.table[number, 1] = 0
        self.table[number] = 0
        self.maps.pop(number, None)
        if memory in self.lost and not any(other is memory for other in list(self.maps.values())):
            self.answer.lock_away(start, stop)
        self.free.append(number)

    def has_lost(self, memory: mmap.mmap) -> bool:
        """Tell whether pages of a map were lost."""
        if not self.any_lost:
            return False
        numbers = [number for number, other in list(self.maps.items()) if other is memory]
        return bool(self.table[numbers, 2].any()) or memory in self.lost  # in this order


_watch = _Watch()


def has_lost_pages(memory: mmap.mmap) -> bool:
    """Tell whether pages of a map were lost while it was watched: it is of no use any more.

    Parameters
    ----------
    memory : mmap
        The map.
    """
    return _watch.has_lost(memory)


def were_pages_lost() -> bool:
    """Tell whether any map that was watched until now has lost pages: next to never."""
    return _watch.any_lost


@contextmanager
def watched(maps: Sequence[mmap.mmap]) -> Iterator[None]:
    """Let pages of maps be zero if their files get too short for them, instead of ending all.

    Parameters
    ----------
    maps : sequence of mmap
        Maps to be read. Ask `has_lost_pages` at first, since others may have lost some, and
        afterwards.
    """
    if not maps or _watch.answer is None:
        yield
        return
    numbers: list[int] = []
    try:
        for memory in maps:
            try:
                numbers.append(_watch.free.popleft())
            except IndexError:
                break
            _watch.enter(numbers[-1], memory)
        _watch.answer.install()
        yield
    finally:
        for number in numbers:
            _watch.leave(number)
