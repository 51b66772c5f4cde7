"""Arrays by what they hold, as signatures name them, and dense ones."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]
Signs: TypeAlias = NDArray[np.float64] | NDArray[np.int8]  # -1 and +1, in a byte where many


def as_dense(rows: Any) -> Floats:
    """Return a matrix, dense or sparse, as an array of float64."""
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, np.float64)
