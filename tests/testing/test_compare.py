"""Every comparison fails when it should: one that cannot fail would compare nothing."""

import copy
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from bagwise import Bags
from bagwise.solvers import Certificate, Status
from bagwise.testing._compare import (
    assert_close,
    assert_finite,
    assert_identical,
    assert_same_state,
    assert_scores_differ,
    difference,
    snapshot,
)
from bagwise.testing._expect import convergence_is_no_matter, raises, warns


def certificate(**changes):
    known = {"objective": 1.0, "status": Status.CONVERGED, "n_iter": 3, "solve_time": 0.1}
    return Certificate(**{**known, **changes})


def test_close_scores_pass():
    assert_close([1.0, 2.0], [1.0, 2.0 + 1e-7], "scores")
    assert_close(np.array([1e6]), np.array([1e6 + 1.0]), "scores in their own unit")


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        ([1.0, 2.0], [1.0, 2.01], r"here: scores differ by 0\.01"),
        ([1.0, 2.0], [[1.0, 2.0]], r"shapes \(2,\) and \(1, 2\) differ"),
        ([1.0, np.nan], [1.0, np.nan], "must be finite"),
        ([1.0, np.inf], [1.0, np.inf], "must be finite"),
        ([1e-3], [0.0], "differ"),
    ],
)
def test_other_scores_fail(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected, "here")


