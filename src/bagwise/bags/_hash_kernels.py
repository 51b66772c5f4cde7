"""Compiled hashes of instances and of bags, by value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._jit import compiled

#: Bits of infinity in single precision; those of NaN are larger, but for the sign.
INFINITE = np.uint32(0x7F800000)


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
def single_bits(value: Any) -> Any:
    """Return the bits of a value in single precision; zeros of both signs are alike."""
    return np.float32(np.float32(value) + np.float32(0.0)).view(np.uint32)


@compiled
def pair_hash(low: Any, high: Any, key: Any) -> Any:
    """Hash the bits of two neighbours in a row: one multiplication of 32 by 32 bits."""
    left = np.uint64(low ^ np.uint32(key))
    right = np.uint64(high ^ np.uint32(key >> np.uint64(32)))
    product = left * right
    return product ^ (product >> np.uint64(32))


@compiled
def pair_hashes(n_features: int) -> Any:
    """Return the key of each pair of features, and the sum of the hashes of pairs of zeros."""
    keys, zeros = np.empty((n_features + 1) // 2, np.uint64), np.uint64(0)
    for j in range(len(keys)):
        keys[j] = scrambled(np.uint64(j))
        zeros += pair_hash(np.uint32(0), np.uint32(0), keys[j])
    return keys, zeros


@compiled
def magnitude(bits: Any) -> Any:
    """Return the bits of a value in single precision without its sign: they rise with its size."""
    return bits & np.uint32(0x7FFFFFFF)


@compiled
def digest_dense(
    X: NDArray[Any], starts: NDArray[Any], stops: NDArray[Any], out: NDArray[np.uint64]
) -> bool:
    """Hash bags of rows in any order; values in single precision.

    Returns whether all of them are finite in that precision.
    """
    n_pairs, last = X.shape[1] // 2, X.shape[1] - 1
    keys, zeros = pair_hashes(X.shape[1])
    largest = np.uint32(0)
    for b in range(len(starts)):
        out[b] = 0
        for i in range(starts[b], stops[b]):
            total = np.uint64(0)
            for j in range(n_pairs):
                low, high = single_bits(X[i, 2 * j]), single_bits(X[i, 2 * j + 1])
                total += pair_hash(low, high, keys[j])
                largest = max(largest, max(magnitude(low), magnitude(high)))
            if n_pairs < len(keys):
                bits = single_bits(X[i, last])
                total += pair_hash(bits, np.uint32(0), keys[n_pairs])
                largest = max(largest, magnitude(bits))
            out[b] += scrambled(total - zeros)
    return bool(largest < INFINITE)


@compiled
def digest_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    starts: NDArray[Any],
    stops: NDArray[Any],
    out: NDArray[np.uint64],
) -> bool:
    """Hash bags of rows of a CSR matrix like those of the same dense matrix.

    Returns whether all values are finite in single precision.

    The hash of a pair of features is added when the first of them comes, and put right if the other
    one follows. There is no branch on columns, which nothing could predict. Places are unsigned, as
    a look at whether one counts from the end would take as long as the hash.
    """
    nothing = largest = np.uint32(0)
    for b in range(len(starts)):
        out[b] = 0
        for i in range(starts[b], stops[b]):
            total, before, last = np.uint64(0), np.int64(-2), nothing
            for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                j = np.int64(indices[p])
                bits, key = single_bits(data[p]), scrambled(np.uint64(j >> 1))
                is_second = np.uint32(-(j & 1))  # all bits, or none
                first = last & is_second & np.uint32(-np.int64(before == j - 1))
                total += pair_hash((bits & ~is_second) | first, bits & is_second, key)
                total -= pair_hash(first, nothing, key)
                before, last = j, bits
                largest = max(largest, magnitude(bits))
            out[b] += scrambled(total)
    return bool(largest < INFINITE)
