"""Maps of files that get shorter while they are read.

A page of a map that is behind the end of its file cannot be read: the system sends the process
SIGBUS, which ends it without a word. While a map is `watched`, such pages become zeros instead, and
the map is marked: whoever read it has to throw away what it made of it. When nobody reads the map
any more, the zeros are locked away, so that they are not mistaken for values.

SIGBUS is answered from the first map on, until the process ends. Faults elsewhere go where they
went before. What is asked of the system is as Linux has it on 64-bit processors; elsewhere nothing
is done.
"""

import mmap
import platform
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary, finalize

import numpy as np

_SLOTS = 256  # maps at the same time: of more, nothing is done for the rest
_IS_KNOWN = (
    sys.platform == "linux" and sys.maxsize > 2**32 and platform.machine() in ("x86_64", "aarch64")
)


class _Slot:
    """A map's place in the table, and who reads the map."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.readers: set[object] = set()


class _Watch:
    """The maps in question, in a table that the answer to faults looks into.

    There are no locks: each change is one operation that Python does not interrupt. A signal may
    come, an iterator be collected or a process be forked anywhere in between.
    """

    def __init__(self) -> None:
        #: First address of each map, that behind its last one, and of the first page lost. The last
        #: row tells whether a fault was handed on. Compiled code knows where this lies.
        self.table = np.zeros((_SLOTS + 1, 3), np.uint64)
        self.free = deque(range(_SLOTS))
        self.slots: WeakKeyDictionary[mmap.mmap, _Slot] = WeakKeyDictionary()
        self.any_lost = False

    @cached_property
    def answer(self) -> Any:
        """The answer to faults; None where there is none."""
        if not _IS_KNOWN:
            return None
        import numba

        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return None
        from bagwise.bags._lost_page_kernels import Answer

        return Answer(self.table.ctypes.data, _SLOTS)

    def slot_of(self, memory: mmap.mmap) -> _Slot | None:
        """Return the place of a map; None if there is no room for it."""
        slot = self.slots.get(memory)
        if slot is not None:
            return slot
        try:
            made = _Slot(self.free.popleft())
        except IndexError:
            return None
        slot = self.slots.setdefault(memory, made)
        if slot is not made:  # another thread was first
            self.free.append(made.number)
            return slot
        start = np.frombuffer(memory, np.uint8).ctypes.data
        row = self.table[slot.number]
        # In this order: until both are there, no address lies between them.
        row[0] = start
        row[1] = start + -(-len(memory) // mmap.PAGESIZE) * mmap.PAGESIZE
        finalize(memory, self.forget, slot.number).atexit = False
        return slot

    def forget(self, number: int) -> None:
        """Free the place of a map that is gone."""
        self.table[number, 1] = 0
        self.table[number] = 0
        self.free.append(number)

    def has_lost(self, memory: mmap.mmap) -> bool:
        """Tell whether pages of a map were lost."""
        slot = self.slots.get(memory)
        return slot is not None and bool(self.table[slot.number, 2])

    def leave(self, slot: _Slot, reader: object) -> None:
        """Note that one reader is done; the last one locks away what was lost."""
        slot.readers.discard(reader)
        _, stop, lost = (int(word) for word in self.table[slot.number])
        if lost:
            self.any_lost = True
            if not slot.readers:
                self.answer.lock_away(lost, stop)


_watch = _Watch()


def has_lost_pages(memory: mmap.mmap) -> bool:
    """Tell whether pages of a map were lost since it was first watched: it is of no use any more.

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
        Maps to be read. Ask `has_lost_pages` afterwards.
    """
    if not maps or _watch.answer is None:
        yield
        return
    reader, slots = object(), []
    try:
        for memory in maps:
            slot = _watch.slot_of(memory)
            if slot is not None:
                slot.readers.add(reader)
                slots.append(slot)
        _watch.answer.install()
        yield
    finally:
        for slot in slots:
            _watch.leave(slot, reader)