def test_tolerance_is_used():
    assert_close([1.0], [1.05], "scores", tolerance=0.1)
    with pytest.raises(AssertionError, match="at most 1e-09 is right"):
        assert_close([1.0], [1.0 + 1e-8], "scores", tolerance=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nonfinite_scores_fail(value):
    assert_finite([0.0, 1.0], "scores")
    with pytest.raises(AssertionError, match="must be finite"):
        assert_finite([0.0, value], "scores")


def test_scores_that_agree_fail_to_differ():
    assert_scores_differ([1.0], [1.1], "scores")
    assert_scores_differ([1.0], [1.0, 1.0], "scores")
    with pytest.raises(AssertionError, match="should differ and do not"):
        assert_scores_differ([1.0], [1.0 + 1e-9], "scores")


SAME = [
    None,
    3,
    "text",
    np.nan,
    np.array([1.0, np.nan]),
    np.array(["a", None], dtype=object),
    {"a": [1, (2.0, "b")]},
    sparse.csr_array(np.eye(3)),
    Bags(np.eye(3), [0, 1, 3], bag_names=["a", "b"]),
    certificate(parts=(certificate(), certificate())),
    np.random.RandomState(0),
    np.random.default_rng(0),
    partial(max, 3, key=abs),
    make_pipeline(LogisticRegression().fit([[0.0], [1.0]], [0, 1])),
    len,
    Bags,
]


@pytest.mark.parametrize("value", SAME, ids=lambda value: type(value).__name__)
def test_copies_are_the_same(value):
    assert difference(value, copy.deepcopy(value)) is None
    assert_identical(value, copy.deepcopy(value), "a copy")


def test_measured_times_do_not_matter():
    assert difference(certificate(), certificate(solve_time=9.0)) is None


def advanced(generator):
    generator.normal()
    return generator


@pytest.mark.parametrize(
    ("a", "b", "place"),
    [
        (1, 1.0, "int against float"),
        (1, 2, "1 against 2"),
        (0.0, -0.0, "values"),
        (1.0, float(np.nextafter(1.0, 2.0)), "values"),
        (None, 0, "NoneType against int"),
        (np.zeros(2), np.zeros(2, dtype=np.float32), "float64 .* against float32"),
        (np.zeros(2), np.zeros((2, 1)), r"\(2,\) against float64 \(2, 1\)"),
        (np.zeros(2), np.array([0.0, 5e-324]), "values"),
        (np.array(["a", 1], dtype=object), np.array(["a", 2], dtype=object), "1 against 2"),
        ({"a": 1}, {"a": 1, "b": 2}, r"\['b'\] on one side only"),
        ({"a": [0, {"b": 1}]}, {"a": [0, {"b": 2}]}, r"a\.1\.b: 1 against 2"),
        ([1], [1, 2], "on one side only"),
        ((1,), [1], "tuple against list"),
        (sparse.csr_array(np.eye(2)), sparse.csr_array(2 * np.eye(2)), "data: values"),
        (Bags(np.eye(3), [0, 1, 3]), Bags(np.eye(3), [0, 2, 3]), r"\(starts: values"),
        (Bags(np.eye(3), [0, 3]), Bags(np.eye(3) + 1, [0, 3]), "_base: values"),
        (certificate(), certificate(n_iter=4), "n_iter: 3 against 4"),
        (certificate(), certificate(status=Status.STALLED), "status"),
        (
            certificate(parts=(certificate(),)),
            certificate(parts=(certificate(n_iter=2),)),
            r"parts\.0\.n_iter",
        ),
        (np.random.RandomState(0), advanced(np.random.RandomState(0)), "state"),
        (np.random.default_rng(0), advanced(np.random.default_rng(0)), "state"),
        (partial(max, 3), partial(max, 4), r"args\.0: 3 against 4"),
        (LogisticRegression(), LogisticRegression(C=2.0), "C: values"),
        (len, max, "against"),
    ],
)
def test_difference_is_found(a, b, place):
    with pytest.raises(AssertionError, match=f"here: not the same to the last bit .*{place}"):
        assert_identical(a, b, "here")


def test_state_changes_are_found_at_any_depth():
    model = make_pipeline(LogisticRegression())
    before = snapshot(model)
    assert_same_state(model, before, "nothing")
    model[0].C_ = 3
    with pytest.raises(AssertionError, match=r"Pipeline changed .*steps\.0\.1.*'C_'"):
        assert_same_state(model, before, "something")


def test_expected_error_passes():
    with raises(ValueError, "BAG 3", r"\bgot\b", what="it"):
        raise ValueError("Bag 3 is empty. Got 0 rows.")


def test_no_error_fails():
    with (
        pytest.raises(AssertionError, match=r"fit must raise ValueError\. Nothing was"),
        raises(ValueError, what="fit"),
    ):
        pass


def test_other_error_fails():
    with (
        pytest.raises(AssertionError, match=r"fit must raise ValueError\. Got TypeError: no"),
        raises(ValueError, what="fit"),
    ):
        raise TypeError("no")


def test_other_message_fails():
    with (
        pytest.raises(AssertionError, match=r"must contain 'bag 3'\. Got: bag 4"),
        raises(ValueError, "bag 3", what="fit"),
    ):
        raise ValueError("bag 4")


def test_interrupt_is_not_taken_for_an_error():
    with pytest.raises(KeyboardInterrupt), raises(ValueError, what="fit"):
        raise KeyboardInterrupt


def test_expected_warning_passes():
    with warns(ConvergenceWarning, "raise max_iter", what="fit"):
        warnings.warn("Raise max_iter.", ConvergenceWarning, stacklevel=1)


def test_no_warning_fails():
    with (
        pytest.raises(AssertionError, match="fit must warn with ConvergenceWarning"),
        warns(ConvergenceWarning, what="fit"),
    ):
        warnings.warn("other", UserWarning, stacklevel=1)


def test_other_text_of_warning_fails():
    with (
        pytest.raises(AssertionError, match="the warning must contain 'max_iter'"),
        warns(ConvergenceWarning, "max_iter", what="fit"),
    ):
        warnings.warn("bad luck", ConvergenceWarning, stacklevel=1)


def test_only_convergence_is_no_matter():
    with convergence_is_no_matter():
        warnings.warn("slow", ConvergenceWarning, stacklevel=1)
    with pytest.raises(RuntimeWarning), convergence_is_no_matter():
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
