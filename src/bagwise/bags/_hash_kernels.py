"""Compiled hashes of instances and of bags, by value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._jit import compiled


@compiled
def scrambled(bits: Any) -> Any:
    """Mix 64 bits (the finaliser of the generator splitmix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled
def hash_dense(bits: NDArray[Any], seed: Any, out: NDArray[np.uint64]) -> None:
    """Hash the rows of a matrix, given as the bits of its entries; none is minus zero."""
    keys = np.empty(bits.shape[1], np.uint64)
    for j in range(len(keys)):
        keys[j] = scrambled(np.uint64(j))
    for i in range(bits.shape[0]):
        total = np.uint64(0)
        for j in range(bits.shape[1]):
            if bits[i, j] != 0:
                total += scrambled(np.uint64(bits[i, j]) ^ keys[j])
        out[i] = scrambled(total ^ seed)


@compiled
def hash_sparse(
    bits: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    seed: Any,
    out: NDArray[np.uint64],
) -> None:
    """Hash the rows of a CSR matrix like those of the same dense matrix."""
    for i in range(len(out)):
        total = np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            if bits[p] != 0:
                total += scrambled(np.uint64(bits[p]) ^ scrambled(np.uint64(indices[p])))
        out[i] = scrambled(total ^ seed)


@compiled
def digest_dense(
    X: NDArray[Any], starts: NDArray[Any], stops: NDArray[Any], out: NDArray[np.uint64]
) -> None:
    """Hash bags of rows in any order; values in single precision, zeros of both signs alike."""
    keys = np.empty(X.shape[1], np.uint64)
    for j in range(len(keys)):
        keys[j] = scrambled(np.uint64(j))
    for b in range(len(starts)):
        out[b] = 0
        for i in range(starts[b], stops[b]):
            total = np.uint64(0)
            for j in range(X.shape[1]):
                value = np.float32(X[i, j])
                if value != 0:
                    total += scrambled(np.uint64(value.view(np.uint32)) ^ keys[j])
            out[b] += scrambled(total)


@compiled
def digest_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    starts: NDArray[Any],
    stops: NDArray[Any],
    out: NDArray[np.uint64],
) -> None:
    """Hash bags of rows of a CSR matrix like those of the same dense matrix."""
    for b in range(len(starts)):
        out[b] = 0
        for i in range(starts[b], stops[b]):
            total = np.uint64(0)
            for p in range(indptr[i], indptr[i + 1]):
                value = np.float32(data[p])
                if value != 0:
                    key = scrambled(np.uint64(indices[p]))
                    total += scrambled(np.uint64(value.view(np.uint32)) ^ key)
            out[b] += scrambled(total)
