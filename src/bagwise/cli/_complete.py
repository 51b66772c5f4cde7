"""What the shell can complete. It waits for the answer, so nothing heavy is imported."""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: The package whose estimators are clusterers.
CLUSTERERS = "cluster"
#: The name of the embedded bags of digits.
DIGITS = "digits"


def complete_model(incomplete: str) -> list[str]:
    """Return the names of estimators that begin so."""
    return [name for name in model_names() if name.startswith(incomplete)]


def complete_clusterer(incomplete: str) -> list[str]:
    """Return the names of clusterers that begin so."""
    return [name for name in model_names(CLUSTERERS) if name.startswith(incomplete)]


def complete_set(incomplete: str) -> list[str]:
    """Return the names of data sets that begin so."""
    return [name for name in set_names() if name.startswith(incomplete)]


def complete_data(incomplete: str) -> list[str]:
    """Return data sets and files that begin so."""
    names = [name for name in (DIGITS, *set_names()) if name.startswith(incomplete)]
    return names + complete_path(incomplete)


def complete_path(incomplete: str) -> list[str]:
    """Return files and folders that begin so; folders with a slash at the end."""
    head, slash, tail = incomplete.rpartition("/")
    folder = Path(f"{head}{slash}" or ".").expanduser()
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [
        f"{head}{slash}{path.name}{'/' if path.is_dir() else ''}"
        for path in found
        if path.name.startswith(tail) and (tail or not path.name.startswith("."))
    ]


def set_names() -> list[str]:
    """Return the names in the registry of data sets, without importing what reads it."""
    text = (ROOT / "datasets" / "registry.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text))


def model_names(*packages: str) -> list[str]:
    """Return the names of the estimators, off the source of their packages; by default of all."""
    from bagwise._discovery import ESTIMATOR_PACKAGES

    names: set[str] = set()
    for package in packages or ESTIMATOR_PACKAGES:
        source = (ROOT / package / "__init__.py").read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names.update(ast.literal_eval(node.value))
    return sorted(names, key=lambda name: (name.lower(), name))
