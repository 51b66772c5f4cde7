"""Compiled loops over the rows of a kernel block, bag by bag.

A block holds the rows ``first`` and following of a chunk whose bags begin at ``offsets``; it may
begin and end in the middle of a bag. ``bag`` is the bag of its first row.
"""

from typing import Any

from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise._jit import compiled


@compiled
def add_bag_sums(
    block: NDArray[Any], first: int, bag: int, offsets: Integers, total: Floats
) -> None:
    """Add the rows of a block to the row of their bag, in double precision."""
    for i in range(block.shape[0]):
        while first + i >= offsets[bag + 1]:
            bag += 1
        row, sums = block[i], total[bag]
        for k in range(row.shape[0]):
            sums[k] += row[k]


@compiled
def weigh_rows(
    block: NDArray[Any],
    first: int,
    bag: int,
    offsets: Integers,
    factor: NDArray[Any],
    total: Floats,
) -> None:
    """Multiply each row of a block by the coefficients of its bag, and add up its columns."""
    for i in range(block.shape[0]):
        while first + i >= offsets[bag + 1]:
            bag += 1
        row, by = block[i], factor[bag]
        for k in range(row.shape[0]):
            row[k] *= by[k]
            total[k] += row[k]
