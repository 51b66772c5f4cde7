"""Checks of what a fit says about itself."""

# ruff: noqa: D401 (the docstring of a check says what holds)

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bagwise.solvers import Certificate
from bagwise.testing._data import make_toy_bags
from bagwise.testing._expect import convergence_is_no_matter, warns
from bagwise.testing._models import fitted, is_bag_clusterer, takes


def check_certificate(estimator: Any) -> None:
    """``result_`` has a finite objective, a gap that is not negative, and easy data converge."""
    for n_classes in (2, 3):
        bags, y = make_toy_bags(24, n_classes=n_classes)
        number = {"n_clusters": n_classes} if is_bag_clusterer(estimator) else {}
        result = fitted(estimator, bags, y, **number).result_
        if not isinstance(result, Certificate):
            msg = f"result_ must be a Certificate. Got {type(result).__name__}."
            raise AssertionError(msg)
        if not np.isfinite(result.objective):
            msg = f"The objective must be finite. Got {result.objective}."
            raise AssertionError(msg)
        if not result.gap >= -1e-9 * max(1.0, abs(result.objective)):
            msg = f"A duality gap cannot be negative. Got {result.gap:.3g}."
            raise AssertionError(msg)
        if not result.converged:
            msg = f"Classes far apart must converge. Got the status {result.status}."
            raise AssertionError(msg)
        if result.n_iter < 0 or not np.isfinite(result.solve_time):
            msg = f"n_iter {result.n_iter} or solve_time {result.solve_time} makes no sense."
            raise AssertionError(msg)


def check_not_converged_warns(estimator: Any) -> None:
    """One iteration is too few: a `ConvergenceWarning` says so, and which parameter to change."""
    bags, y = make_toy_bags(40, kind="close", random_state=3)
    name = type(estimator).__name__
    advice = r"\b(raise|increase)\b.*\bmax_iter\b"
    with warns(ConvergenceWarning, rf"\b{name}\b", advice, what="fit with max_iter=1"):
        model = fitted(estimator, bags, y, max_iter=1)
    if model.result_.converged:
        msg = "result_ must not say converged after a ConvergenceWarning."
        raise AssertionError(msg)
    with convergence_is_no_matter():
        more = fitted(estimator, bags, y)
    slack = 1e-9 * max(1.0, abs(model.result_.objective))
    if more.result_.objective > model.result_.objective + slack:
        msg = (
            f"More iterations must not end with a larger objective: {more.result_.objective:.6g} "
            f"against {model.result_.objective:.6g} after one."
        )
        raise AssertionError(msg)


def check_early_stops(estimator: Any) -> None:
    """Few iterations on hard data leave a true certificate.

    No lower bound is above an objective that another fit reached, and there is a
    `ConvergenceWarning` exactly if the status is not that of an optimum.
    """
    bags, y = make_toy_bags(24, kind="close", random_state=3)
    large = {"C": 1e3} if takes(estimator, "C") else {}
    for what, params, hard in (
        ("single precision", {}, [bag.astype(np.float32) for bag in bags]),
        ("a large C", large, bags),
        ("features of other sizes", {}, [bag * np.array([1e3, 1.0, 1e-3]) for bag in bags]),
    ):
        results = []
        for stop in ({"max_iter": 1}, {"max_iter": 2}, {"max_iter": 3}, {}):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = fitted(estimator, hard, y, **params, **stop).result_
            warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
            if warned == result.converged:
                msg = (
                    f"{what}, {stop}: a ConvergenceWarning must be given exactly if the fit did "
                    f"not converge. Got the status {result.status} "
                    f"{'with' if warned else 'without'} a warning."
                )
                raise AssertionError(msg)
            results.append(result)
        best = min(result.objective for result in results)
        highest = max(result.lower_bound for result in results)
        if highest > best + 1e-6 * max(1.0, abs(best)):
            msg = (
                f"{what}: no lower bound may be above an objective that was reached. "
                f"Got {highest:.9g} above {best:.9g}."
            )
            raise AssertionError(msg)
