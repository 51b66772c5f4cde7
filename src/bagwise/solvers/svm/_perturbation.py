"""Which of several solutions of a linear programme is taken.

It may have many optimal vertices, and which of them a solver meets depends on the order of rows and
columns. A tiny perturbation of the weights of the objective, which depends on the instances' values
alone, leaves one of them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats

_RAISE = 1e-6  # relative; far above the accuracy of the solver, far below what matters


def instance_keys(instances: Any) -> Floats:
    """Return a number in [0, 1] for each row: equal for equal rows, else most likely different.

    Parameters
    ----------
    instances : ndarray or CSR array of shape (n_instances, n_features)
        The instances.
    """
    direction = np.random.default_rng(0).normal(size=instances.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        return scaled_keys(instances @ direction.astype(instances.dtype))


def scaled_keys(values: NDArray[Any]) -> Floats:
    """Move and scale numbers to [0, 1]; to 0 if they are all the same or too large.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The numbers.
    """
    values = np.asarray(values, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        least, spread = values.min(), np.ptp(values)
    return (values - least) / spread if 0 < spread < np.inf else np.zeros(len(values))


def perturbed(weights: Floats, keys: Floats) -> Floats:
    """Raise weights of the objective by a little, by the more the larger the key.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Costs or penalties.
    keys : ndarray of shape (n,)
        Numbers in [0, 1], of `instance_keys` or `scaled_keys`.
    """
    return weights * (1.0 + _RAISE * keys)
