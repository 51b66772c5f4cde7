"""Docstrings that are put together from shared entries."""

import doctest
import inspect
import subprocess
import sys

import pytest

from bagwise.base import documented
from bagwise.base._docs import ENTRIES


def test_entries_take_the_place_of_their_names():
    @documented
    class Model:
        r"""Summary with :math:`{k}_{ij}` and |x|.

        Parameters
        ----------
        |degree|
        own : int
            Its own text.
        |coef0: not negative|
            More of
            it.
        |C, max_iter: rounds|

        Notes
        -----
        |here| is none.
        """

    expected = r"""Summary with :math:`{k}_{ij}` and |x|.

        Parameters
        ----------
        degree : int
            Degree :math:`p` of the polynomial kernel.
        own : int
            Its own text.
        coef0 : float
            Constant :math:`c_0` of the polynomial kernel, not negative. More of it.
        C : float
            Cost of margin violations.
        max_iter : int
            Most rounds from each start.

        Notes
        -----
        |here| is none.
        """
    assert inspect.cleandoc(Model.__doc__) == inspect.cleandoc(expected)


@pytest.mark.parametrize("key", ["nothing", "tol: nothing", "C, nothing", "C,tol"])
def test_unknown_entries_are_refused(key):
    class Model:
        __doc__ = f"Summary.\n\n    |{key}|\n"

    with pytest.raises(KeyError, match=r"docstring of Model asks for '.*not in ENTRIES"):
        documented(Model)


def test_examples_are_found_behind_entries():
    @documented
    class Model:
        """Summary.

        |kernel|

        >>> 1 + 1
        3
        """

    (test,) = doctest.DocTestFinder().find(Model, "Model", globs={})
    assert [example.want for example in test.examples] == ["3\n"]


@pytest.mark.parametrize("key", ENTRIES)
def test_entries_are_whole_sentences_in_lines_of_one_width(key):
    kind, text = ENTRIES[key]
    assert kind
    assert text.strip().endswith(".")

    class Model:
        __doc__ = f"Summary.\n\n    |{key}|\n"

    assert max(map(len, documented(Model).__doc__.splitlines())) <= 100


def test_without_docstrings_everything_imports():
    code = "import bagwise; print(all(cls.__doc__ is None for _, cls in bagwise.all_estimators()))"
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
