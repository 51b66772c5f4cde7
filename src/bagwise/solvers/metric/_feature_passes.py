"""Sums over the features of all rows, chunk by chunk, wherever the rows lie."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise._progress import report
from bagwise._threads import ordered_map
from bagwise.bags import BagSource, Chunk
from bagwise.solvers.metric._whitening import Basis

#: Features from which on a Gram matrix is cut into tiles, and their width.
_WIDE, _TILE = 1024, 512
_ROWS = 2048  # rows that are gathered before they are added to a Gram matrix

Features = Callable[[Any], NDArray[Any]]


def dense(rows: Any) -> NDArray[Any]:
    """Return rows as an array: the features of the linear kernel."""
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


class FeaturePasses:
    """Weighted rows that are turned into features when they are read.

    Parameters
    ----------
    source : BagSource
        Bags of rows.
    weight : ndarray of shape (n_bags,)
        Weights of bags.
    features : callable
        Turns rows into features; by default they are the rows themselves.
    """

    def __init__(self, source: BagSource, weight: Floats, features: Features = dense) -> None:
        self.source = source
        self.weight = weight
        self.features = features

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.bags.n_instances

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.features(self.source.bags[:1].instances).shape[1])

    def centred(self, mean: Floats) -> "FeaturePasses":
        """Return passes over the features less their mean."""
        plain = self.features

        def features(rows: Any) -> NDArray[Any]:
            x = plain(rows)
            return np.asarray(x - mean.astype(x.dtype))

        return FeaturePasses(self.source, self.weight, features)

    def all_rows(self) -> Any:
        """Return the features of all rows at once; rows that are features stay as they are."""
        rows = self.source.bags.instances
        return rows if self.features is dense else self.features(rows)

    def mean(self) -> Floats:
        """Return the weighted mean of the features."""

        def add(chunk: Chunk) -> tuple[Floats, float]:
            weight = self._row_weight(chunk)
            return weight @ self.features(chunk.instances), float(weight.sum())

        total, mass = self.source.reduce(add)
        return np.asarray(total / mass)

    def gram(self, chosen: Booleans | None = None) -> NDArray[Any]:
        r"""Return :math:`\sum_j w_j x_j x_j^\top`, in the precision of the features.

        It does not depend on the number of threads, or on where the rows lie.

        Parameters
        ----------
        chosen : ndarray of bool of shape (n_rows,), optional
            The rows to add up; by default all.
        """

        def rows(chunk: Chunk) -> NDArray[Any]:
            x, root = self.features(chunk.instances), np.sqrt(self._row_weight(chunk))
            if chosen is not None:
                x, root = x[chosen[chunk.rows]], root[chosen[chunk.rows]]
            return x if (root == 1.0).all() else np.asarray(x * root[:, None].astype(x.dtype))

        total: NDArray[Any] | None = None
        for number, x in enumerate(_gathered(self.source.map(rows)), 1):
            if total is None:
                total = np.zeros((x.shape[1], x.shape[1]), x.dtype)
            _add_lower(total, x)
            report("block", number)
        assert total is not None  # a source has a chunk at least
        return np.asarray(np.tril(total) + np.tril(total, -1).T)

    def label_sums(self, labels: Integers, n_labels: int) -> tuple[Floats, Floats]:
        """Return the weighted sum of the rows of each label, and their weight.

        Parameters
        ----------
        labels : ndarray of int of shape (n_rows,)
            The label of each row, -1 for none.
        n_labels : int
            Number of labels.
        """
        from bagwise.solvers.metric._label_assignment_kernels import add_members

        sums: Floats | None = None
        mass, members = np.zeros(n_labels), np.zeros(n_labels, np.int64)
        for chunk, x in self.source.map(lambda chunk: (chunk, self.features(chunk.instances))):
            sums = np.zeros((n_labels, x.shape[1])) if sums is None else sums
            add_members(
                np.ascontiguousarray(x), chunk.bags.offsets, self.weight[chunk.span],
                labels[chunk.rows], sums, mass, members,
            )  # fmt: skip
        assert sums is not None
        return sums, mass

    def label_scatter(self, labels: Integers, centers: Floats) -> Floats:
        """Return the weighted sum of squared distances of the rows of each label from its centre.

        Parameters
        ----------
        labels : ndarray of int of shape (n_rows,)
            The label of each row.
        centers : ndarray of shape (n_labels, n_features)
            The centres.
        """

        def add(chunk: Chunk) -> Floats:
            apart = self.features(chunk.instances) - centers[labels[chunk.rows]]
            square = self._row_weight(chunk) * np.einsum("ij,ij->i", apart, apart)
            return np.asarray(np.bincount(labels[chunk.rows], square, len(centers)), np.float64)

        return np.asarray(self.source.reduce(add))

    def whitened(
        self, basis: Basis, keep_bytes: float
    ) -> Callable[[], Iterator[tuple[slice, NDArray[Any]]]]:
        """Return a function that walks over the rows in the coordinates of a basis.

        Parameters
        ----------
        basis : Basis
            The coordinates.
        keep_bytes : float
            They are kept if they are not larger than this, else computed in each pass.
        """

        def walk() -> Iterator[tuple[slice, NDArray[Any]]]:
            return self.source.map(
                lambda chunk: (
                    chunk.span,
                    np.ascontiguousarray(basis.whiten(self.features(chunk.instances))),
                )
            )

        if self.n_rows * basis.n_components * basis.factor.itemsize > keep_bytes:
            return walk
        kept: list[tuple[slice, NDArray[Any]]] = []

        def again() -> Iterator[tuple[slice, NDArray[Any]]]:
            if not kept:
                kept.extend(walk())
            return iter(kept)

        return again

    def _row_weight(self, chunk: Chunk) -> Floats:
        return np.repeat(self.weight[chunk.span], chunk.bags.sizes)


def _gathered(blocks: Iterator[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Yield several blocks at a time: large products are faster."""
    waiting: list[NDArray[Any]] = []
    for x in blocks:
        waiting.append(x)
        if sum(map(len, waiting)) >= _ROWS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _add_lower(total: NDArray[Any], x: NDArray[Any]) -> None:
    """Add ``x.T @ x`` to the lower half of a matrix, tile by tile in threads if it is wide."""
    d = len(total)
    width = d if d <= _WIDE else _TILE

    def add(begin: int) -> None:
        tile, before = slice(begin, begin + width), slice(0, begin + width)
        total[tile, before] += x[:, tile].T @ x[:, before]  # rows of the sum are contiguous

    for _ in ordered_map(add, range(0, d, width)):
        pass
