"""The code and the commands in the documentation run and print what the documentation says."""

import contextlib
import doctest
import io
import re
import shlex
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bagwise.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "user_guide").glob("*.md"))
#: Pages that `test_first_contact` runs, in a process that has only the core.
FIRST_PAGES = ("README.md", "docs/getting_started.md", "docs/user_guide/command_line.md")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(
    r"^```(?P<kind>python|console|\{code-block\} text\n:caption: (?P<file>\S+)\n)\n"
    r"(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def run_page(text, name, namespace):
    """Run the blocks of a page in order, in one namespace and folder; return the failures.

    Python is run as it stands or as a doctest, a console block command by command, and a block
    with the name of a file as its caption becomes that file.
    """
    failures = []
    for match in FENCE.finditer(text):
        code, line = match["code"], text[: match.start()].count("\n") + 1
        if match["file"] is not None:
            Path(match["file"]).write_text(code, encoding="utf-8")
        elif match["kind"] == "console":
            failures += run_console(code, f"{name}:{line}")
        elif ">>>" not in code:
            exec(compile("\n" * line + code, name, "exec"), namespace)
        else:
            test = doctest.DocTestParser().get_doctest(code, {}, name, name, line)
            test.globs = namespace  # not a copy: what a block defines is there for the next one
            runner = doctest.DocTestRunner(optionflags=OPTIONS)
            runner.run(test, out=failures.append, clear_globs=False)
    return "".join(failures)


def run_console(code, where):
    """Run commands of ours and compare what they print, where that is shown; yield the failures.

    A command must succeed, unless ``echo $?`` behind it shows another exit code.
    """
    code = re.sub(r"\\\n *", "", code)  # a command that goes on in the next line
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.MULTILINE)
    exit_code = 0
    for k, (command, wanted) in enumerate(steps):
        if command == "echo $?":
            got = f"{exit_code}\n"
        else:
            program, *arguments = shlex.split(command, comments=True)
            if program == "make":
                assert set(arguments) <= make_targets(), f"{where}: $ {command}"
                continue
            assert program == "bagwise", f"{where}: only bagwise is run, not {program!r}"
            # Both streams in one, as on a terminal.
            with io.StringIO() as shown:
                with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
                    exit_code = main(arguments)
                got = shown.getvalue()
            code_is_shown = [text for text, _ in steps[k + 1 : k + 2]] == ["echo $?"]
            if exit_code and not code_is_shown:
                yield f"{where}: $ {command}\nExit code {exit_code}:\n{got}\n"
        if wanted and not doctest.OutputChecker().check_output(wanted, got, OPTIONS):
            yield f"{where}: $ {command}\nExpected:\n{wanted}\nGot:\n{got}\n"


def make_targets():
    """Return what can be made; that is not done here."""
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def provide_files(folder):
    """Put the tables of the documentation where its commands look for them.

    The page on commands runs in their folder, the first pages in the root of a checkout.
    """
    shutil.copytree(ROOT / "docs" / "data", folder / "docs" / "data")
    shutil.copytree(ROOT / "docs" / "data", folder, dirs_exist_ok=True)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page not in [ROOT / first for first in FIRST_PAGES]],
    ids=lambda page: page.stem,
)
def test_code_of_page_runs(page, tmp_path, monkeypatch):
    provide_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page_of_the_documentation")  # classes of a page can be pickled
    monkeypatch.setitem(sys.modules, module.__name__, module)
    failures = run_page(page.read_text(encoding="utf-8"), str(page), vars(module))
    assert not failures, failures


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_names_its_language(page):
    marks = re.findall(r"^ *```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert all(marks[::2]), f"a block of {page.name} has no language, so that nothing runs it"
    assert not any(marks[1::2])


@pytest.mark.parametrize(("printed", "fails"), [("2", False), ("3", True)])
def test_wrong_output_is_seen(printed, fails):
    page = f"Text.\n```python\nx = 1\n```\n```python\n>>> x + 1\n{printed}\n```\n"
    assert bool(run_page(page, "page", {})) is fails


@pytest.mark.parametrize(
    ("block", "failure"),
    [
        ("$ bagwise --version\nbagwise ...\n", ""),
        ("$ bagwise --version\nanother\n", "Expected:\nanother"),
        ("$ bagwise inspect toy.csv\ndata  toy.csv\n...\n", ""),
        ("$ bagwise inspect \\\n    toy.csv\ndata  toy.csv\n...\n", ""),
        ("$ bagwise inspect none.csv\n", "Exit code 2"),
        ("$ bagwise inspect none.csv\n$ echo $?\n2\n", ""),
        ("$ bagwise inspect none.csv\n$ echo $?\n0\n", "Expected:\n0"),
        ("$ make test  # all of it\n$ bagwise --version  # of bagwise\n", ""),
    ],
)
def test_commands_are_run(block, failure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "```{code-block} text\n:caption: toy.csv\n\nbag,x\na,1\nb,2\n```\n"
    found = run_page(f"{page}\n```console\n{block}```\n", "page", {})
    assert (failure in found) if failure else not found, found
