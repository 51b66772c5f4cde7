"""``bagwise doctor``: what is installed, what computes the numbers, what data are there."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bagwise.cli._output import Output

_CORE = (
    *("bagwise", "numpy", "scipy", "scikit-learn", "numba", "joblib", "threadpoolctl"),
    *("clarabel", "safetensors", "rich", "typer"),
)
_EXTRAS = ("matplotlib", "pooch", "h5py", "pandas", "polars", "pyarrow", "dask")


def run_doctor(output: Output) -> None:
    """Look around and print what was found.

    Parameters
    ----------
    output : Output
        Where to write.
    """
    with output.progress.status("Looking around ..."):
        found: dict[str, Any] = {
            "command": "doctor",
            "python": platform.python_version(),
            "platform": platform.platform(),
            "executable": sys.executable,
            "versions": {name: _version(name) for name in _CORE},
            "extras": {name: _version(name) for name in _EXTRAS},
            "threads": _threads(),
            "blas": _blas(),
            "numba": _numba(),
            "data": _data(),
        }
        found["problems"] = _problems(found)
    output.result(_as_text(found), found)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _threads() -> dict[str, Any]:
    from bagwise._threads import thread_count

    return {
        "used": thread_count(),
        "processors": os.cpu_count(),
        "BAGWISE_NUM_THREADS": os.environ.get("BAGWISE_NUM_THREADS"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }


def _blas() -> list[dict[str, Any]]:
    import scipy.linalg  # noqa: F401  its BLAS may be another one than numpy's
    from threadpoolctl import threadpool_info

    keys = ("internal_api", "version", "num_threads", "architecture", "threading_layer")
    return [
        {key: library.get(key) for key in keys}
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]


def _numba() -> dict[str, Any]:
    """Say where compiled code is kept, and whether the next process will find it there."""
    import numpy as np

    from bagwise._jit import cache_statistics
    from bagwise.bags import segment_max

    ends = np.array([0, 1]), np.array([1, 3])
    works = segment_max(np.array([1.0, 2.0, 3.0]), *ends).tolist() == [1.0, 3.0]
    stats = cache_statistics()
    paths = sorted({stat.cache_path for stat in stats if stat.cache_path})
    return {
        "works": works,
        "cache": paths[0] if paths else None,
        "cached": any(stat.cache_hits for stat in stats),
    }


def _data() -> dict[str, Any]:
    from bagwise.datasets import load_digit_bags

    folder = os.environ.get("BAGWISE_DATA")
    names = [] if not folder else sorted(file.stem for file in Path(folder).glob("*.npz"))
    return {
        "embedded": {"digits": load_digit_bags(1).bags.n_features == 64},
        "BAGWISE_DATA": folder,
        "exists": Path(folder).is_dir() if folder else None,
        "sets": names,
    }


def _problems(found: dict[str, Any]) -> list[str]:
    problems = [f"{name} is not installed" for name, v in found["versions"].items() if v is None]
    if not found["numba"]["works"]:
        problems.append("compiled code gives wrong results")
    if found["numba"]["cache"] is None:
        problems.append(
            "compiled code cannot be cached, so every process compiles anew: "
            "set NUMBA_CACHE_DIR to a folder that can be written to"
        )
    if found["data"]["exists"] is False:
        problems.append(f"BAGWISE_DATA={found['data']['BAGWISE_DATA']} is not a folder")
    return problems


def _as_text(found: dict[str, Any]) -> str:
    threads, numba, data = found["threads"], found["numba"], found["data"]
    blas = [
        f"{b['internal_api']} {b['version'] or ''} ({b['architecture'] or 'any'}, "
        f"{b['num_threads']} threads)"
        for b in found["blas"]
    ]
    extras = [
        f"{name} {v}" if v else f"{name} (not installed)" for name, v in found["extras"].items()
    ]
    sets = f"{len(data['sets'])} sets in {data['BAGWISE_DATA']}" if data["exists"] else "no folder"
    lines = [
        ("python", f"{found['python']} ({found['executable']})"),
        ("platform", found["platform"]),
        ("versions", ", ".join(f"{n} {v or 'missing'}" for n, v in found["versions"].items())),
        ("extras", ", ".join(extras)),
        ("threads", f"{threads['used']} of {threads['processors']} processors"),
        ("BLAS", "; ".join(blas) or "none found"),
        ("numba cache", numba["cache"] or "none: compiled anew in each process"),
        ("data", f"digits (embedded); {sets} (BAGWISE_DATA)"),
        *[("problem", problem) for problem in found["problems"]],
    ]
    if not found["problems"]:
        lines.append(("verdict", "no problems found"))
    return "\n".join(f"{name:<12} {value}" for name, value in lines)
