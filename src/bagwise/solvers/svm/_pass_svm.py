"""Linear support vector machines on rows that are too many to hold: the unit of work is a pass.

Three methods share one pair of bounds. Where many rows fall short of their targets, Newton steps
on a smoothed hinge use all rows for the gradient and a sample for the curvature; the smoothing is
moved to the last multipliers and sharpened until it costs less than asked for. Where features are
too many for that, coordinate steps in the dual come first. Where few rows matter, a working set of
them is solved exactly in memory, one pass finds the rows that it leaves short, and these join.
Multipliers of each method are feasible for the whole problem and bound it from below; the objective
of each point, known after a pass, bounds it from above.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bagwise._arrays import Floats, Integers, Signs
from bagwise._threads import single_blas_thread
from bagwise.solvers._checks import check_limits, checked_array, checked_terms
from bagwise.solvers._result import Result
from bagwise.solvers.operators._feature_rows import checked_index
from bagwise.solvers.operators._pass_rows import PassRows
from bagwise.solvers.svm._pass_svm_loose import LooseSearch
from bagwise.solvers.svm._pass_svm_search import Search, are_wide

_NAME = "solve_svm_by_passes"

Places = Integers | slice  # where some rows are; a slice stands for all
Known = tuple[Floats, float, Floats]  # weights, intercept, decision function on all rows


@dataclass(frozen=True, eq=False)
class PassStart:
    """Where a search may start.

    Parameters
    ----------
    x : ndarray of shape (n_features,)
        Weights.
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function on all rows, those that take no part too.
    answers : ndarray of float
        Multipliers of the rows that take part.
    """

    x: Floats
    intercept: float
    decision: Floats
    answers: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class PassSVMResult(Result):
    """A linear machine trained by passes: ``x`` holds the weights ``w``.

    Parameters
    ----------
    intercept : float
        The constant ``b`` of the decision function.
    decision : ndarray of float
        The decision function on all rows, those that take no part too.
    dual : ndarray of float
        Multipliers whose dual value is ``lower_bound``.
    answers : ndarray of float
        Multipliers for a similar problem to start from: ``dual`` itself, or those of the last point
        where the search has ended for want of progress and these tell little.
    """

    intercept: float
    decision: Floats
    dual: Floats
    answers: Floats


def solve_svm_by_passes(
    rows: PassRows,
    sign: ArrayLike,
    cost: ArrayLike,
    *,
    target: ArrayLike = 1.0,
    index: ArrayLike | None = None,
    start: PassStart | PassSVMResult | None = None,
    tol: float = 1e-3,
    max_iter: int = 500,
    progress: float = 0.0,
) -> PassSVMResult:
    r"""Train a linear support vector machine by passes over its rows.

    The problem, for rows :math:`x_r` with signs :math:`s_r`, costs :math:`c_r` and targets
    :math:`t_r`, is

    .. math::

        \min_{w, b} \; P(w, b) = \tfrac12 \|w\|^2
        + \sum_r c_r \bigl(t_r - s_r (\langle w, x_r \rangle + b)\bigr)_+

    and its dual

    .. math::

        \max_\alpha \; D(\alpha) = t^\top \alpha
        - \tfrac12 \bigl\|\sum_r s_r \alpha_r x_r\bigr\|^2
        \quad \text{subject to} \quad 0 \le \alpha \le c, \; s^\top \alpha = 0 .

    Parameters
    ----------
    rows : PassRows
        The rows.
    sign : array-like of shape (n,)
        -1 or +1.
    cost : array-like of shape (n,) or float
        Costs, not negative. A row of cost 0 takes no part.
    target : array-like of shape (n,) or float
        Margins that the rows ought to have.
    index : array-like of int of shape (n,), optional
        Which rows make up the problem, none of them twice; all by default. Others do not count, but
        have a decision function.
    start : PassStart or PassSVMResult, optional
        The solution of a similar problem on the same rows. The result is no worse a point of this
        problem than it is; its ``answers`` are where multipliers start.
    tol : float
        Relative gap :math:`(P - D) / P` at which the search ends.
    max_iter : int
        Most passes.
    progress : float
        With a start, and where features are not too many for Newton steps, the search also ends
        after a step that lowers the objective by less than this share of what has been gained since
        the start. The lower bound may be 0 then.

    Returns
    -------
    PassSVMResult
        ``objective`` is the best primal value met, ``lower_bound`` the best dual value,
        ``residual`` their relative gap, ``n_iter`` the number of passes; ``history`` and
        ``gap_history`` hold the best value and the gap after each step. ``STALLED`` means that the
        gap has stopped shrinking, or that a step has gained less than ``progress`` asks for.

    Notes
    -----
    With multipliers :math:`\alpha` and :math:`v = \sum_r s_r \alpha_r x_r` the gap of a point is

    .. math::

        P(w, b) - D(\alpha) = \sum_r \bigl(c_r (u_r)_+ - \alpha_r u_r\bigr)
        + \tfrac12 \|w - v\|^2, \quad u_r = t_r - s_r (\langle w, x_r \rangle + b) .

    The first part is what smoothing costs, the second what Newton steps have left to do: whichever
    is larger is worked on.
    """
    started = perf_counter()
    check_limits(_NAME, tol, max_iter)
    place = None if index is None else checked_index(_NAME, index, rows.n, "index")
    n = rows.n if place is None else len(place)
    signs, costs, targets = checked_terms(_NAME, sign, cost, target, n, copy=False)
    order, where = _ascending(costs, place, rows.n)
    known, near = None, []
    if start is not None:
        known, answers = _checked_start(rows, n, start)
        w, b, decision = known
        near.append(((w, b, decision[where] - b), answers[order]))
        del start, answers, decision  # all but the weights are long
    some = rows if isinstance(where, slice) else rows.part(where)
    few: Signs = signs[order].astype(np.int8)  # a byte holds a sign, and rows are many
    costs, targets = (np.ascontiguousarray(term[order]) for term in (costs, targets))
    order = order if isinstance(order, slice) else order.astype(_index_type(n))
    del sign, cost, target, index, place  # which may be made for this call
    terms = some, few, costs, targets, tol, max_iter
    is_loose = progress > 0.0 and known is not None and not are_wide(rows)
    search = LooseSearch(*terms, progress) if is_loose else Search(*terms)
    del terms, signs, few, costs, targets
    with single_blas_thread():
        search.run(near.pop() if near else None)
        search.report()  # multipliers that came last may have closed the gap
        search.forget_terms()
        decision = _decision(rows, search, where, known)
    dual = _among_zeros(search.dual, order, n)
    is_dual = search.multipliers is search.dual
    answers = dual if is_dual else _among_zeros(search.multipliers, order, n)
    return PassSVMResult(
        x=search.w,
        intercept=search.b,
        decision=decision,
        dual=dual,
        answers=answers,
        objective=search.primal,
        lower_bound=min(search.lower, search.primal),  # which rounding may reverse
        residual=search.gap,
        status=search.status,
        n_iter=search.n_passes,
        history=np.array([*search.history, search.primal]),
        gap_history=np.maximum([*search.gaps, search.primal - search.lower], 0.0),
        solve_time=perf_counter() - started,
    )


def _checked_start(
    rows: PassRows, n: int, start: PassStart | PassSVMResult
) -> tuple[Known, Floats]:
    """Return what is known at a start, and its multipliers."""
    w = checked_array(_NAME, "start.x", start.x, (rows.d,))
    decision = checked_array(_NAME, "start.decision", start.decision, (rows.n,), copy=False)
    answers = checked_array(_NAME, "start.answers", start.answers, (n,), copy=False)
    return (w, start.intercept, decision), answers


def _ascending(cost: Floats, place: Integers | None, n_rows: int) -> tuple[Places, Places]:
    """Return which terms have costs, in the order of their rows, and these rows.

    A slice stands for all terms as they are, or for all rows.
    """
    order: Places = slice(None) if cost.all() else np.flatnonzero(cost)
    if place is None:
        return order, order
    where = place[order]
    if not (where[1:] > where[:-1]).all():
        by_row = np.argsort(where, kind="stable")
        where = where[by_row]
        order = by_row if isinstance(order, slice) else order[by_row]
        if (where[1:] == where[:-1]).any():
            msg = f"{_NAME}: index must not hold a row twice."
            raise ValueError(msg)
    return order, slice(None) if len(where) == n_rows else where


def _index_type(n: int) -> type[np.signedinteger[Any]]:
    """Return the shortest integers that count so many rows."""
    return np.int32 if n < 2**31 else np.int64


def _among_zeros(values: Floats, places: Places, n: int) -> Floats:
    """Return values of some rows among zeros for the others."""
    if isinstance(places, slice):
        return values
    out = np.zeros(n)
    out[places] = values
    return out


def _decision(rows: PassRows, search: Search, where: Places, known: Known | None) -> Floats:
    """Return the decision function on all rows; those not in use are read now, if they must be."""
    if known is not None and search.w is known[0]:
        return known[2] + (search.b - known[1])
    if isinstance(where, slice):
        return search.z + search.b
    out = _among_zeros(search.z, where, rows.n)
    is_other = np.ones(rows.n, bool)
    is_other[where] = False
    others = np.flatnonzero(is_other)
    if len(others) and search.w.any():
        out[others] = rows.part(others).dot(search.w)
    out += search.b
    return out
