"""The compiled answer to faults in maps: the system calls it between two instructions of a thread.

The system calls it by its address, so `bagwise._jit` does not compile it, and its code is not kept
on disk. Compiling it takes a tenth of a second in each process that reads a map.
"""

import ctypes
import mmap
import signal
from typing import Any

from numba import carray, cfunc, types
from numba.extending import intrinsic

_NOTHING, _READABLE = 0x0, 0x1  # PROT_NONE, PROT_READ
_FIXED_AND_EMPTY = 0x32  # MAP_PRIVATE, MAP_FIXED and MAP_ANONYMOUS
_FLAGS = 0x4 | 0x08000000 | 0x40000000  # SA_SIGINFO, SA_ONSTACK and SA_NODEFER
_SIGBUS = int(signal.SIGBUS)
_WORD = types.CPointer(types.uint64)  # type: ignore[no-untyped-call]

_c = ctypes.CDLL(None)
_mmap, _mprotect, _sigaction, _raise = _c.mmap, _c.mprotect, _c.sigaction, getattr(_c, "raise")
_mmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_mmap.restype = ctypes.c_size_t
_mprotect.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
_sigaction.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t]
_raise.argtypes = [ctypes.c_int]
_mprotect.restype = _sigaction.restype = _raise.restype = ctypes.c_int


class _Action(ctypes.Structure):
    """What the system does about a signal: C's ``struct sigaction``."""

    _fields_ = (
        ("handler", ctypes.c_size_t),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_size_t),
    )


class Answer:
    """The answer to faults in the maps of a table.

    Parameters
    ----------
    table : int
        Address of rows of three words. Each row is of a map: its first address, that behind its
        last one, and a mark. A last row holds whether a fault was handed on, and a mark for all.
    n_rows : int
        Number of rows before the last one.
    """

    def __init__(self, table: int, n_rows: int) -> None:
        # Compiled code knows where these lie: they are never other objects.
        self.before, self.default = _Action(), _Action()
        self.handed_on = ctypes.c_uint64.from_address(table + 24 * n_rows)
        self.code = _compiled(
            table, n_rows, ctypes.addressof(self.before), ctypes.addressof(self.default)
        )
        self.ours = _Action(handler=self.code.address, flags=_FLAGS)

    def install(self) -> None:
        """Answer SIGBUS from now on, unless that is so; what was there before is kept."""
        now = _Action()
        _sigaction(_SIGBUS, 0, ctypes.addressof(now))
        if now.handler == self.ours.handler:
            return
        ctypes.pointer(self.before)[0] = now
        self.handed_on.value = 0
        _sigaction(_SIGBUS, ctypes.addressof(self.ours), 0)

    def lock_away(self, start: int, stop: int) -> None:
        """Let nobody read the pages between two addresses."""
        _mprotect(start, stop - start, _NOTHING)


def _emit_pointer(context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(_WORD))

    return _WORD(types.uint64), generate


_pointer: Any = intrinsic(_emit_pointer)


def _compiled(table: int, n_rows: int, before: int, default: int) -> Any:
    """Compile what is called where a page cannot be read.

    If the address is in one of the maps, all of it from that page on becomes zeros, and the map is
    marked. If not, what was done about the signal before is put back, and the fault comes again; if
    that comes back here, the process ends, as is the system's default.
    """
    page_size, last = mmap.PAGESIZE, 3 * n_rows

    @cfunc(types.void(types.int32, _WORD, types.voidptr))
    def answer(number: Any, told: Any, context: Any) -> None:
        info = carray(told, 3)  # siginfo_t: si_code is in its second word, si_addr its third
        code, address = info[1] & 0xFFFFFFFF, info[2]
        is_fault = 0 < code < 0x80000000  # else somebody has sent the signal
        words = carray(_pointer(table), last + 3)
        stop = types.uint64(0)
        for k in range(0, last, 3):  # one map may have several rows
            if is_fault and words[k] <= address < words[k + 1]:
                words[k + 2] = words[last + 1] = 1
                stop = words[k + 1]
        page = address - address % types.uint64(page_size)
        if stop and _mmap(page, stop - page, _READABLE, _FIXED_AND_EMPTY, -1, 0) == page:
            return
        if words[last] == 0:
            words[last] = 1
            _sigaction(number, before, 0)
        else:
            _sigaction(number, default, 0)
        if not is_fault:
            _raise(number)

    return answer
