"""The parameters of a kernel between instances: what they may be, and the kernel they make."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise.bags import Bags, rows_of
from bagwise.base._shared_work import shared_by
from bagwise.kernels import FORMULAS, InstanceKernel, is_gamma_rule, needs_gamma, resolve_gamma

#: The power of the unit of features in the number that a kernel multiplies by ``gamma``.
_UNITS = {"chi2": 1, "cosine": 0, "laplacian": 1, "linear": 2, "poly": 2, "rbf": 2}


class GammaRule(StrOptions):
    """A rule that makes a number out of the data, such as ``"scale"`` or ``"2/d"``."""

    def __init__(self) -> None:
        super().__init__({"scale", "auto", "median", "2/d", "0.5*median"})

    def is_satisfied_by(self, val: Any) -> bool:
        """Tell whether it is such a rule."""
        return isinstance(val, str) and is_gamma_rule(val)

    def __str__(self) -> str:
        return "'scale', 'auto', 'median', a rule such as '2/d' or '0.5*median'"


def settled_gamma(gamma: Any, bags: Bags, bag_weight: Floats | None = None) -> float:
    """Return the number that ``gamma`` or its rule gives; a weight counts as a repetition."""
    if not isinstance(gamma, str):
        return float(gamma)
    row_weight = None
    if bag_weight is not None and (bag_weight != bag_weight[0]).any():
        row_weight = np.repeat(bag_weight, bags.sizes)

    def settle() -> float:
        return resolve_gamma(gamma, rows_of(bags), row_weight)

    share = shared_by(bags)
    if share is None:
        return settle()
    weights = None if row_weight is None else row_weight.tobytes()
    number: float = share.of_selection(("gamma", gamma, weights), settle)
    return number


def scale_powers(kernel: str, gamma: Any) -> dict[str, int] | None:
    """Return the tag of this name for a kernel and its ``gamma``."""
    power = _UNITS[kernel]
    if kernel == "linear":
        return {"C": -power}
    if not needs_gamma(kernel):
        return {}
    if not isinstance(gamma, str):
        return {"gamma": -power}
    return {} if power == 2 and gamma.endswith(("scale", "median")) else None  # rules of squares


def gamma_attribute(kernel: InstanceKernel) -> dict[str, Any]:
    """Return the coefficient ``gamma`` of a kernel as a fitted attribute, if it has one."""
    return {"gamma_": kernel.gamma} if needs_gamma(kernel.name) else {}


class KernelParameters:
    """Mixin of estimators with the parameters ``kernel``, ``gamma``, ``degree`` and ``coef0``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(FORMULAS)), callable],
        "gamma": [GammaRule(), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
    }

    kernel: Any
    gamma: Any
    degree: int
    coef0: float

    def _resolve_kernel(self, bags: Bags, bag_weight: Floats | None = None) -> InstanceKernel:
        """Return the kernel with its ``gamma`` settled; a weight counts as a repetition."""
        if not needs_gamma(self.kernel):
            return self._make_kernel(1.0)
        return self._make_kernel(settled_gamma(self.gamma, bags, bag_weight))

    def _invariances(self) -> dict[str, Any]:
        """Return the tags about units and origin of features, of a machine with free intercept."""
        approx = getattr(self, "approx", None)
        is_named = isinstance(self.kernel, str) and self.kernel in FORMULAS
        if not is_named or approx == "nystroem":  # which draws instances by digits
            return {}
        by_difference = self.kernel in ("rbf", "laplacian") and approx != "fourier"
        return {
            "scale_powers": scale_powers(self.kernel, self.gamma),
            "shift_invariant": self.kernel == "linear" or by_difference,
        }

    def _make_kernel(self, gamma: float) -> InstanceKernel:
        return InstanceKernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)

    def _fitted_kernel(self, fitted: Mapping[str, Any] | None = None) -> InstanceKernel:
        """Return the kernel of the fit, or of fitted attributes that are given."""
        fitted = vars(self) if fitted is None else fitted
        return self._make_kernel(fitted["gamma_"] if needs_gamma(self.kernel) else 1.0)
