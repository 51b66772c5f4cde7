"""Constraints that families of methods share."""

import pytest

from bagwise.base import GammaRule


@pytest.mark.parametrize("rule", ["scale", "auto", "median", "2/d", "0.5*median", "3*scale"])
def test_rules(rule):
    assert GammaRule().is_satisfied_by(rule)


@pytest.mark.parametrize("value", ["wide", "0/d", "-1*scale", 1.0, None])
def test_what_is_no_rule(value):
    assert not GammaRule().is_satisfied_by(value)


def test_the_text_has_one_order():
    text = str(GammaRule())
    assert text.index("scale") < text.index("auto") < text.index("median") < text.index("2/d")
