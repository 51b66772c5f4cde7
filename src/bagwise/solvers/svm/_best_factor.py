"""A machine made larger or smaller: the multiple of it with the least objective."""

import numpy as np

from bagwise._arrays import Floats

_LARGEST = 2.0
_HALVINGS = 60


def best_factor(
    margin: Floats, target: Floats | float, cost: Floats, squared_norm: float
) -> tuple[float, float]:
    r"""Return the multiple of a machine with the least objective, and that objective.

    The problem, for rows :math:`r` with costs :math:`c_r`, targets :math:`t_r` and the margins
    :math:`m_r = s_r (\langle w, x_r \rangle + b)` of a machine, is

    .. math::

        \min_{0 \le q \le 2} \; \tfrac12 q^2 \|w\|^2 + \sum_r c_r \bigl(t_r - q m_r\bigr)_+ .

    Rounding leaves rows of a machine that separates short by very little, and a large cost
    magnifies that; a factor near 1 mends it.

    Parameters
    ----------
    margin : ndarray of shape (n,)
        Margins of the rows.
    target : ndarray of shape (n,), or float
        Margins that the rows ought to have.
    cost : ndarray of shape (n,)
        Costs of the rows, not negative.
    squared_norm : float
        The squared norm of the weights.

    Returns
    -------
    factor : float
        The factor: 1 where no other is better.
    objective : float
        The objective of that multiple of the machine.
    """

    def objective(factor: float) -> float:
        hinge = np.maximum(target - factor * margin, 0.0)
        return 0.5 * factor**2 * squared_norm + float(cost @ hinge)

    low, high = 0.0, _LARGEST
    for _ in range(_HALVINGS):
        factor = 0.5 * (low + high)
        is_short = factor * margin < target
        slope = factor * squared_norm - float(cost[is_short] @ margin[is_short])
        low, high = (factor, high) if slope < 0.0 else (low, factor)
    factor = min(1.0, high, key=objective)
    return factor, objective(factor)
