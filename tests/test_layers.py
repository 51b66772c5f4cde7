"""Who imports what, as docs/design.md has it: layers, doors and the rooms inside of rooms.

The source is read, not run, so that imports inside functions count as well.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

import bagwise

ROOT = Path(bagwise.__file__).parent

#: From the top: a subpackage may import from earlier groups, not from its own group or later ones.
LAYERS = [
    {
        *(
            "_version",
            "exceptions",
            "_compat",
            "_files",
            "_jit",
            "_threads",
            "_arrays",
            "_warnings",
        ),
        "_progress",
    },
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
#: Estimators of different subpackages may build on one another's public classes.
PEERS = LAYERS[5]
#: Doors of `Bags` and of the package itself: imported inside a function, when they are used.
LAZY = {
    ("bags", "io"),
    ("__init__", "bags"),
    ("__init__", "_discovery"),
    ("__init__", "persistence"),
}
#: What the package itself offers, and the subpackage that it comes from.
PACKAGE_NAMES = {
    "Bags": "bags",
    "all_estimators": "_discovery",
    "__version__": "_version",
    "save": "persistence",
    "load": "persistence",
}
#: Folders inside of a subpackage, from the top; "" stands for the files beside them. They are one
#: package and may use one another's private modules, but in this direction only.
ROOMS_INSIDE = {
    "solvers": [
        {""},
        {"operators"},
        {"programs"},
        {"svm"},
        {"assignments", "boosting", "clustering", "density", "expansion", "metric"},
    ],
    "svm": [{"machinery"}, {""}],
}


@dataclass(frozen=True)
class Import:
    """An import of something of ours: ``from module import name``, or ``import module``."""

    path: Path
    line: int
    module: str
    name: str = ""

    @property
    def parts(self):
        """What follows after ``bagwise``: a subpackage first, or a name of the package."""
        return [*self.module.split(".")[1:], *([self.name] if self.name else [])]

    @property
    def room(self):
        """The subpackage that it comes from."""
        return PACKAGE_NAMES.get(self.parts[0], self.parts[0]) if self.parts else "__init__"

    def __str__(self):
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {'.'.join(self.parts)}"


def _imports(path):
    return _imports_of(path.relative_to(ROOT), path.read_text())


def _imports_of(file, source):
    path = ROOT / file
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            found = [Import(path, node.lineno, node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [Import(path, node.lineno, alias.name) for alias in node.names]
        else:
            continue
        yield from (each for each in found if each.module.split(".")[0] == "bagwise")


def _room(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _room_inside(path):
    """The folder inside of a subpackage that a file is in: "" for none."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if len(parts) > 2 else ""


def _level(layers, room):
    found = [i for i, layer in enumerate(layers) if room in layer]
    assert found, f"{room!r} is not in the table"
    return found[0]


def _breaks_the_layers(each):
    room = _room(each.path)
    if each.room == room or (room, each.room) in LAZY or {room, each.room} <= PEERS:
        return False
    if room == "__init__":
        return each.room != "_version"
    if not each.parts:  # `import bagwise` in a function: for what the package offers
        return False
    return _level(LAYERS, each.room) >= _level(LAYERS, room)


def _passes_by_a_door(each):
    """A private module or name of another subpackage, wherever that is in the layers."""
    own = _room(each.path)
    if not each.parts or each.parts[0] == own:
        return False
    return any(part.startswith("_") and not part.endswith("__") for part in each.parts[1:])


def _breaks_the_order_inside(each):
    room, here = _room(each.path), _room_inside(each.path)
    is_door = each.path.relative_to(ROOT).parts == (room, "__init__.py")
    if room not in ROOMS_INSIDE or each.parts[:1] != [room] or is_door:
        return False
    order = ROOMS_INSIDE[room]
    there = next((part for part in each.parts[1:2] if part in set().union(*order)), "")
    is_own_door = len(each.parts) == 2 and not there and not each.name.startswith("_")
    return is_own_door or (here != there and _level(order, there) >= _level(order, here))


RULES = (_breaks_the_layers, _passes_by_a_door, _breaks_the_order_inside)
FILES = sorted(ROOT.rglob("*.py"))


def test_every_room_is_in_the_tables():
    rooms = {(_room(path), _room_inside(path)) for path in FILES}
    assert {room for room, _ in rooms} - {"__init__"} <= set().union(*LAYERS)
    assert {(room, inside) for room, inside in rooms if inside} == {
        (room, inside)
        for room, order in ROOMS_INSIDE.items()
        for inside in set().union(*order) - {""}
    }


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_keep_the_rules(path):
    broken = [f"{each}: {rule.__name__}" for each in _imports(path) for rule in RULES if rule(each)]
    assert not broken, "; ".join(broken)


@pytest.mark.parametrize(
    ("file", "line", "rule"),
    [
        ("kernels/_x.py", "from bagwise.svm import SIL", _breaks_the_layers),
        ("kernels/_x.py", "import bagwise.svm", _breaks_the_layers),
        ("base/_x.py", "from bagwise import load", _breaks_the_layers),
        ("embedding/_x.py", "from bagwise.svm._sil import SIL", _passes_by_a_door),
        ("embedding/_x.py", "from bagwise.svm.machinery._trainer import T", _passes_by_a_door),
        ("cli/_x.py", "from bagwise.bags import _matrix", _passes_by_a_door),
        ("io/_x.py", "import bagwise.bags._matrix", _passes_by_a_door),
        (
            "solvers/operators/_x.py",
            "from bagwise.solvers.svm import solve_svm_dual",
            _breaks_the_order_inside,
        ),
        (
            "solvers/operators/_x.py",
            "from bagwise.solvers.svm._svm_dual import f",
            _breaks_the_order_inside,
        ),
        (
            "solvers/_x.py",
            "from bagwise.solvers.programs import solve_qp",
            _breaks_the_order_inside,
        ),
        (
            "solvers/expansion/_x.py",
            "from bagwise.solvers.clustering import solve_k_means",
            _breaks_the_order_inside,
        ),
        ("svm/machinery/_x.py", "from bagwise.svm._sil import SIL", _breaks_the_order_inside),
        ("svm/machinery/_x.py", "from bagwise.svm import SIL", _breaks_the_order_inside),
    ],
)
def test_rules_notice(file, line, rule):
    [each] = _imports_of(file, line)
    assert [broken for broken in RULES if broken(each)] == [rule]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("embedding/_x.py", "from bagwise.svm import SIL"),
        ("embedding/_x.py", "from bagwise._compat import Interval"),
        ("svm/_x.py", "from bagwise.svm._sil import SIL"),
        ("svm/_x.py", "from bagwise.svm.machinery._trainer import Trainer"),
        ("svm/__init__.py", "from bagwise.svm._sil import SIL"),
        ("solvers/__init__.py", "from bagwise.solvers.svm import solve_svm_dual"),
        ("solvers/svm/_x.py", "from bagwise.solvers.operators._row_operator import RowOperator"),
        ("solvers/svm/_x.py", "from bagwise.solvers._result import Result"),
        ("cli/_x.py", "import bagwise"),
        ("cli/_x.py", "from bagwise import __version__"),
    ],
)
def test_rules_allow(file, line):
    [each] = _imports_of(file, line)
    assert not any(broken(each) for broken in RULES)


def test_only_compat_imports_private_names_of_scikit_learn():
    for path in FILES:
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
