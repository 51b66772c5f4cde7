"""Transformers that are fitted chunk by chunk, so that the instances need not fit in memory."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import gen_batches, get_tags

from bagwise.bags import Bags, BagSource


def fits_in_chunks(transformer: Any) -> bool:
    """Tell whether a transformer has ``partial_fit``, or nothing to learn."""
    return hasattr(transformer, "partial_fit") or not get_tags(transformer).requires_fit


def fit_in_chunks(
    transformer: Any, bags: Bags, labels: NDArray[Any] | None, max_memory: int | str | None
) -> Any:
    """Fit a transformer in one pass over the instances, and return it.

    Parameters
    ----------
    transformer : transformer
        One that `fits_in_chunks`. If it has a ``batch_size``, it gets so many rows at a time, as
        its own ``fit`` would hand them out.
    bags : Bags
        In memory, memory-mapped or lazy.
    labels : ndarray of shape (n_instances,) or None
        Labels of the instances, for transformers that use them.
    max_memory : int, str or None
        Bound on what the chunks in flight take.
    """
    if not hasattr(transformer, "partial_fit"):
        own = None if labels is None else labels[: bags.sizes[0]]
        return transformer.fit(bags[0], own)
    source, start = BagSource(bags, max_memory=max_memory), 0
    lengths = _batch_lengths(transformer, bags.n_instances, bags.n_features)
    with closing(source.map(lambda chunk: chunk.instances)) as chunks:
        for rows in _batches(chunks, lengths):
            stop = start + rows.shape[0]
            transformer.partial_fit(rows, None if labels is None else labels[start:stop])
            start = stop
    return transformer


def _batch_lengths(transformer: Any, n_instances: int, n_features: int) -> list[int] | None:
    """Return how many rows the transformer takes at a time; None if it does not mind."""
    if not hasattr(transformer, "batch_size"):
        return None
    size = int(transformer.batch_size or 5 * n_features)  # as IncrementalPCA has it
    least = getattr(transformer, "n_components", None) or 0
    cut = gen_batches(n_instances, size, min_batch_size=least)
    return [batch.stop - batch.start for batch in cut]


def _batches(chunks: Iterator[Any], lengths: list[int] | None) -> Iterator[Any]:
    """Yield the rows of chunks in matrices of these lengths."""
    if lengths is None:
        yield from chunks
        return
    rows = next(chunks)
    for length in lengths:
        waiting = [rows]
        while sum(part.shape[0] for part in waiting) < length:
            waiting.append(next(chunks))
        rows = _stacked(waiting)
        yield rows[:length]
        rows = rows[length:]


def _stacked(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
