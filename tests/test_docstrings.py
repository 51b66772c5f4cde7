"""The docstring of each estimator stands alone: all parameters and attributes, each with a text."""

import inspect
import re

import pytest

from bagwise import all_estimators
from bagwise.persistence._registry import REGISTRY
from bagwise.persistence._schema import Optional

ESTIMATORS = [pytest.param(cls, id=name) for name, cls in all_estimators()]
SECTION = r"^{}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)"
ENTRY = re.compile(r"^(\w[\w, ]*) : (\S.*)\n((?:    .*\n?|\n)*)", re.MULTILINE)
ELSEWHERE = re.compile(r"\b(as (in|for)|those of|see) `", re.IGNORECASE)


def entries(document, section):
    """Return the texts of a section by name, and what is left of it."""
    found = re.search(SECTION.format(section), inspect.cleandoc(document), re.DOTALL | re.MULTILINE)
    texts = {
        name: text.strip()
        for names, _, text in ENTRY.findall(found[1])
        for name in names.split(", ")
    }
    return texts, ENTRY.sub("", found[1]).strip()


def vars_of(cls):
    return {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}


def test_helper_sees_what_is_wrong():
    document = """Summary.

    Parameters
    ----------
    a, b : int
        Text of
        both, as in `SIL`.
    c
        Without a type.

    Notes
    -----
    d : int
        Not here.
    """
    texts, rest = entries(document, "Parameters")
    assert texts == dict.fromkeys("ab", "Text of\n    both, as in `SIL`.")
    assert rest == "c\n    Without a type."
    assert ELSEWHERE.search(texts["a"])


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_parameters_are_those_of_the_signature_in_order(cls):
    texts, rest = entries(cls.__doc__, "Parameters")
    assert list(texts) == list(inspect.signature(cls).parameters)
    assert not rest


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_attributes_are_those_that_are_saved(cls):
    texts, rest = entries(cls.__doc__, "Attributes")
    package = cls.__module__.split("._")[0]
    state = REGISTRY[f"{package}.{cls.__name__}"].state
    always = {name for name, field in state.items() if not isinstance(field, Optional)}
    assert always | {"n_iter_"} <= texts.keys()
    assert all(name in state or isinstance(vars_of(cls).get(name), property) for name in texts)
    assert not rest


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("section", ["Parameters", "Attributes"])
def test_every_text_is_complete(cls, section):
    for name, text in entries(cls.__doc__, section)[0].items():
        assert text.endswith("."), f"{name} ends with {text[-20:]!r}"
        assert not ELSEWHERE.search(text), f"{name} is described elsewhere: {text!r}"
