"""Compiled loops over the rows of bags.

Each bag is worked on alone, from its first row to its last, so any division of the bags among
threads gives the same bits.

Values are C-ordered matrices (rows x columns); ``starts`` and ``stops`` are rows of them; each loop
fills the rows ``first`` to ``last`` of its outputs, one row a bag.
"""

import numpy as np

from bagwise._jit import REASSOCIATE, compiled

_MANY_COLUMNS = 8  # from so many on, values are read row by row
_BLOCK_VALUES = 2**14  # that stay in the cache


@compiled
def fill_extreme(values, sign, starts, stops, first, last, best, where):
    """Write the largest value of each bag and column (smallest for sign -1) and its place.

    The earliest of equal values wins, and so does the first NaN. The loop has no branch on the
    values: random data would mispredict it a few times in every bag.
    """
    n_columns = values.shape[1]
    if n_columns >= _MANY_COLUMNS:  # along the rows, as they lie in memory
        for i in range(first, last):
            start = starts[i]
            for c in range(n_columns):
                best[i, c] = values[start, c]
                where[i, c] = 0
            for r in range(start + 1, stops[i]):
                for c in range(n_columns):
                    value, top = values[r, c], best[i, c]
                    better = (sign * value > sign * top) | ((value != value) & (top == top))
                    best[i, c] = value if better else top
                    where[i, c] = r - start if better else where[i, c]
        return
    for i in range(first, last):
        start, stop = starts[i], stops[i]
        for c in range(n_columns):
            top = sign * values[start, c]
            row = start
            any_nan = top != top
            for r in range(start + 1, stop):
                value = sign * values[r, c]
                row = r if value > top else row
                top = max(top, value)
                any_nan |= value != value
            if any_nan:
                row = start
                while values[row, c] == values[row, c]:
                    row += 1
            best[i, c] = values[row, c]
            where[i, c] = row - start


@compiled
def fill_range(values, starts, stops, first, last, low, high):
    """Write the smallest and the largest value of each bag and column; NaN if there is one."""
    n_columns = values.shape[1]
    least, most = np.empty(n_columns, values.dtype), np.empty(n_columns, values.dtype)
    for i in range(first, last):
        for c in range(n_columns):
            least[c] = most[c] = values[starts[i], c]
        for r in range(starts[i] + 1, stops[i]):
            for c in range(n_columns):
                value = values[r, c]
                is_nan = value != value
                least[c] = value if (value < least[c]) | is_nan else least[c]
                most[c] = value if (value > most[c]) | is_nan else most[c]
        for c in range(n_columns):
            low[i, c], high[i, c] = least[c], most[c]


