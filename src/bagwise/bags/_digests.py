"""Numbers by which bags are known again."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bagwise._threads import ordered_map, short_slices
from bagwise.bags._bags import Bags
from bagwise.bags._files import files_of, refuse_changed
from bagwise.bags._source import BagSource, in_parts


def bag_digests(bags: Bags) -> NDArray[np.uint64]:
    """Return a number for each bag by which it is known again.

    Bags have the same number if they hold the same instances in single precision, in whatever
    order, dense or sparse. Others have another one, but for a rare accident: numbers have 64 bits.
    It guards against mistakes, not against malice.

    Parameters
    ----------
    bags : Bags
        In memory, memory-mapped or lazy; nothing of them is copied.

    Returns
    -------
    ndarray of uint64 of shape (n_bags,)
        The numbers.

    Raises
    ------
    InvalidBagsError
        A value is infinite, or NaN in bags that were made without ``allow_nan``, as in a file that
        something else wrote to. The message names bag, instance and feature.

    Examples
    --------
    >>> from bagwise.bags import Bags, bag_digests
    >>> first, second, third = bag_digests(Bags([[1.0], [2.0], [2.0], [1.0], [3.0]], [0, 2, 4, 5]))
    >>> first == second, first == third
    (np.True_, np.False_)
    """
    digests: NDArray[np.uint64] = in_parts(bags, _digests_of)
    return digests


def _digests_of(bags: Bags) -> NDArray[np.uint64]:
    from bagwise.bags._hash_kernels import digest_dense, digest_sparse

    matrix, starts, stops = bags.segments
    files = files_of(matrix)
    out = np.empty(len(starts), np.uint64)
    is_sparse = sp.issparse(matrix)
    width = matrix.nnz / max(1, matrix.shape[0]) if is_sparse else matrix.shape[1]
    seconds = 3e-10 * width * bags.n_instances / len(bags) if len(bags) else 0.0

    def digest(piece: slice) -> bool:
        refuse_changed(files)  # so that it is told early
        where = starts[piece], stops[piece], out[piece]
        with np.errstate(over="ignore", under="ignore"):
            if is_sparse:
                return digest_sparse(matrix.data, matrix.indices, matrix.indptr, *where)
            return digest_dense(matrix, *where)

    if not all(list(ordered_map(digest, short_slices(len(starts), seconds)))):
        # Some value is no number in single precision: perhaps it is one in double precision.
        BagSource(bags).refuse_nonfinite(allow_nan=bags.allow_nan)
    return out
