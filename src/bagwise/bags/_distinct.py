"""Which instances differ, and an order of them that their values decide."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise.bags._bags import Bags
from bagwise.bags._source import BagSource, Chunk


def distinct_instances(bags: Bags, n: int, seed: int) -> Integers:
    """Return where each distinct instance first stands, in an order that the seed decides.

    The order depends on the values of the instances, not on where they stand nor on how often.
    Instances are distinct if they differ in single precision, so that the order is the same in both
    precisions; if these are fewer than ``n``, in their own.

    Parameters
    ----------
    bags : Bags
        In memory or memory-mapped.
    n : int
        How many are needed.
    seed : int
        Another seed, another order.

    Returns
    -------
    ndarray of int
        Positions among the instances, bag after bag: of all distinct ones, be they more or fewer
        than ``n``.
    """
    first = _first_of_each(bags, np.dtype(np.float32), seed)
    if len(first) < min(n, bags.n_instances) and bags.dtype != np.float32:
        first = _first_of_each(bags, bags.dtype, seed)
    return first


def _first_of_each(bags: Bags, dtype: np.dtype[Any], seed: int) -> Integers:
    unsigned = np.dtype(f"u{dtype.itemsize}")

    def hashes(chunk: Chunk) -> NDArray[np.uint64]:
        from bagwise.bags._hash_kernels import hash_dense, hash_sparse

        rows = chunk.instances
        out = np.empty(rows.shape[0], np.uint64)
        with np.errstate(over="ignore", under="ignore"):
            if sp.issparse(rows):
                bits = (rows.data.astype(dtype) + dtype.type(0)).view(unsigned)
                hash_sparse(bits, rows.indices, rows.indptr, np.uint64(seed), out)
            else:
                bits = (np.ascontiguousarray(rows, dtype) + dtype.type(0)).view(unsigned)
                hash_dense(bits, np.uint64(seed), out)
        return out

    found: Integers
    _, found = np.unique(BagSource(bags).concatenate(hashes), return_index=True)
    return found