@compiled
def fill_moments(values, starts, stops, first, last, mean, squares):
    """Write the mean of each bag and column, and the sum of squared differences from it.

    Only the first block of a bag is read twice: differences from its mean, and then from the mean
    so far, leave little to be taken off again.
    """
    n_columns = values.shape[1]
    n_block = max(1, _BLOCK_VALUES // max(1, n_columns))
    center, total, total_squares = (np.empty(n_columns), np.empty(n_columns), np.empty(n_columns))
    for i in range(first, last):
        start = starts[i]
        end = min(start + n_block, stops[i])
        center[:] = 0.0
        for r in range(start, end):
            for c in range(n_columns):
                center[c] += values[r, c]
        for c in range(n_columns):
            center[c] /= end - start
            squares[i, c] = 0.0
        for begin in range(start, stops[i], n_block):
            end = min(begin + n_block, stops[i])
            total[:] = 0.0
            total_squares[:] = 0.0
            for r in range(begin, end):
                for c in range(n_columns):
                    gap = values[r, c] - center[c]
                    total[c] += gap
                    total_squares[c] += gap * gap
            for c in range(n_columns):
                shift = total[c] / (end - start)
                center[c] += shift
                squares[i, c] += total_squares[c] - shift * total[c]
        for c in range(n_columns):
            mean[i, c] = center[c]


@compiled
def fill_sum(values, starts, stops, first, last, total):
    """Write the sum of each bag and column, accumulated in float64."""
    n_columns = values.shape[1]
    if n_columns == 1:  # half the time: the sum stays in a register
        for i in range(first, last):
            alone = 0.0
            for r in range(starts[i], stops[i]):
                alone += values[r, 0]
            total[i, 0] = alone
        return
    sums = np.empty(n_columns, np.float64)
    for i in range(first, last):
        sums[:] = 0.0
        for r in range(starts[i], stops[i]):
            for c in range(n_columns):
                sums[c] += values[r, c]
        for c in range(n_columns):
            total[i, c] = sums[c]


@compiled
def fill_weighted_sum(values, weights, starts, stops, first, last, total):
    """Write the sum of each bag and column with a weight per row, accumulated in float64."""
    n_columns = values.shape[1]
    sums = np.empty(n_columns, np.float64)
    for i in range(first, last):
        sums[:] = 0.0
        for r in range(starts[i], stops[i]):
            weight = np.float64(weights[r])
            for c in range(n_columns):
                sums[c] += weight * values[r, c]
        for c in range(n_columns):
            total[i, c] = sums[c]


@compiled
def fill_logsumexp(values, starts, stops, first, last, result):
    """Write the logarithm of the sum of exponentials, shifted by the maximum."""
    n_columns = values.shape[1]
    for i in range(first, last):
        for c in range(n_columns):
            top = values[starts[i], c]
            any_nan = top != top
            for r in range(starts[i] + 1, stops[i]):
                top = max(top, values[r, c])
                any_nan |= values[r, c] != values[r, c]
            if any_nan or np.isinf(top):
                result[i, c] = np.nan if any_nan else top
                continue
            total = 0.0
            for r in range(starts[i], stops[i]):
                total += np.exp(np.float64(values[r, c]) - top)
            result[i, c] = top + np.log(total)


@compiled
def fill_softmax(values, starts, stops, first, last, result):
    """Write exp(value - logsumexp of its bag) for each row; the bags must not share rows."""
    n_columns = values.shape[1]
    for i in range(first, last):
        for c in range(n_columns):
            top = values[starts[i], c]
            for r in range(starts[i] + 1, stops[i]):
                top = max(top, values[r, c])
            total = 0.0
            for r in range(starts[i], stops[i]):
                total += np.exp(np.float64(values[r, c]) - top)
            for r in range(starts[i], stops[i]):
                result[r, c] = np.exp(np.float64(values[r, c]) - top) / total


@compiled
def fill_scatter(bag_values, weights, starts, stops, first, last, rows):
    """Add each bag's value, times the weight of the row, to the rows of the bag."""
    n_columns = bag_values.shape[1]
    for i in range(first, last):
        for r in range(starts[i], stops[i]):
            for c in range(n_columns):
                rows[r, c] += weights[r] * bag_values[i, c]


@compiled(fastmath=REASSOCIATE)
def fill_scan_dense(instances, coef, intercept, starts, stops, first, last, best, where):
    """Score the rows of each bag with every column of a linear map and keep only the best.

    ``coef`` holds one contiguous row of weights per output. The dot product is the only sum that
    is re-ordered; it is the same for a row wherever the row stands. The first NaN wins, as in
    `fill_extreme`.
    """
    n_outputs, n_features = coef.shape
    for i in range(first, last):
        start = starts[i]
        for c in range(n_outputs):
            best[i, c] = -np.inf
            where[i, c] = 0
        for r in range(start, stops[i]):
            for c in range(n_outputs):
                score = instances.dtype.type(0.0)
                for j in range(n_features):
                    score += instances[r, j] * coef[c, j]
                score += intercept[c]
                top = best[i, c]
                if score > top or (score != score and top == top):
                    best[i, c] = score
                    where[i, c] = r - start


@compiled
def fill_scan_csr(data, indices, indptr, coef, intercept, starts, stops, first, last, best, where):
    """Do what `fill_scan_dense` does for CSR rows; ``coef`` has one row per feature here."""
    n_outputs = coef.shape[1]
    scores = np.empty(n_outputs, coef.dtype)
    for i in range(first, last):
        start = starts[i]
        for c in range(n_outputs):
            best[i, c] = -np.inf
            where[i, c] = 0
        for r in range(start, stops[i]):
            scores[:] = intercept
            for p in range(indptr[r], indptr[r + 1]):
                for c in range(n_outputs):
                    scores[c] += data[p] * coef[indices[p], c]
            for c in range(n_outputs):
                score, top = scores[c], best[i, c]
                if score > top or (score != score and top == top):
                    best[i, c] = score
                    where[i, c] = r - start
