"""Every private or version-dependent scikit-learn name that we use, and nothing else."""

from inspect import signature
from typing import Any

from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import _check_sample_weight as _sklearn_check_sample_weight
from sklearn.utils.validation import _check_y

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "check_sample_weight",
    "check_target",
    "methods_scored",
]

_NON_NEGATIVE = (
    "ensure_non_negative"
    if "ensure_non_negative" in signature(_sklearn_check_sample_weight).parameters
    else "only_non_negative"
)


def check_sample_weight(sample_weight: Any, X: Any) -> Any:
    """Return the weights as float64, one per sample, none negative; ones for None."""
    return _sklearn_check_sample_weight(sample_weight, X, **{_NON_NEGATIVE: True})


def check_target(y: Any, estimator: Any, *, multi_output: bool) -> Any:
    """Return the target as an array without missing values; a column becomes a vector."""
    return _check_y(y, multi_output=multi_output, estimator=estimator)


def methods_scored(scorer: Any) -> tuple[str, ...]:
    """Return the methods of an estimator of which a scorer calls the first that there is."""
    methods = getattr(scorer, "_response_method", ())
    return (methods,) if isinstance(methods, str) else tuple(methods)


def __getattr__(name: str) -> Any:
    """Return a search by successive halving, which scikit-learn calls experimental."""
    if name not in ("HalvingGridSearchCV", "HalvingRandomSearchCV"):
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from sklearn import model_selection
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401

    return getattr(model_selection, name)
