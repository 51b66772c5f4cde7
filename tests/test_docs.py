"""The code in the documentation runs and prints what the documentation says."""

import doctest
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "user_guide").glob("*.md"))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(text, name, namespace):
    """Run the python blocks of a page in order, in one namespace; return the failures."""
    failures = []
    for match in FENCE.finditer(text):
        code, line = match[1], text[: match.start()].count("\n") + 1
        if ">>>" not in code:
            exec(compile("\n" * line + code, name, "exec"), namespace)
            continue
        test = doctest.DocTestParser().get_doctest(code, {}, name, name, line)
        test.globs = namespace  # not a copy: what a block defines is there for the next one
        doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=failures.append, clear_globs=False)
    return "".join(failures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page_of_the_documentation")  # classes of a page can be pickled
    monkeypatch.setitem(sys.modules, module.__name__, module)
    failures = run_page(page.read_text(encoding="utf-8"), str(page), vars(module))
    assert not failures, failures


@pytest.mark.parametrize(("printed", "fails"), [("2", False), ("3", True)])
def test_wrong_output_is_seen(printed, fails):
    page = f"Text.\n```python\nx = 1\n```\n```python\n>>> x + 1\n{printed}\n```\n"
    assert bool(run_page(page, "page", {})) is fails
