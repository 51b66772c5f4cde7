"""Columns of Arrow tables as NumPy arrays.

pyarrow's own ``to_numpy`` imports pandas, which takes longer than reading a file of many megabytes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.io._rows import Coded


def as_numpy(column: Any) -> NDArray[Any]:
    """See an Arrow array of numbers without nulls as a NumPy array; booleans are copied."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    dtype = np.dtype(column.type.to_pandas_dtype())
    if not len(column):
        return np.empty(0, dtype)
    data = column.buffers()[1]
    return np.frombuffer(data, dtype, len(column), column.offset * dtype.itemsize)


def as_coded(column: Any) -> Coded:
    """Give each distinct value of an Arrow array a number; null is the value None."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary.to_pylist()
    codes = column.indices
    if codes.null_count:
        codes = codes.cast(pa.int64()).fill_null(len(values))
        values.append(None)
    return Coded(as_numpy(codes).astype(np.int64), values)


def zip_coded(columns: Sequence[Coded]) -> Coded:
    """Put several coded columns together into one of tuples."""
    codes = np.stack([column.codes for column in columns], axis=1)
    distinct, inverse = np.unique(codes, axis=0, return_inverse=True)
    values = [
        tuple(column.values[code] for column, code in zip(columns, row, strict=True))
        for row in distinct.tolist()
    ]
    return Coded(inverse.reshape(-1), values)
