"""The parameters of a kernel: constraints, and the kernel that they make."""

import numpy as np
import pytest

from bagwise import Bags
from bagwise.base import GammaRule, KernelParameters, gamma_attribute


@pytest.mark.parametrize("rule", ["scale", "auto", "median", "2/d", "0.5*median", "3*scale"])
def test_rules(rule):
    assert GammaRule().is_satisfied_by(rule)


@pytest.mark.parametrize("value", ["wide", "0/d", "-1*scale", 1.0, None])
def test_what_is_no_rule(value):
    assert not GammaRule().is_satisfied_by(value)


def test_the_text_has_one_order():
    text = str(GammaRule())
    assert text.index("scale") < text.index("auto") < text.index("median") < text.index("2/d")


class Kernel(KernelParameters):
    def __init__(self, kernel="rbf", gamma="scale"):
        self.kernel, self.gamma, self.degree, self.coef0 = kernel, gamma, 2, 0.5


BAGS = Bags.from_list([[[0.0, 3.0], [1.0, 2.0]], [[5.0, 5.0]], [[7.0, 1.0]]])


def test_scale_is_one_over_features_times_variance():
    kernel = Kernel()._resolve_kernel(BAGS)
    assert kernel.gamma == pytest.approx(1.0 / (2 * np.var([0, 3, 1, 2, 5, 5, 7, 1])))
    assert (kernel.name, kernel.degree, kernel.coef0) == ("rbf", 2, 0.5)


def test_a_weight_is_a_repetition():
    repeated = BAGS[[0, 0, 0, 1, 2, 2]]
    weighted = Kernel()._resolve_kernel(BAGS, np.array([3.0, 1.0, 2.0]))
    assert weighted.gamma == pytest.approx(Kernel()._resolve_kernel(repeated).gamma)
    equal = Kernel()._resolve_kernel(BAGS, np.full(3, 2.5))
    assert equal.gamma == Kernel()._resolve_kernel(BAGS).gamma


@pytest.mark.parametrize(("kernel", "gamma", "number"), [("rbf", 2, 2.0), ("linear", "scale", 1.0)])
def test_instances_are_read_for_rules_only(kernel, gamma, number):
    made = Kernel(kernel, gamma)._resolve_kernel(None)
    assert made.gamma == number
    assert isinstance(made.gamma, float)


def test_the_fitted_kernel_has_the_gamma_of_the_fit():
    model = Kernel()
    assert model._fitted_kernel({"gamma_": 0.25}).gamma == 0.25
    model.gamma_ = 0.5
    assert model._fitted_kernel().gamma == 0.5
    assert gamma_attribute(model._fitted_kernel()) == {"gamma_": 0.5}
    assert gamma_attribute(Kernel("linear")._fitted_kernel()) == {}
