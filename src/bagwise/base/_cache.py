"""What was computed before, up to a number of bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags


class Cache:
    """What was made, by key, up to a number of bytes; threads that want the same wait for it.

    What was not used for longest goes first. A value that is larger than the limit is not kept.
    """

    def __init__(self, n_bytes: float) -> None:
        self.limit = n_bytes
        self.is_open = True
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, Lock] = {}
        self._lock = Lock()
        self._held = 0

    def find(self, key: Hashable) -> Any:
        """Return the value, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value, made now if it is not there."""
        value = self.find(key)
        if value is not None:
            return value
        with self._lock:
            making = self._making.setdefault(key, Lock())
        try:
            with making:
                value = self.find(key)
                if value is None:
                    value = make()
                    self.put(key, value)
        finally:
            with self._lock:
                self._making.pop(key, None)
        return value

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value; let go of those not used for longest."""
        size = size_of(value)
        with self._lock:
            self._held -= self._values.pop(key, (None, 0))[1]
            if size > self.limit or not self.is_open:
                return
            self._values[key] = value, size
            self._held += size
            while self._held > self.limit:
                self._held -= self._values.popitem(last=False)[1][1]

    def close(self) -> None:
        """Forget everything, and keep nothing from now on."""
        with self._lock:
            self.is_open = False
            self._values.clear()
            self._held = 0


@dataclass(frozen=True, eq=False)
class Same:
    """A key that is equal for this very object only; the object lives as long as the key."""

    value: Any

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value


def size_of(value: Any) -> int:
    """Return the bytes of an array, a sparse matrix, bags, or a tuple or dataclass of these."""
    if isinstance(value, tuple):
        return sum(map(size_of, value))
    if isinstance(value, Bags):
        return 64 if value.is_lazy else size_of(value.segments[0])
    if hasattr(value, "indptr"):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if is_dataclass(value) and not hasattr(value, "nbytes"):
        return sum(size_of(getattr(value, field.name)) for field in fields(value))
    return int(getattr(value, "nbytes", 64))


def digest(*arrays: NDArray[Any]) -> bytes:
    """Return a name of arrays that no others have."""
    state = blake2b(digest_size=16)
    for array in arrays:
        state.update(f"{array.dtype.str}{array.shape}".encode())
        state.update(np.ascontiguousarray(array).data)
    return state.digest()
