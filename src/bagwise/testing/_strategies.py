"""Hypothesis strategies: bags of every shape, with finite values and small enough to shrink."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from bagwise.bags import Bags

__all__ = ["bag_sizes", "bags", "labelled_bags"]


def bag_sizes(*, min_bags: int = 1, max_bags: int = 8, max_size: int = 5) -> Any:
    """Return a strategy for the sizes of bags, an array of integers.

    Parameters
    ----------
    min_bags, max_bags : int
        Number of bags.
    max_size : int
        Most instances in a bag; there is at least one.
    """
    return st.lists(st.integers(1, max_size), min_size=min_bags, max_size=max_bags).map(
        lambda sizes: np.array(sizes, dtype=np.int64)
    )


@st.composite
def bags(
    draw: Any,
    *,
    min_bags: int = 1,
    max_bags: int = 8,
    max_size: int = 5,
    max_features: int = 4,
    dtype: Any = None,
    is_sparse: bool | None = False,
    is_selection: bool | None = None,
    max_value: float = 100.0,
) -> Bags:
    """Return a strategy for `Bags`.

    Parameters
    ----------
    min_bags, max_bags, max_size, max_features : int
        Limits of the number of bags, of instances in a bag, and of features.
    dtype : dtype, optional
        Type of the values. Default: float64 or float32.
    is_sparse : bool or None
        Whether the instance matrix is CSR; None means either.
    is_selection : bool or None
        Whether the bags are picked from a larger container, in any order and perhaps several times;
        None means either.
    max_value : float
        Largest absolute value.
    """
    dtype = np.dtype(draw(st.sampled_from([np.float64, np.float32])) if dtype is None else dtype)
    sizes = draw(bag_sizes(min_bags=min_bags, max_bags=max_bags, max_size=max_size))
    offsets = np.append(0, np.cumsum(sizes))
    shape = (int(offsets[-1]), draw(st.integers(1, max_features)))
    # A few values repeat often, so that ties, zeros and constant features do occur.
    limit = float(dtype.type(max_value))
    value = st.floats(-limit, limit, width=8 * dtype.itemsize) | st.sampled_from([0.0, 1.0, -1.0])
    matrix = draw(hnp.arrays(dtype, shape, elements=value, fill=st.just(0.0)))
    if draw(st.booleans()) if is_sparse is None else is_sparse:
        matrix = sparse.csr_array(matrix)
    whole = Bags(matrix, offsets)
    if draw(st.booleans()) if is_selection is None else is_selection:
        index = st.integers(0, len(whole) - 1)
        return whole[draw(st.lists(index, min_size=min_bags, max_size=max_bags))]
    return whole


@st.composite
def labelled_bags(draw: Any, *, n_classes: int = 2, **options: Any) -> tuple[Bags, Any]:
    """Return a strategy for `Bags` and classes of which each has a bag.

    Parameters
    ----------
    n_classes : int
        Number of classes, 0 to ``n_classes - 1``.
    **options
        As for `bags`.
    """
    options["min_bags"] = max(n_classes, options.get("min_bags", 1))
    drawn = draw(bags(**options))
    rest = st.integers(0, n_classes - 1)
    n_rest = len(drawn) - n_classes
    y = [*range(n_classes), *draw(st.lists(rest, min_size=n_rest, max_size=n_rest))]
    return drawn, np.array(draw(st.permutations(y)))
