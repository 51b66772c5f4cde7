"""Margins of bags: moments by hand, and what no factor changes."""

import numpy as np
import pytest

from bagwise.metrics import margin_distribution
from bagwise.svm import MIODM, MISVM
from bagwise.testing import make_toy_bags


def test_moments_by_hand():
    found = margin_distribution(["no", "yes", "no"], [1.0, 2.0, -6.0], sample_weight=[1, 2, 1])
    np.testing.assert_array_equal(found.margins, [-1.0, 2.0, 6.0])
    assert found.mean == pytest.approx((-1 + 4 + 6) / 4)
    assert found.variance == pytest.approx((3.25**2 + 2 * 0.25**2 + 3.75**2) / 4)
    twice = margin_distribution(["no", "yes", "yes", "no"], [1.0, 2.0, 2.0, -6.0])
    assert twice.relative_spread == pytest.approx(found.relative_spread)
    longer = margin_distribution(["no", "yes", "no"], [10.0, 20.0, -60.0], sample_weight=[1, 2, 1])
    assert longer.relative_spread == pytest.approx(found.relative_spread)


def test_margins_of_a_band_are_closer_together():
    bags, y = make_toy_bags(60, kind="close")
    spreads = [
        margin_distribution(y, model.fit(bags, y).decision_function(bags)).relative_spread
        for model in (MIODM(10.0, nu=1.0, random_state=0), MISVM(10.0))
    ]
    assert 0.0 < spreads[0] < spreads[1]


@pytest.mark.parametrize(("y", "scores"), [([0, 1, 2], [1, 2, 3]), ([0, 1], [1, 2, 3]), ([1], [1])])
def test_what_has_no_margins_is_refused(y, scores):
    with pytest.raises(ValueError, match="two classes"):
        margin_distribution(y, scores)
