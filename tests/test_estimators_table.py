"""The page with the table of all estimators says what the classes declare."""

import importlib.util
from pathlib import Path

import pytest

from bagwise import all_estimators
from bagwise.svm import SIL

SCRIPT = Path(__file__).parents[1] / "docs" / "estimators_table.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("estimators_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("cls", [cls for _, cls in all_estimators()], ids=lambda c: c.__name__)
def test_every_estimator_has_a_summary(script, cls):
    words = script.summary_of(cls)
    for text in (words.assumption, words.objective, words.cost):
        assert text.strip() == text != ""
        assert "|" not in text
        assert not text.endswith(".")


def test_the_page_is_up_to_date(script):
    is_same = script.PAGE.read_text(encoding="utf-8") == script.page()
    assert is_same, "The table of all estimators is stale: run python docs/estimators_table.py"


def test_a_summary_belongs_to_one_class(script):
    class Another(SIL):
        pass

    with pytest.raises(LookupError, match=r"Another declares no summary. Add to the class"):
        script.row(Another)


def test_cells_are_what_the_tags_say(script):
    cells = {row[0]: row[5:] for row in map(script.row, dict(all_estimators()).values())}
    # instance scores, several classes, label lists, sparse, asymmetric
    assert cells["`MISVM`"] == ["yes", "yes", "yes", "yes", "yes"]
    assert cells["`MLCA`"] == ["yes", "yes", "no", "yes", "no"]
    assert cells["`MinimaxKernelSVM`"] == ["no", "yes", "yes", "yes", "no"]
    assert cells["`BAMIC`"] == ["no", "", "", "yes", ""]
