"""What methods of diverse density share: units of features, and starts of searches."""

import numpy as np

from bagwise._arrays import Floats
from bagwise.bags import Bags, distinct_instances, segment_rows
from bagwise.solvers import Density

_MOST_CANDIDATES = 1000  # instances among which the best starts are looked for


def standards(rows: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of each feature; 1 where it is constant."""
    center = weight @ rows / weight.sum()
    unit = np.sqrt(weight @ (rows - center) ** 2 / weight.sum())
    noise = 1e-12 * np.abs(rows).max(axis=0)
    return center, np.where(unit > noise, unit, 1.0)


def density_starts(bags: Bags, density: Density, number: int | None, first_scale: float) -> Floats:
    """Return the instances of positive bags at which the density is highest, each with scales.

    Parameters
    ----------
    bags : Bags
        The bags that the density is of.
    density : Density
        The density; its rows may be standardised.
    number : int or None
        Most starts, looked for among a thousand distinct instances, or ``number`` if that is
        more; None: all distinct ones.
    first_scale : float
        The scale of all features.
    """
    positive = np.flatnonzero(density.is_positive & (density.weight > 0))
    offsets = bags.offsets
    rows = segment_rows(offsets[positive], offsets[positive + 1])
    some = rows[distinct_instances(bags[positive], len(rows), 0)]
    if number is not None:
        some = some[: max(number, _MOST_CANDIDATES)]
    points = density.rows[some]
    starts = np.hstack([points, np.full(points.shape, first_scale)])
    if number is None or len(some) <= number:
        return starts
    values = density.values(starts, np.arange(len(starts)))
    return np.asarray(starts[np.argsort(values, kind="stable")[:number]])
