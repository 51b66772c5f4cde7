"""The compiled answer to faults in maps: the system calls it between two instructions of a thread.

It is called by its address, so it is not compiled as other functions are (`bagwise._jit`), nor kept
on disk: that takes a tenth of a second, before the first map is read.
"""

import ctypes
import mmap
import signal
from typing import Any

from numba import carray, cfunc, types
from numba.extending import intrinsic

_READABLE, _FIXED_AND_EMPTY = 0x1, 0x32  # PROT_READ; MAP_PRIVATE, MAP_FIXED and MAP_ANONYMOUS
_WORD = types.CPointer(types.uint64)  # type: ignore[no-untyped-call]

_c = ctypes.CDLL(None)
_mmap, _sigaction = _c.mmap, _c.sigaction
_mmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_mmap.restype = ctypes.c_size_t
_sigaction.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t]
_sigaction.restype = ctypes.c_int


def _emit_pointer(context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(_WORD))

    return _WORD(types.uint64), generate


_pointer: Any = intrinsic(_emit_pointer)


def answer_to_faults(slots: int, n_slots: int, before: int) -> Any:
    """Compile what is to be called where a page of a map cannot be read.

    If the address is in one of the maps, all of it from that page on becomes zeros, and the map is
    marked. If not, what was done about the signal before is put back, and the fault comes again.

    Parameters
    ----------
    slots : int
        Address of three words for each map: its first address, that behind its last one, a mark.
    n_slots : int
        Number of maps.
    before : int
        Address of what was done before, as ``sigaction`` has it.
    """
    page_size, number = mmap.PAGESIZE, int(signal.SIGBUS)

    @cfunc(types.void(types.int32, _WORD, types.voidptr))
    def answer(signal_number: Any, told: Any, context: Any) -> None:
        address = carray(told, 3)[2]
        words = carray(_pointer(slots), 3 * n_slots)
        for k in range(0, 3 * n_slots, 3):
            if words[k] <= address < words[k + 1]:
                page = address - address % types.uint64(page_size)
                words[k + 2] = 1
                length = words[k + 1] - page
                if _mmap(page, length, _READABLE, _FIXED_AND_EMPTY, -1, 0) == page:
                    return
        _sigaction(number, before, 0)

    return answer
