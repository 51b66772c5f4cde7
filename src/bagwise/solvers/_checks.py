"""What solvers check of their input. Errors name the solver and the parameter."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bagwise._arrays import Floats, Integers
from bagwise._threads import short_slices


def checked_gram(solver: str, values: Any, *, check_finite: bool) -> NDArray[Any]:
    """Return a Gram matrix in single or double precision and C order, uncopied if it is that."""
    gram: NDArray[Any] = np.asarray(values)
    check_square(solver, gram.shape)
    if gram.dtype not in (np.float32, np.float64):
        gram = gram.astype(np.float64)
    if not gram.flags.c_contiguous:  # a symmetric matrix in Fortran order is its own transpose
        gram = np.ascontiguousarray(gram.T if gram.flags.f_contiguous else gram)
    if check_finite:
        from bagwise.solvers._checks_kernels import upper_half_is_finite

        for rows in short_slices(len(gram), 1e-9 * len(gram)):
            if not upper_half_is_finite(gram, rows.start, rows.stop):
                raise ValueError(not_finite(solver))
    return gram


def check_square(solver: str, shape: tuple[int, ...]) -> None:
    """Refuse a Gram matrix that is not square, or empty."""
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        msg = f"{solver}: gram must be a square matrix. Got shape {shape}."
        raise ValueError(msg)


def check_tol(solver: str, tol: float, name: str = "tol") -> None:
    """Refuse a tolerance that no violation is below or above: with NaN a search would not end."""
    if not tol >= 0.0:
        msg = f"{name} of {solver} must be a number, not negative. Got {tol}."
        raise ValueError(msg)


def not_finite(solver: str, name: str = "gram") -> str:
    """Return what to say of a Gram matrix, or of other rows, with NaN or infinity."""
    return f"{solver}: {name} must hold finite numbers only. Got NaN or infinity."


def check_at_least(solver: str, name: str, value: float, least: int) -> None:
    """Refuse a number, of iterations say, that is smaller than makes sense; NaN too."""
    if not value >= least:
        msg = f"{name} of {solver} must be at least {least}. Got {value}."
        raise ValueError(msg)


def check_positive(solver: str, name: str, value: float) -> None:
    """Refuse what is not a positive number."""
    if not 0.0 < value < np.inf:
        msg = f"{name} of {solver} must be a positive number. Got {value}."
        raise ValueError(msg)


def check_limits(solver: str, tol: float, max_iter: float, *, least: int = 0) -> None:
    """Check where a search is to end; ``least`` is the smallest ``max_iter``."""
    check_tol(solver, tol)
    check_at_least(solver, "max_iter", max_iter, least)


def checked_array(
    solver: str,
    name: str,
    values: ArrayLike,
    shape: tuple[int | None, ...],
    *,
    spread: bool = False,
    copy: bool = True,
) -> Floats:
    """Return finite numbers in a given shape, of which None fits any length.

    With ``spread`` one number stands for all. They are a copy, unless they are only read: then
    numbers that are all the same may be one in memory.
    """
    out = np.array(values, np.float64) if copy else np.asarray(values, np.float64)
    if out.ndim == 0 and spread:
        fill: Any = np.full if copy else lambda shape, value: np.broadcast_to(value, shape)
        out = fill(shape, out)
    fits = out.ndim == len(shape)
    if not fits or any(n not in (None, m) for n, m in zip(shape, out.shape, strict=True)):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        wanted = f"({wanted},)" if len(shape) == 1 else f"({wanted})"
        msg = f"{solver}: {name} must have shape {wanted}. Got {out.shape}."
        raise ValueError(msg)
    if not np.isfinite(out).all():
        msg = f"{solver}: {name} must hold finite numbers only. Got NaN or infinity."
        raise ValueError(msg)
    return out


def checked_signs(solver: str, sign: ArrayLike, n: int, *, copy: bool = True) -> Floats:
    """Return one sign for each row."""
    signs = checked_array(solver, "sign", sign, (n,), copy=copy)
    if not (np.abs(signs) == 1.0).all():
        msg = f"{solver}: sign must hold -1 and +1 only. Got {np.unique(signs)[:4]}."
        raise ValueError(msg)
    return signs


def checked_weights(solver: str, weight: ArrayLike, n: int) -> Floats:
    """Return a weight for each bag; one stands for all."""
    weights = checked_array(solver, "weight", weight, (n,), spread=True)
    if (weights < 0).any():
        msg = f"{solver}: weight must not be negative. Got {weights.min()}."
        raise ValueError(msg)
    return weights


def checked_terms(
    solver: str, sign: ArrayLike, cost: ArrayLike, target: ArrayLike, n: int, *, copy: bool = True
) -> tuple[Floats, Floats, Floats]:
    """Return signs, costs and targets, one of each per row; copies, unless they are only read."""
    signs = checked_signs(solver, sign, n, copy=copy)
    costs = checked_array(solver, "cost", cost, (n,), spread=True, copy=copy)
    if (costs < 0).any():
        msg = f"{solver}: cost must not be negative. Got {costs.min()} in row {costs.argmin()}."
        raise ValueError(msg)
    return signs, costs, checked_array(solver, "target", target, (n,), spread=True, copy=copy)


def checked_intercept_mask(solver: str, intercept: ArrayLike | None, n: int) -> Floats:
    """Return 1 for each row that has the intercept, which all do by default, else 0."""
    if intercept is None:
        return np.ones(n)
    mask = checked_array(solver, "intercept", intercept, (n,))
    if not ((mask == 0.0) | (mask == 1.0)).all():
        msg = f"{solver}: intercept must hold 0 and 1, or booleans. Got {np.unique(mask)[:4]}."
        raise ValueError(msg)
    return mask


def checked_groups(
    solver: str, group: ArrayLike, cap: ArrayLike, n: int
) -> tuple[Integers, Floats]:
    """Return the group of each row, and the cap of each group; one cap stands for all."""
    groups, caps = np.asarray(group), np.array(cap, np.float64)
    if not n:
        msg = f"{solver} needs at least one row. Got none."
        raise ValueError(msg)
    if groups.shape != (n,) or groups.dtype.kind not in "iu":
        msg = (
            f"{solver}: group must hold one integer for each of the {n} rows. "
            f"Got {groups.dtype} of shape {groups.shape}."
        )
        raise ValueError(msg)
    if caps.ndim == 0:
        caps = np.full(int(groups.max()) + 1, caps)
    if caps.ndim != 1:
        msg = f"{solver}: cap must be a number or hold one for each group. Got {caps.shape}."
        raise ValueError(msg)
    if groups.min() < 0 or groups.max() >= len(caps):
        msg = (
            f"{solver}: group must lie between 0 and {len(caps) - 1}, as cap has {len(caps)} "
            f"entries. Got {groups.min()} to {groups.max()}."
        )
        raise ValueError(msg)
    if not np.isfinite(caps).all() or (caps < 0).any():
        wrong = int(np.flatnonzero(~(np.isfinite(caps) & (caps >= 0)))[0])
        msg = f"{solver}: cap must be finite and not negative. Got {caps[wrong]} for group {wrong}."
        raise ValueError(msg)
    return groups.astype(np.int64), caps
