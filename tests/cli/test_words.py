import pytest

from bagwise.cli._output import CommandError
from bagwise.cli._words import (
    align,
    count,
    did_you_mean,
    literal,
    parse_grid,
    parse_settings,
    printable,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1e-3", 1e-3),
        ("-2.5", -2.5),
        ("'a b'", "a b"),
        ("[1, 2]", [1, 2]),
        ("{0: 1.5}", {0: 1.5}),
        ("True", True),
        ("true", True),
        ("none", None),
        ("rbf", "rbf"),
        ("__import__('os')", "__import__('os')"),
        ("(" * 5000, "(" * 5000),
        ("", ""),
        (";", ";"),
    ],
)
def test_literal(text, value):
    found = literal(text)
    assert found == value
    assert type(found) is type(value)


def test_settings():
    assert parse_settings(["C=1", " kernel = rbf ", "a=b=c"], "--param") == {
        "C": 1,
        "kernel": "rbf",
        "a": "b=c",
    }
    assert parse_settings(None, "--param") == {}


@pytest.mark.parametrize("text", ["C", "=1", " =1"])
def test_bad_setting(text):
    with pytest.raises(CommandError, match="--param needs KEY=VALUE"):
        parse_settings([text], "--param")


def test_setting_given_twice():
    with pytest.raises(CommandError, match="gives C twice"):
        parse_settings(["C=1", "C=2"], "--param")
    with pytest.raises(CommandError, match="gives C twice"):
        parse_grid(["C=1", "C=2"], "--grid")


def test_grid():
    assert parse_grid(["C=0.1,1,10", "kernel=rbf,linear"], "--grid") == {
        "C": [0.1, 1, 10],
        "kernel": ["rbf", "linear"],
    }
    assert parse_grid(["class_weight={0: 1, 1: 2},none"], "--grid")["class_weight"][-1] is None


@pytest.mark.parametrize("text", ["C=", "C=1,,2", "C=,"])
def test_bad_grid(text):
    with pytest.raises(CommandError, match="--grid needs"):
        parse_grid([text], "--grid")


def test_hint():
    assert did_you_mean("sil", ["SIL", "MIKernelSVM"]) == "Did you mean SIL?"
    assert did_you_mean("xyz", ["SIL", "MIKernelSVM"]) == "Known: SIL, MIKernelSVM."
    assert did_you_mean("xyz", []) == "There are none."


def test_text():
    assert (count(1, "bag"), count(1234, "bag")) == ("1 bag", "1,234 bags")
    assert printable("a\x1b[31mb\nc") == "a?[31mb?c"
    assert align([["a", "b"], ["long", "12"]], right=[1]) == "a      b\nlong  12"
