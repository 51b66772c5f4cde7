"""Which instance of a bag bears which label of its list: k-means within the lists."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats, Integers
from bagwise.solvers._result import Certificate
from bagwise.solvers.metric._row_blocks import Pass, RowBlock, RowBlocks, checked_weight
from bagwise.solvers.metric._sweeps import check_sweeps, sweep_until_settled

_SOLVER = "solve_label_assignments"
_TIE = 1e-12  # of the squared norms of a bag: a smaller gain may be rounding


@dataclass(frozen=True)
class LabelLists:
    """Bags of rows, and the labels that the rows of each may bear.

    Parameters
    ----------
    offsets : ndarray of int of shape (n_bags + 1,)
        Rows at which bags begin, and the number of rows.
    starts, labels : ndarray of int
        The labels of bag i are ``labels[starts[i]:starts[i + 1]]``, each once.
    n_labels : int
        Number of labels.
    """

    offsets: Integers
    starts: Integers
    labels: Integers
    n_labels: int

    @classmethod
    def from_indicator(cls, offsets: Integers, indicator: NDArray[Any]) -> "LabelLists":
        """Take the lists from a matrix with a row for each bag and a column for each label."""
        bags, labels = np.nonzero(indicator)
        starts = np.searchsorted(bags, np.arange(len(indicator) + 1))
        return cls(
            np.asarray(offsets, np.int64), starts.astype(np.int64), labels.astype(np.int64),
            indicator.shape[1],
        )  # fmt: skip

    @property
    def sizes(self) -> Integers:
        """Number of rows of each bag."""
        return np.diff(self.offsets)

    @property
    def lengths(self) -> Integers:
        """Number of labels of each bag."""
        return np.diff(self.starts)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelAssignmentResult(Certificate):
    """Which row bears which label.

    ``objective`` is the sum of squared distances of rows from the means of their labels;
    ``history`` holds it from the start on, once for each sweep. ``residual`` is 0 where no bag
    alone can lower it, else unknown.

    Parameters
    ----------
    labels : ndarray of int of shape (n_rows,)
        The label of each row, -1 if it bears none.
    sums : ndarray of shape (n_labels, n_features)
        The weighted sum of the rows of each label.
    mass : ndarray of shape (n_labels,)
        The weight of the rows of each label; 0 if there are none.
    """

    labels: Integers
    sums: Floats
    mass: Floats


def solve_label_assignments(
    rows: NDArray[Any] | Pass,
    lists: LabelLists,
    *,
    n_features: int | None = None,
    sample_weight: ArrayLike | None = None,
    start: Literal["means", "random"] | ArrayLike = "means",
    method: Literal["exact", "lloyd"] = "exact",
    max_iter: int = 100,
    rng: np.random.Generator | None = None,
) -> LabelAssignmentResult:
    r"""Give rows labels from the lists of their bags, such that rows of a label are close.

    .. math:: \min_H \sum_j \sum_c w_j H_{jc} \|u_j - z_c(H)\|^2

    where :math:`z_c` is the mean of the rows of label c. In each bag i with :math:`n_i` rows and
    :math:`l_i` labels, :math:`\min(n_i, l_i)` rows bear a label, each another one.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features), or callable
        The rows :math:`u_j`; or a function that returns an iterable of blocks of whole bags, each
        as the slice of its bags and their rows, in order.
    lists : LabelLists
        Bags and their labels.
    n_features : int, optional
        Needed if ``rows`` is a function.
    sample_weight : array-like of shape (n_bags,), optional
        Weights :math:`w` of the rows of each bag.
    start : {"means", "random"} or array-like of int of shape (n_rows,)
        ``"means"``: the cheapest labels if the mean of a label is that of the means of all bags
        that list it. ``"random"``: each way to label a bag is as likely. Or labels.
    method : {"exact", "lloyd"}
        ``"exact"``: bag after bag gets the labels that are best given all other bags, which
        counts that an instance pulls the mean of its label towards itself. ``"lloyd"`` fixes the
        means for a sweep over all bags; it is Algorithm 1 of [1]_, and stops much earlier.
    max_iter : int
        Most sweeps over the bags.
    rng : numpy.random.Generator, optional
        For a random start; by default always the same.

    Returns
    -------
    LabelAssignmentResult
        The labels. ``MAX_ITER`` means that the last sweep changed some.

    References
    ----------
    .. [1] M. T. Law, Y. Yu, R. Urtasun, R. S. Zemel, E. P. Xing: Efficient multiple instance metric
       learning using weakly supervised data. CVPR 2017.
    """
    started = perf_counter()
    check_sweeps(_SOLVER, max_iter, 0, method=method, start=start)
    search = _Search(rows, lists, n_features, sample_weight)
    if isinstance(start, str) and start == "means":
        search.begin_at_means()
    elif isinstance(start, str):
        search.begin_at(_random_labels(lists, rng or np.random.default_rng(0)))
    else:
        search.begin_at(np.array(start))
    found = sweep_until_settled(
        search, is_exact=method == "exact", max_iter=max_iter, started=started
    )
    return LabelAssignmentResult(
        **found,
        labels=search.labels,
        sums=search.sums,
        mass=search.mass,
    )


class _Search:
    """Labels, and the sums over the rows of each."""

    def __init__(
        self,
        rows: NDArray[Any] | Pass,
        lists: LabelLists,
        n_features: int | None,
        sample_weight: ArrayLike | None,
    ) -> None:
        n_bags, n_rows = len(lists.sizes), int(lists.offsets[-1])
        self.blocks = RowBlocks(_SOLVER, rows, lists.offsets, n_features)
        self.weight = checked_weight(_SOLVER, sample_weight, n_bags)
        self.lists = lists
        self.labels = np.full(n_rows, -1, np.int64)
        self.squares = np.empty(n_rows)
        self.is_settled = np.zeros(n_bags, bool)
        self._empty()
        self._measure()

    def _empty(self) -> None:
        self.sums = np.zeros((self.lists.n_labels, self.blocks.n_features))
        self.mass = np.zeros(self.lists.n_labels)
        self.members = np.zeros(self.lists.n_labels, np.int64)

    def _measure(self) -> None:
        for block in self.blocks:
            kernels().square_norms(block.rows, self.squares[block.own])

    def begin_at_means(self) -> None:
        """Start with the labels that are cheapest if bag means are all that is known."""
        for block in self.blocks:
            kernels().add_bag_means(
                block.rows, block.starts, self._list_starts(block), self.lists.labels,
                self.weight[block.bags], self.sums, self.mass, self.members,
            )  # fmt: skip
        self._sweep(is_exact=False)
        self._add_up()

    def begin_at(self, labels: Integers) -> None:
        """Start with given labels."""
        _check_labels(labels, self.lists)
        self.labels[:] = labels
        self._add_up()

    def improve(self, *, is_exact: bool) -> int:
        """Sweep over all bags once; return how many have changed."""
        n_changes = self._sweep(is_exact=is_exact)
        if not is_exact and n_changes:
            self._add_up()
        return n_changes

    @property
    def objective(self) -> float:
        """The sum of squared distances of the rows from the means of their labels."""
        weight = np.repeat(self.weight, self.lists.sizes)[self.labels >= 0]
        total = float(weight @ self.squares[self.labels >= 0])
        used = self.mass > 0
        return max(0.0, total - float((self.sum_squares[used] / self.mass[used]).sum()))

    def _add_up(self) -> None:
        """Compute the sums of labels anew."""
        self._empty()
        for block in self.blocks:
            kernels().add_members(
                block.rows, block.starts, self.weight[block.bags], self.labels[block.own],
                self.sums, self.mass, self.members,
            )  # fmt: skip
        self.sum_squares = np.einsum("ij,ij->i", self.sums, self.sums)
        self.is_settled = (self.lists.sizes == 1) & (self.lists.lengths == 1)

    def _sweep(self, *, is_exact: bool) -> int:
        self.sum_squares = np.einsum("ij,ij->i", self.sums, self.sums)
        return sum(
            kernels().sweep(
                block.rows, self.squares[block.own], block.starts, self._list_starts(block),
                self.lists.labels, self.weight[block.bags], self.labels[block.own], self.sums,
                self.sum_squares, self.mass, self.members, is_exact, _TIE,
                self.is_settled[block.bags],
            )
            for block in self.blocks
        )  # fmt: skip

    def _list_starts(self, block: RowBlock) -> Integers:
        """Return where the lists of the bags of a block begin, and where the last one ends."""
        return self.lists.starts[block.bags.start : block.bags.stop + 1]


def kernels() -> Any:
    """Return the compiled loops, loaded when they are first needed."""
    from bagwise.solvers.metric import _label_assignment_kernels

    return _label_assignment_kernels


def _check_labels(labels: Integers, lists: LabelLists) -> None:
    """Refuse labels that are not those of the lists, each once and as many as there can be."""
    n_rows, k = int(lists.offsets[-1]), lists.n_labels
    is_plain = labels.shape == (n_rows,) and labels.dtype.kind in "iu"
    if not is_plain or labels.min(initial=0) < -1 or labels.max(initial=0) >= k:
        msg = f"{_SOLVER}: start must hold a label or -1 for each of the {n_rows} rows."
        raise ValueError(msg)
    bag = np.repeat(np.arange(len(lists.sizes)), lists.sizes)[labels >= 0]
    given = bag * k + labels[labels >= 0]
    listed = np.repeat(np.arange(len(lists.sizes)), lists.lengths) * k + lists.labels
    number = np.bincount(bag, minlength=len(lists.sizes))
    is_full = (number == np.minimum(lists.sizes, lists.lengths)).all()
    if len(np.unique(given)) != len(given) or not np.isin(given, listed).all() or not is_full:
        msg = (
            f"{_SOLVER}: start must use labels of the list of each bag, each once, and as many as "
            "there are rows or labels."
        )
        raise ValueError(msg)


def _random_labels(lists: LabelLists, rng: np.random.Generator) -> Integers:
    """Return labels that the lists allow, all as likely."""
    labels = np.full(int(lists.offsets[-1]), -1, np.int64)
    # Random keys sort the rows and the labels of each bag: the first of both belong together.
    rows, names = (
        np.lexsort((rng.random(int(ends[-1])), np.repeat(np.arange(len(ends) - 1), np.diff(ends))))
        for ends in (lists.offsets, lists.starts)
    )
    number = np.minimum(lists.sizes, lists.lengths)
    inside = np.arange(int(number.sum())) - np.repeat(np.cumsum(number) - number, number)
    row = rows[np.repeat(lists.offsets[:-1], number) + inside]
    labels[row] = lists.labels[names[np.repeat(lists.starts[:-1], number) + inside]]
    return labels
