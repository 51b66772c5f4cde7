"""The compile decorator: never parallel, cached where possible, and working where it is not."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import numpy as np
import pytest

import bagwise
from bagwise import _jit
from bagwise.bags import _segment_kernels

compiled_here = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set: nothing is compiled"
)


def dispatchers():
    names = [name for name in vars(_segment_kernels) if name.startswith("fill_")]
    assert len(names) >= 8
    return [getattr(_segment_kernels, name) for name in names]


@compiled_here
def test_compiled_functions_release_the_gil_and_never_start_threads():
    for dispatcher in dispatchers():
        assert dispatcher.targetoptions["nogil"] is True
        assert not dispatcher.targetoptions.get("parallel", False)


@compiled_here
def test_what_numba_can_compile_is_loaded_before_threads_ask_for_it():
    """Where two threads load it at once, one of them may fail with a KeyError."""
    code = """
        import sys
        import bagwise
        assert "numba" not in sys.modules
        import bagwise._jit
        from numba.core.registry import cpu_target
        print(len(cpu_target.typing_context._globals), len(cpu_target.target_context._defns))
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True
    )
    assert min(map(int, found.stdout.split())) > 100


@compiled_here
def test_only_re_ordering_of_sums_is_ever_allowed():
    """Flags that let NaN and infinity lose their meaning would break the reductions."""
    for dispatcher in dispatchers():
        flags = dispatcher.targetoptions["fastmath"]
        assert flags is False or not set(flags) & {"nnan", "ninf", "fast"}
    assert not _jit.REASSOCIATE & {"nnan", "ninf", "fast"}


def test_with_and_without_arguments():
    @_jit.compiled
    def plain(x):
        return x + 1.0

    @_jit.compiled(fastmath=_jit.REASSOCIATE)
    def total(values):
        result = 0.0
        for value in values:
            result += value
        return result

    assert plain(2.0) == 3.0
    assert total(np.arange(10.0)) == 45.0
    assert plain.__name__ == "plain"


def test_without_a_cache_it_is_compiled_anew(monkeypatch):
    asked = []
    original = numba.njit

    def read_only(*args, cache=False, **options):
        asked.append(cache)
        if cache:
            message = "cannot cache function 'f': no locator available for file 'f.py'"
            raise RuntimeError(message)
        return original(*args, **options)

    monkeypatch.setattr(numba, "njit", read_only)

    @_jit.compiled
    def double(x):
        return 2 * x

    assert double(4) == 8
    assert asked == [True, False]


CODE = """
    import numpy as np
    from bagwise import Bags
    from bagwise.bags import _segment_kernels, segment_argmax
    print(segment_argmax(np.array([1.0, 3.0, 2.0]), [0], [3])[0])
    print(type(getattr(_segment_kernels.fill_extreme, "_cache", None)).__name__)
"""


def run(folder=None, **changes):
    """Use a compiled function in another process; settings of None are removed."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **changes}
    if folder is not None:
        environment["PYTHONPATH"] = str(folder)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CODE)],
        env={name: value for name, value in environment.items() if value is not None},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("home", [None, "/dev/null", "/nonexistent/home"])
def test_any_home(home):
    assert run(HOME=home, XDG_CACHE_HOME=None, NUMBA_CACHE_DIR=None)[0] == "1"


@compiled_here
def test_installation_that_cannot_be_written_to(tmp_path):
    """Files stand where numba would make its folders, which stops root too."""
    shutil.copytree(
        Path(bagwise.__file__).parent, tmp_path / "bagwise",
        ignore=shutil.ignore_patterns("__pycache__"),
    )  # fmt: skip
    for folder in [tmp_path / "bagwise", *(tmp_path / "bagwise").rglob("*/")]:
        (folder / "__pycache__").write_text("in the way")
    home = tmp_path / "home"
    home.write_text("in the way")
    changes = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "NUMBA_CACHE_DIR": None}
    assert run(tmp_path, **changes) == ["1", "NullCache"]
    assert home.is_file()
