"""Importing costs only what is used."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"matplotlib", "pandas", "polars", "pyarrow", "dask", "numba", "sklearn", "joblib", "rich"}


def loaded_by(code):
    """Return the heavy packages that a fresh interpreter has loaded after the code."""
    program = f"import sys; {code}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_helper_sees_what_is_loaded():
    assert loaded_by("import joblib") >= {"joblib"}


@pytest.mark.parametrize(
    "code",
    [
        "import bagwise",
        "import bagwise; bagwise.__version__; dir(bagwise)",
        "import bagwise.exceptions",
        "from bagwise import Bags",
        "from bagwise.bags import BagSource, StoreWriter, segment_max, scan_max",
        "from bagwise import Bags; b = Bags([[1.0], [2.0]], [0, 1, 2]); repr(b); b[[1]].compact()",
        "from bagwise import Bags; b = Bags.from_groups([[1.0], [2.0]], ['a', 'b']); len(b)",
    ],
)
def test_bags_need_numpy_and_scipy_only(code):
    assert loaded_by(code) == set()


def test_numba_comes_with_the_first_compiled_call():
    code = "from bagwise.bags import segment_max; segment_max([1.0, 2.0], [0], [2])"
    assert loaded_by(code) & {"numba", "sklearn", "pandas", "matplotlib"} <= {"numba"}


def test_every_subpackage_is_an_attribute_of_the_package():
    import bagwise

    folders = {path.parent.name for path in Path(bagwise.__file__).parent.glob("*/__init__.py")}
    assert folders >= {"bags", "io", "svm"}
    assert {name for name in folders if name not in dir(bagwise)} == set()
    assert all(getattr(bagwise, name).__name__ == f"bagwise.{name}" for name in folders)


def test_unknown_names():
    import bagwise

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bagwise.nothing  # noqa: B018
    assert {"Bags", "load", "save", "all_estimators", "__version__"} <= set(dir(bagwise))
