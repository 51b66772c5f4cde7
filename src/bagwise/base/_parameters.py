"""Constraints on parameters that several families of methods share."""

from typing import Any

from bagwise._compat import StrOptions
from bagwise.kernels import is_gamma_rule


class GammaRule(StrOptions):
    """A rule that makes a number out of the data, such as ``"scale"`` or ``"2/d"``."""

    def __init__(self) -> None:
        super().__init__({"scale", "auto", "median", "2/d", "0.5*median"})

    def is_satisfied_by(self, val: Any) -> bool:
        """Tell whether it is such a rule."""
        return isinstance(val, str) and is_gamma_rule(val)

    def __str__(self) -> str:
        return "'scale', 'auto', 'median', a rule such as '2/d' or '0.5*median'"
