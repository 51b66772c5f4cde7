"""Numbers by which bags are known again."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise.bags._bags import Bags
from bagwise.bags._source import BagSource, Chunk


def bag_digests(bags: Bags) -> NDArray[np.uint64]:
    """Return a number for each bag by which it is known again.

    Bags have the same number if they hold the same instances in single precision, in whatever
    order, dense or sparse. Others have another one, but for an accident of about 1 in 2^64. It
    guards against mistakes, not against malice.

    Parameters
    ----------
    bags : Bags
        In memory or memory-mapped; a file is read chunk by chunk.

    Returns
    -------
    ndarray of uint64 of shape (n_bags,)
        The numbers.

    Examples
    --------
    >>> from bagwise.bags import Bags, bag_digests
    >>> first, second, third = bag_digests(Bags([[1.0], [2.0], [2.0], [1.0], [3.0]], [0, 2, 4, 5]))
    >>> first == second, first == third
    (np.True_, np.False_)
    """
    source = BagSource(bags)
    if bags.is_memory_mapped:
        source = BagSource(bags, max_memory=source.chunk_bytes)
    found: NDArray[np.uint64] = source.concatenate(_of_chunk)
    return found


def _of_chunk(chunk: Chunk) -> NDArray[np.uint64]:
    from bagwise.bags._hash_kernels import digest_dense, digest_sparse

    matrix, starts, stops = chunk.bags.segments
    out = np.empty(len(starts), np.uint64)
    with np.errstate(over="ignore", under="ignore"):
        if sp.issparse(matrix):
            digest_sparse(matrix.data, matrix.indices, matrix.indptr, starts, stops, out)
        else:
            digest_dense(matrix, starts, stops, out)
    return out
