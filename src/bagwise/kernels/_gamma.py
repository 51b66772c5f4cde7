"""Rules for the width of a kernel: from words such as "scale" to a number."""

import re

import numpy as np
import scipy.sparse as sp

from bagwise._arrays import Floats
from bagwise.kernels._rows import (
    Matrix,
    canonical_rows,
    row_hashes,
    row_moments,
    row_passes,
    squared_norms,
)

_MEDIAN_ROWS = 1000
_VALUES, _PRODUCTS = 1e-14, 1e-13  # rows that differ by no more are the same up to rounding
_NO_GAMMA = ("linear", "cosine", "precomputed")

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RULE = re.compile(
    rf"(?:(?P<factor>{_NUMBER})\s*\*\s*)?(?P<name>scale|median|auto)"
    rf"|(?P<numerator>{_NUMBER})\s*/\s*d"
)


def needs_gamma(kernel: object) -> bool:
    """Tell whether a kernel, given by its name or as a function, has a coefficient ``gamma``.

    Examples
    --------
    >>> needs_gamma("rbf"), needs_gamma("linear"), needs_gamma(max)
    (True, False, False)
    """
    return not callable(kernel) and kernel not in _NO_GAMMA


def is_gamma_rule(text: object) -> bool:
    """Tell whether `resolve_gamma` knows a rule of this name.

    Examples
    --------
    >>> is_gamma_rule("scale"), is_gamma_rule("0.5*median"), is_gamma_rule("2/d")
    (True, True, True)
    >>> is_gamma_rule("wide"), is_gamma_rule("0*scale"), is_gamma_rule(0.5)
    (False, False, False)
    """
    return isinstance(text, str) and _parsed(text) is not None


def _parsed(text: str) -> tuple[float, str] | None:
    """Return the factor and the name of a rule, or None if it is none."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        return None
    factor = float(match["numerator"] or match["factor"] or 1.0)
    return (factor, match["name"] or "auto") if 0.0 < factor < np.inf else None


def resolve_gamma(gamma: float | str, X: Matrix, row_weight: Floats | None = None) -> float:
    """Turn a rule for ``gamma`` into a number.

    Parameters
    ----------
    gamma : float or str
        A number stands for itself. ``"scale"``: one over (number of features times the variance
        of all entries of ``X``), or 1 if that variance is 0. ``"median"``: one over the median
        squared distance between distinct instances, or 1 if there is only one. ``"auto"``: one
        over the number of features. A rule can have a factor above 0, as in ``"0.5*scale"`` or
        ``"4*median"``; ``"2/d"`` is two over the number of features.
    X : ndarray or CSR matrix of shape (n_instances, n_features)
        Instances.
    row_weight : ndarray of shape (n_instances,), optional
        Weights; a weight of 2 is the same as the row given twice, 0 the same as leaving it out.

    Notes
    -----
    ``"median"`` looks at no more than 1000 instances. A hash of the instances' values picks them
    among all distinct ones, so their order, repetitions and weights make no difference.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    rule = _parsed(gamma)
    if rule is None:
        msg = (
            'gamma must be a number, "scale", "median", "auto", one of these times a number above '
            f'0 as in "0.5*scale", or a number over d as in "2/d". Got {gamma!r}.'
        )
        raise ValueError(msg)
    factor, name = rule
    if name == "auto":
        return factor / max(1, int(X.shape[1]))
    X = canonical_rows(X)
    weight = np.ones(X.shape[0]) if row_weight is None else np.asarray(row_weight, np.float64)
    if weight.shape != (X.shape[0],) or not (weight >= 0).all() or not weight.any():
        msg = (
            f"row_weight must give a weight to each of {X.shape[0]} rows, none below 0 and one "
            f"above. Got shape {weight.shape} with minimum {weight.min(initial=np.inf)} and "
            f"maximum {weight.max(initial=-np.inf)}."
        )
        raise ValueError(msg)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = X.shape[1] * _variance(X, weight) if name == "scale" else _median(X, weight)
    if not np.isfinite(spread):
        msg = f"gamma={gamma!r} needs instances whose squared distances fit a float: scale them."
        raise ValueError(msg)
    return factor / spread if spread > 0 else factor


def _variance(X: Matrix, weight: Floats) -> float:
    """Return the weighted variance of all entries, in one pass over blocks of rows.

    Entries are taken relative to one of them, so constant data have a variance of exactly 0.
    """
    n_features = X.shape[1]
    first = int(np.argmax(weight > 0))
    pivot = np.float64(X[first : first + 1].max())
    mass, mean, scatter = np.zeros(3)
    for rows in row_passes(X):
        w = weight[rows]
        if not w.any():
            continue
        sums, squares = row_moments(X[rows], pivot)
        block_mass = n_features * w.sum()
        block_mean = w @ sums / block_mass
        block_scatter = np.maximum(0.0, w @ squares - block_mass * block_mean**2)  # NaN stays
        shift = block_mean - mean
        mean += shift * block_mass / (mass + block_mass)
        scatter += block_scatter + shift**2 * mass * block_mass / (mass + block_mass)
        mass += block_mass
    return float(scatter / mass)


def _median(X: Matrix, weight: Floats) -> float:
    """Return the median squared distance between at most 1000 distinct rows.

    Rows that differ by rounding, as sums in another order do, count as one.
    """
    hashes = np.concatenate([row_hashes(X[rows]) for rows in row_passes(X)])
    present = np.flatnonzero(weight > 0)
    _, first = np.unique(hashes[present], return_index=True)  # sorted by hash
    picked = X[present[first[:_MEDIAN_ROWS]]].astype(np.float64)
    if picked.shape[0] < 2:
        return 0.0
    lengths = squared_norms(picked)
    if not sp.issparse(picked):
        picked -= picked.mean(axis=0)  # far from the origin, products would drown the distances
    norms = squared_norms(picked)
    products = picked @ picked.T
    products = products.toarray() if sp.issparse(products) else products
    i, j = np.triu_indices(len(norms), 1)
    distances = norms[i] + norms[j] - 2.0 * products[i, j]
    slack = _PRODUCTS * norms + _VALUES**2 * lengths
    is_twin = np.zeros(len(norms), np.bool_)  # of a row before it, up to rounding
    is_twin[j[np.isfinite(distances) & (distances <= slack[i] + slack[j])]] = True
    if is_twin[1:].all():
        return 0.0
    return float(np.median(distances[~(is_twin[i] | is_twin[j])]))
