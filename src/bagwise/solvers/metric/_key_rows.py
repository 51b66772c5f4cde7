"""One row of each positive bag, such that these rows and all others are apart: k-means of two."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.solvers._result import Certificate
from bagwise.solvers.metric._row_blocks import Pass, RowBlocks, checked_weight
from bagwise.solvers.metric._sweeps import check_sweeps, sweep_until_settled

_SOLVER = "solve_key_rows"
_TIE = 1e-12  # of the squared lengths: a smaller gain may be rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyRowsResult(Certificate):
    """Which row of each positive bag was chosen.

    ``objective`` is the sum of squared distances of the chosen rows from their mean, and of the
    others from theirs; ``history`` holds it from the start on, once for each sweep. ``residual`` is
    0 where no bag alone can lower it, else unknown.

    Parameters
    ----------
    chosen : ndarray of int of shape (n_positive,)
        The number of the row, among the rows of all bags.
    """

    chosen: Integers


def solve_key_rows(
    rows: NDArray[Any] | Pass,
    offsets: Integers,
    is_positive: Booleans,
    *,
    n_features: int | None = None,
    sample_weight: ArrayLike | None = None,
    start: Literal["means", "random"] | ArrayLike = "means",
    method: Literal["exact", "lloyd"] = "exact",
    max_iter: int = 100,
    rng: np.random.Generator | None = None,
) -> KeyRowsResult:
    r"""Choose a row of each positive bag, such that these rows and all others are two clusters.

    .. math:: \min_P \sum_{j \in P} w_j \|u_j - z_P\|^2 + \sum_{j \notin P} w_j \|u_j - z_R\|^2

    where P holds one row of each positive bag, and :math:`z_P`, :math:`z_R` are the weighted means
    of the rows in P and of all others. With the weights m of P and M of all rows and the mean
    :math:`\bar u` of all rows this is a constant less

    .. math:: \frac{M}{m (M - m)} \Bigl\| \sum_{j \in P} w_j (u_j - \bar u) \Bigr\|^2

    so that the sum of the chosen rows, seen from the mean, has to be as long as possible.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features), or callable
        The rows :math:`u_j`; or a function that returns an iterable of blocks of whole bags, each
        as the slice of its bags and their rows, in order.
    offsets : ndarray of int of shape (n_bags + 1,)
        Rows at which bags begin, and the number of rows.
    is_positive : ndarray of bool of shape (n_bags,)
        Which bags have a row in P. There has to be a row that cannot be in P.
    n_features : int, optional
        Needed if ``rows`` is a function.
    sample_weight : array-like of shape (n_bags,), optional
        Weights :math:`w` of the rows of each bag.
    start : {"means", "random"} or array-like of int of shape (n_positive,)
        The means of the positive bags, as if these were rows, until the first sweep; or any rows;
        or these rows, by their numbers among the rows of all bags.
    method : {"exact", "lloyd"}
        ``"exact"``: bag after bag gets the row that is best given those of all other bags.
        ``"lloyd"`` fixes both means for a sweep over all bags.
    max_iter : int
        Most sweeps over the bags, at least 1.
    rng : numpy.random.Generator, optional
        For a random start; by default always the same.

    Returns
    -------
    KeyRowsResult
        The rows. ``MAX_ITER`` means that the last sweep changed some.
    """
    started = perf_counter()
    check_sweeps(_SOLVER, max_iter, 1, method=method, start=start)
    offsets = np.asarray(offsets, np.int64)
    search = _Search(
        RowBlocks(_SOLVER, rows, offsets, n_features),
        np.asarray(is_positive, bool),
        checked_weight(_SOLVER, sample_weight, len(offsets) - 1),
    )
    if isinstance(start, str) and start == "means":
        search.begin_at_means()
    elif isinstance(start, str):
        search.begin_at(_random_rows(offsets, search.is_positive, rng or np.random.default_rng(0)))
    else:
        search.begin_at(np.array(start))
    found = sweep_until_settled(
        search, is_exact=method == "exact", max_iter=max_iter, started=started
    )
    return KeyRowsResult(
        **found,
        chosen=search.chosen[search.is_positive],
    )


class _Search:
    """A row of each positive bag, and the sum of these rows, seen from the mean of all."""

    def __init__(self, blocks: RowBlocks, is_positive: Booleans, weight: Floats) -> None:
        self.blocks, self.is_positive, self.weight = blocks, is_positive, weight
        sizes = np.diff(blocks.offsets)
        self.mass = float(weight @ sizes)
        self.chosen_mass = float(weight[is_positive].sum())
        if not 0 < is_positive.sum() < sizes.sum():
            msg = f"{_SOLVER} needs a positive bag, and a row that is not chosen."
            raise ValueError(msg)
        self.chosen = np.full(len(weight), -1, np.int64)
        self.center = np.zeros(blocks.n_features)
        for block in blocks:
            kernels().add_rows(block.rows, block.starts, weight[block.bags], self.center)
        self.center /= self.mass
        self.scatter: float = sum(
            kernels().scatter(block.rows, block.starts, weight[block.bags], self.center)
            for block in blocks
        )
        self.total = np.zeros(blocks.n_features)

    def begin_at_means(self) -> None:
        """Start with the mean of each positive bag, as if it were one of its rows."""
        for block in self.blocks:
            kernels().add_means(
                block.rows, block.starts, self.weight[block.bags], self.is_positive[block.bags],
                self.center, self.total,
            )  # fmt: skip

    def begin_at(self, chosen: Integers) -> None:
        """Start with given rows."""
        offsets, mine = self.blocks.offsets, np.flatnonzero(self.is_positive)
        is_plain = chosen.shape == mine.shape and chosen.dtype.kind in "iu"
        if not is_plain or (chosen < offsets[mine]).any() or (chosen >= offsets[mine + 1]).any():
            msg = f"{_SOLVER}: start must hold a row of each of the {len(mine)} positive bags."
            raise ValueError(msg)
        self.chosen[mine] = chosen
        self._add_up()

    def improve(self, *, is_exact: bool) -> int:
        """Sweep over the positive bags once; return how many have changed.

        Where means stand for bags, the first rows are those that lie furthest in their direction.
        """
        is_exact = is_exact and bool((self.chosen[self.is_positive] >= 0).all())
        n_changes = self._sweep(is_exact=is_exact)
        if n_changes and not is_exact:
            self._add_up()
        return n_changes

    @property
    def objective(self) -> float:
        """The sum of squared distances from the means of both clusters."""
        rest = self.mass - self.chosen_mass
        between = self.mass / (self.chosen_mass * rest) * float(self.total @ self.total)
        return max(0.0, self.scatter - between)

    def _sweep(self, *, is_exact: bool) -> int:
        n_changes = 0
        for block in self.blocks:
            mine = self.chosen[block.bags]
            places = np.where(mine < 0, -1, mine - block.own.start)
            n_changes += kernels().choose_rows(
                block.rows, block.starts, self.weight[block.bags], self.is_positive[block.bags],
                self.center, is_exact, _TIE, places, self.total,
            )  # fmt: skip
            mine[:] = np.where(places < 0, -1, places + block.own.start)
        return n_changes

    def _add_up(self) -> None:
        """Compute the sum of the chosen rows anew."""
        self.total = np.zeros(self.blocks.n_features)
        for block in self.blocks:
            some = self.is_positive[block.bags]
            rows = block.rows[self.chosen[block.bags][some] - block.own.start]
            self.total += self.weight[block.bags][some] @ (rows - self.center)


def _random_rows(offsets: Integers, is_positive: Booleans, rng: np.random.Generator) -> Integers:
    """Return a row of each positive bag, all as likely."""
    sizes = np.diff(offsets)[is_positive]
    return offsets[:-1][is_positive] + (rng.random(len(sizes)) * sizes).astype(np.int64)


def kernels() -> Any:
    """Return the compiled loops, loaded when they are first needed."""
    from bagwise.solvers.metric import _key_rows_kernels

    return _key_rows_kernels
