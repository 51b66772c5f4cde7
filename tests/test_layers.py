"""The layers of docs/design.md: each subpackage imports only from those above it."""

import ast
from pathlib import Path

import pytest

import bagwise

ROOT = Path(bagwise.__file__).parent

#: From the top: a subpackage may import from earlier groups, not from its own group or later ones.
LAYERS = [
    {"_version", "exceptions", "_compat", "_jit", "_threads"},
    {"bags"},
    {"kernels"},
    {"solvers"},
    {"base"},
    {"svm", "density", "embedding", "neighbors", "ensemble", "metric", "cluster"},
    {"preprocessing", "metrics", "model_selection"},
    {"_discovery"},
    {"persistence"},
    {"io"},
    {"datasets"},
    {"published"},
    {"inspection"},
    {"testing"},
    {"cli"},
]
#: Doors of `Bags` and of the package itself: imported inside a function, when they are used.
LAZY = {
    ("bags", "io"),
    ("__init__", "bags"),
    ("__init__", "_discovery"),
    ("__init__", "persistence"),
}
#: Estimators of different subpackages may build on one another's public classes.
PEERS = LAYERS[5]


def _module_files() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def _room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            names = [node.module or ""]
            if node.module == "bagwise":
                names = [f"bagwise.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("bagwise.")}
    return rooms


def _level(room: str) -> int:
    found = [i for i, layer in enumerate(LAYERS) if room in layer]
    assert found, f"{room!r} is not in the table of layers"
    return found[0]


def test_every_room_is_in_the_table():
    rooms = {_room(path) for path in _module_files()} - {"__init__"}
    assert rooms <= set().union(*LAYERS)


@pytest.mark.parametrize("path", _module_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_upward(path):
    room = _room(path)
    for imported in _imported_rooms(path):
        name = {"Bags": "bags", "all_estimators": "_discovery", "__version__": "_version"}.get(
            imported, imported
        )
        name = "persistence" if name in {"save", "load"} else name
        if name == room or (room, name) in LAZY or {room, name} <= PEERS:
            continue
        if room == "__init__":
            assert name == "_version"
            continue
        assert _level(name) < _level(room), f"{path} imports bagwise.{imported}"


def test_only_compat_imports_private_names_of_scikit_learn():
    for path in _module_files():
        if path.name == "_compat.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                private = [name for name in names if name.startswith("_")]
                assert not private, f"{path}:{node.lineno} imports {private}: use bagwise._compat"


def test_solvers_know_nothing_of_scikit_learn():
    for path in (ROOT / "solvers").rglob("*.py"):
        assert "sklearn" not in path.read_text()
