"""What an estimator says when it has not converged."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bagwise.base import warn_unless_converged
from bagwise.solvers import Certificate, Status
from bagwise.testing import make_toy_bags
from testing.sound import NearestMean


def certificate(status=Status.MAX_ITER, **known):
    return Certificate(**{"objective": 2.0, "status": status, "n_iter": 7, **known})


def text_of(certificate):
    with pytest.warns(ConvergenceWarning) as caught:
        warn_unless_converged(NearestMean(), certificate, "raise max_iter")
    return str(caught[0].message)


def test_converged_is_silent():
    warn_unless_converged(NearestMean(), certificate(Status.CONVERGED), "raise max_iter")


def test_warning_says_all_that_is_known():
    assert text_of(certificate(residual=0.25, lower_bound=1.5)) == (
        "NearestMean did not converge (max_iter): after 7 iterations the optimality conditions are "
        "violated by 0.25 and the objective is within 0.5 of the optimum. To converge, raise "
        "max_iter."
    )


def test_warning_says_nothing_that_is_not_known():
    assert text_of(certificate(Status.STALLED)) == (
        "NearestMean did not converge (stalled) after 7 iterations. To converge, raise max_iter."
    )


def test_gap_below_zero_is_rounding():
    assert "within 0 of the optimum" in text_of(certificate(lower_bound=2.0 + 1e-12))


def test_parts_that_failed_are_counted():
    good, bad = certificate(Status.CONVERGED), certificate()
    assert "did not converge in 2 of 3 problems (max_iter) after 21 iterations." in text_of(
        Certificate.total([bad, good, bad])
    )


def test_a_sum_of_problems_is_as_far_from_its_optimum_as_all_of_them():
    parts = [
        certificate(Status.CONVERGED, objective=2.0, lower_bound=1.5, residual=0.1, n_iter=3),
        certificate(Status.CONVERGED, objective=8.0, lower_bound=-4.0, residual=0.3, n_iter=4),
        certificate(Status.STALLED, objective=1.0, lower_bound=0.25, residual=0.2, n_iter=5),
    ]
    total = Certificate.total(parts)
    assert (total.objective, total.lower_bound, total.gap) == (11.0, -2.25, 13.25)
    assert (total.status, total.residual, total.n_iter) == (Status.STALLED, 0.3, 12)
    assert Certificate.total([*parts, certificate()]).lower_bound == -np.inf  # one is not known


def test_starts_and_how_far_apart_they_ended():
    one = certificate()
    three, two = (certificate(ends=np.array(ends)) for ends in ([0.2, 0.4, 0.1], [8.0, 4.0]))
    known = [
        (c.n_starts, c.spread) for c in (one, three, two, Certificate.total([three, one, two]))
    ]
    assert known == [(1, 0.0), (3, pytest.approx(0.3)), (2, 1.0), (3, 1.0)]


def test_warning_points_at_the_caller_of_fit():
    bags, y = make_toy_bags()
    with pytest.warns(ConvergenceWarning) as caught:
        NearestMean(max_iter=1).fit(bags, y)
    assert caught[0].filename == __file__


def test_warning_as_error_is_a_failed_fit():
    bags, y = make_toy_bags()
    model = NearestMean(max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning):
            model.fit(bags, y)
    assert not hasattr(model, "classes_")
