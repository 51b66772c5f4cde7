"""Kernel blocks between all instances and a few vectors: means of bags, and their derivatives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import checkpoint, ordered_map
from bagwise.bags import Bags, BagSource, Chunk, parse_bytes
from bagwise.kernels import (
    InstanceKernel,
    check_differentiable,
    finished_gradient,
    slope_kernel,
    weighted_rows,
)

_BLOCK_BYTES = 1 << 19  # of a kernel block: it stays in the cache from one step to the next
_LEAST_ROWS, _MOST_ROWS = 128, 8192


@dataclass(frozen=True)
class _Piece:
    """Some rows of a chunk, perhaps from the middle of a bag to the middle of another."""

    instances: Any
    norms: NDArray[Any]
    first: int
    bag: int
    offsets: Integers


class KernelMeans:
    """Means over each bag of the kernel between its instances and vectors ``Z``.

    What `minimize_expansion` sees of the data. Instances are walked in the chunks of `BagSource`,
    and those in pieces that fit the cache, on a grid that depends on shapes alone: the number of
    threads, memory and where the instances are do not change a bit of the results.

    Parameters
    ----------
    bags : Bags
        In memory or memory-mapped, dense or CSR.
    kernel : InstanceKernel
        Any; `gradient` is for those in `bagwise.kernels.DIFFERENTIABLE`.
    n_vectors : int
        Number of rows of ``Z``.
    max_memory : int, str or None
        Bytes, or text like ``"512MB"``. If the kernel between all instances and all vectors, with
        copies of the instances where these are no view (CSR, or bags picked from many), takes no
        more, it is kept from `means` to `gradient`, which then costs one product; else it is
        computed again, piece by piece, and of bags in a file the limit bounds what chunks in flight
        take, as in `BagSource`. None always keeps it.
    keep : bool
        Whether it may be kept; what only asks for `means`, once, does not need it. Then
        ``max_memory`` always bounds the chunks in flight.
    n_threads : int or None
        Number of threads.
    """

    def __init__(
        self,
        bags: Bags,
        kernel: InstanceKernel,
        n_vectors: int,
        *,
        max_memory: int | str | None = None,
        keep: bool = True,
        n_threads: int | None = None,
    ) -> None:
        self.kernel, self.dtype = kernel, bags.dtype
        self.n_bags, self.n_features, self.n_vectors = len(bags), bags.n_features, n_vectors
        width = n_vectors * bags.dtype.itemsize
        n_bytes = parse_bytes(max_memory)
        held = bags.n_instances * width + BagSource(bags).copied_bytes
        self.keeps = keep and (n_bytes is None or held <= n_bytes)
        is_here = keep and not (bags.is_memory_mapped or bags.is_lazy)  # chunks take no memory
        limit = None if self.keeps or is_here else n_bytes
        self._source = BagSource(bags, n_threads=n_threads, max_memory=limit, scratch=width)
        self._sizes = bags.sizes[:, None].astype(np.float64)
        self.n_rows = min(max(_BLOCK_BYTES // width, _LEAST_ROWS), _MOST_ROWS)
        self._n_threads = 1 if self._source.n_chunks == 1 else n_threads
        self._norms = np.empty(bags.n_instances, self.dtype)
        self._block: NDArray[Any] | None = None
        self._block_of: NDArray[Any] | None = None  # the vectors whose kernel the block holds
        if self.keeps:
            self._block = np.empty((bags.n_instances, n_vectors), self.dtype)
            self._chunks = list(self._source.map(self._prepared))
        else:
            for _ in self._source.map(self._measure):
                pass

    # ------------------------------------------------------------------------------ questions

    def cast(self, Z: Floats) -> NDArray[Any]:
        """Return vectors in the precision of the instances: those that are really used."""
        return np.ascontiguousarray(Z, self.dtype)

    def gram(self, Z: NDArray[Any]) -> Floats:
        """Return the kernel between the vectors, in double precision."""
        return self.kernel.gram(Z.astype(np.float64), n_threads=1)

    def means(self, Z: NDArray[Any]) -> Floats:
        """Return the mean kernel of each bag with each of the vectors, (n_bags, n_vectors)."""
        out = np.zeros((self.n_bags, self.n_vectors))
        right = self.kernel.norms(Z, self.dtype)
        self._block_of = None

        def add(chunk: Chunk, pieces: Iterator[_Piece]) -> None:
            from bagwise.solvers.expansion._expansion_kernels import add_bag_sums

            total, kept = out[chunk.span], self._kept(chunk)
            for piece, block in self._blocks(pieces, kept):
                self._fill(self.kernel, piece, Z, right, block)
                add_bag_sums(block, piece.first, piece.bag, piece.offsets, total)

        for _ in self._map(add):
            pass
        self._block_of = Z
        out /= self._sizes
        return out

    def gradient(self, Z: NDArray[Any], V: Floats) -> Floats:
        """Return the derivative of ``(V * means(Z)).sum()`` with respect to ``Z``.

        It saves a product if the last call of `means` was with the same array ``Z`` and the kernel
        was kept; the kernel is used up.
        """
        check_differentiable(self.kernel)
        V = V / self._sizes
        known = self.keeps and self._block_of is Z
        self._block_of = None
        right = self.kernel.norms(Z, self.dtype)
        slopes = slope_kernel(self.kernel)
        is_known = known and slopes is self.kernel

        def gather(chunk: Chunk, pieces: Iterator[_Piece]) -> tuple[Floats, Floats]:
            from bagwise.solvers.expansion._expansion_kernels import weigh_rows

            products = np.zeros((self.n_vectors, self.n_features))
            sums = np.zeros(self.n_vectors)
            factor, kept = V[chunk.span], self._kept(chunk)
            for piece, block in self._blocks(pieces, kept):
                if slopes is None:
                    block.fill(1.0)
                elif not is_known:
                    self._fill(slopes, piece, Z, right, block)
                weigh_rows(block, piece.first, piece.bag, piece.offsets, factor, sums)
                products += weighted_rows(self.kernel, piece.instances, block)
            return products, sums

        results = iter(self._map(gather))
        products, sums = next(results)
        for more_products, more_sums in results:
            products += more_products
            sums += more_sums
        return finished_gradient(self.kernel, Z, products, sums)

    # ------------------------------------------------------------------------------ the loop

    def _fill(
        self,
        kernel: InstanceKernel,
        piece: _Piece,
        Z: NDArray[Any],
        right: NDArray[Any],
        block: NDArray[Any],
    ) -> None:
        kernel.formula.fill(kernel, piece.instances, Z, piece.norms, right, block)

    def _map(self, function: Callable[[Chunk, Iterator[_Piece]], Any]) -> Iterator[Any]:
        if self.keeps:
            return ordered_map(
                lambda prepared: self._again(function, *prepared),
                self._chunks,
                n_threads=self._n_threads,
            )
        return self._source.map(lambda chunk: function(chunk, self._pieces(chunk)))

    def _again(
        self,
        function: Callable[[Chunk, Iterator[_Piece]], Any],
        chunk: Chunk,
        pieces: list[_Piece],
    ) -> Any:
        """Apply a function to a chunk that is kept: of a file, it is still in the file."""
        self._source.refuse_changed()
        return function(chunk, iter(pieces))

    def _prepared(self, chunk: Chunk) -> tuple[Chunk, list[_Piece]]:
        self._measure(chunk)
        return chunk, list(self._pieces(chunk))

    def _measure(self, chunk: Chunk) -> None:
        """Learn the norms of the instances, and refuse those that the kernel cannot take."""
        self._norms[chunk.rows] = self.kernel.norms(chunk.instances, self.dtype, chunk.rows)

    def _pieces(self, chunk: Chunk) -> Iterator[_Piece]:
        instances, offsets, norms = chunk.instances, chunk.bags.offsets, self._norms[chunk.rows]
        for first in range(0, instances.shape[0], self.n_rows):
            rows = slice(first, first + self.n_rows)
            bag = int(np.searchsorted(offsets, first, side="right")) - 1
            yield _Piece(instances[rows], norms[rows], first, bag, offsets)

    def _kept(self, chunk: Chunk) -> NDArray[Any] | None:
        return None if self._block is None else self._block[chunk.rows]

    def _blocks(
        self, pieces: Iterator[_Piece], kept: NDArray[Any] | None
    ) -> Iterator[tuple[_Piece, NDArray[Any]]]:
        """Yield pieces, each with memory for its kernel block: the kept one or the same again."""
        memory = np.empty((self.n_rows, self.n_vectors), self.dtype) if kept is None else None
        for piece in pieces:
            checkpoint()
            n_rows = piece.instances.shape[0]
            if memory is not None:
                yield piece, memory[:n_rows]
            elif kept is not None:
                yield piece, kept[piece.first : piece.first + n_rows]
