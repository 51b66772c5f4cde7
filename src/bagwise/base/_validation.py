"""From what users pass to `fit` and `predict` to validated bags."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from bagwise.bags import Bags, unchanged_files


def validate_bags(
    estimator: BaseEstimator, X: Any, *, reset: bool, allow_nan: bool = False
) -> Bags:
    """Return the input as bags, and check or set the number and names of features.

    Accepted are `Bags`, a sequence of matrices (one a bag), a 3-D array (bags x instances x
    features), and whatever scikit-learn accepts as a matrix: array, data frame, CSR matrix or list
    of rows. A matrix means bags of one instance; scikit-learn itself then checks it.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``n_features_in_`` and ``feature_names_in_`` if ``reset``, else is held to them.
    X : Bags, sequence of matrices, 3-D array or matrix-like
        The input.
    reset : bool
        True in ``fit``, False afterwards.
    allow_nan : bool
        Whether the estimator takes missing values.
    """
    if not holds_bags(X):
        matrix = validate_data(
            estimator,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            reset=reset,
            ensure_all_finite="allow-nan" if allow_nan else True,
        )
        return Bags(matrix, np.arange(matrix.shape[0] + 1), allow_nan=allow_nan)
    bags = as_bags(X, allow_nan=allow_nan)
    with unchanged_files(bags):
        if not allow_nan:
            bags.check_finite()
    _check_features(estimator, bags, reset=reset)
    if len(bags) == 0:
        msg = f"Found Bags with 0 sample(s) while a minimum of 1 is required by {_name(estimator)}."
        raise ValueError(msg)
    return bags


def holds_bags(X: Any) -> bool:
    """Tell whether the input is bags in one of their shapes, and not a matrix."""
    if isinstance(X, Bags) or getattr(X, "ndim", None) == 3:
        return True
    is_sequence = isinstance(X, list | tuple) or (
        isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype == object
    )
    if not is_sequence or len(X) == 0:
        return False
    # An empty list says nothing about its kind; as a bag it is refused by name later.
    return _is_matrix(next((item for item in X if not _is_empty_list(item)), X[0]))


def as_bags(X: Any, *, allow_nan: bool = False) -> Bags:
    """Return `Bags`, a 3-D array or a sequence of matrices as bags; `Bags` stay as they are."""
    if isinstance(X, Bags):
        return X
    make = Bags.from_array if getattr(X, "ndim", None) == 3 else Bags.from_list
    return make(X, allow_nan=allow_nan)


def _is_empty_list(item: Any) -> bool:
    return isinstance(item, list | tuple) and len(item) == 0


def _is_matrix(item: Any) -> bool:
    if sparse.issparse(item):
        return True
    try:
        return np.ndim(item) == 2
    except ValueError:  # a list of rows of different lengths: a bag, though not a valid one
        return True


def _check_features(estimator: Any, bags: Bags, *, reset: bool) -> None:
    names = bags.feature_names
    if reset:
        estimator.n_features_in_ = bags.n_features
        if names is not None:
            estimator.feature_names_in_ = names.astype(object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    if bags.n_features != estimator.n_features_in_:
        msg = (
            f"X has {bags.n_features} features, but {_name(estimator)} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
        raise ValueError(msg)
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and not np.array_equal(names, known):
        differing = np.flatnonzero(np.asarray(names, dtype=object) != known)
        first = int(differing[0])
        msg = (
            f"The features must be those {_name(estimator)} was fitted with, in that order: "
            f"feature {first} was {str(known[first])!r} and is {str(names[first])!r}."
        )
        raise ValueError(msg)


def _name(estimator: Any) -> str:
    return type(estimator).__name__
