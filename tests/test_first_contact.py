"""The first pages and the examples of the help pages run where only the core is installed.

Each runs in a process of its own, from which the packages of all extras are hidden.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.test_examples import WITH_FILES, examples_of
from test_docs import FIRST_PAGES, ROOT, provide_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: What users may install beside the core; the others are for developers.
EXTRAS = ("plots", "data", "frames", "scale")

HIDE = """
import sys
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *more: (
    None if name.partition(".")[0] in HIDDEN else find(name, *more)
)
"""

RUN_PAGE = """
from pathlib import Path
from types import ModuleType
from test_docs import run_page
module = sys.modules["page"] = ModuleType("page")
failures = run_page(Path(PAGE).read_text(encoding="utf-8"), PAGE, vars(module))
assert not failures, failures
"""

RUN_COMMANDS = """
from bagwise.cli import main
for example in EXAMPLES:
    assert main(example) == 0, example
"""


def hidden_packages():
    """Return the names under which the packages of the extras are imported."""
    parts = PROJECT["optional-dependencies"]
    return sorted(re.match(r"[\w-]+", need)[0] for extra in EXTRAS for need in parts[extra])


def run_hidden(code, folder, **values):
    """Run code without the extras, on the files of the documentation."""
    provide_files(folder)
    known = {"HIDDEN": hidden_packages(), **values}
    given = "".join(f"{name} = {json.dumps(value)}\n" for name, value in known.items())
    paths = [str(ROOT / "tests"), str(Path(sys.modules["bagwise"].__file__).parents[1])]
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{given}{HIDE}{code}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )


def assert_fine(run):
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("page", FIRST_PAGES)
def test_page_runs(page, tmp_path):
    assert_fine(run_hidden(RUN_PAGE, tmp_path, PAGE=str(ROOT / page)))


def test_examples_of_the_help_pages_run(tmp_path, capsys):
    # The demo runs with the page on commands; sets that are fetched are not there.
    examples = [example for name in WITH_FILES for example in examples_of(name, capsys)]
    assert all(example[0] in WITH_FILES for example in examples)
    assert_fine(run_hidden(RUN_COMMANDS, tmp_path, EXAMPLES=examples))
    made = {path.name for path in tmp_path.iterdir()}
    assert {"digits.model", "sil.model", "labels.csv", "digits.html", "faces.csv"} <= made
    assert {"clusters.csv", "digits.bags", "molecules.bags"} <= made
    assert not [name for name in made if name.startswith(".")]


def test_packages_are_hidden(tmp_path):
    names = hidden_packages()
    assert {"matplotlib", "pandas", "pyarrow", "h5py"} <= set(names)
    code = f"from importlib.util import find_spec; assert not any(map(find_spec, {names}))"
    assert_fine(run_hidden(code, tmp_path))
