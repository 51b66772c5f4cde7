"""The one compile decorator of the library.

Compiled functions are plain functions on arrays. They release the GIL, so threads come from
`bagwise._threads` and never from numba (``parallel=True`` aborts the process under several Python
threads or after a fork). The compiled code is cached on disk where that is possible; on a
read-only file system without a writable cache folder numba refuses to cache at all, and then the
function is compiled anew in each process instead.

Modules that hold compiled functions are named ``_*_kernels.py`` and are imported where they are
first called, so that ``import bagwise`` does not pay for numba.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

import numba

F = TypeVar("F", bound=Callable[..., object])

#: Sums may be re-ordered (so that they vectorise) but NaN and infinity keep their meaning.
REASSOCIATE = frozenset({"reassoc", "contract", "nsz"})


# What numba can compile is loaded with the first function. Two threads that were first at once met
# half of it, and one in ten such processes failed with a KeyError: so one thread does it, here.
numba.njit("float64(float64)")(lambda x: x)


@overload
def compiled(function: F) -> F: ...
@overload
def compiled(*, fastmath: frozenset[str] = ...) -> Callable[[F], F]: ...


def compiled(
    function: F | None = None, *, fastmath: frozenset[str] = frozenset()
) -> F | Callable[[F], F]:
    """Compile a function with numba: nogil, cached on disk if the file system lets us.

    Parameters
    ----------
    function : callable
        A function of arrays and scalars.
    fastmath : frozenset of str
        LLVM flags, normally empty or `REASSOCIATE`.
    """

    def decorate(function: F) -> F:
        options: dict[str, Any] = {"nogil": True, "fastmath": set(fastmath) or False}
        try:
            dispatcher: Any = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # "cannot cache function ...: no locator available"
            dispatcher = numba.njit(**options)(function)
        return cast(F, dispatcher)

    return decorate if function is None else decorate(function)


def cache_statistics() -> list[Any]:
    """Return what numba tells of the cache of every function of ours that is loaded."""
    modules = [module for name, module in sys.modules.items() if name.startswith("bagwise.")]
    functions = [value for module in modules for value in vars(module).values()]
    compiled = [form for f in functions for form in getattr(f, "variants", (f,))]
    return [f.stats for f in compiled if hasattr(f, "stats") and hasattr(f, "py_func")]
