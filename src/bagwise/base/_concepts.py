"""What methods of diverse density share: units of features, starts of searches, far concepts."""

import numpy as np

from bagwise._arrays import Floats, Integers
from bagwise.bags import Bags, distinct_instances, segment_rows
from bagwise.solvers import Density, best_in_bags, key_scores

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


def key_direction(rows: Floats, offsets: Integers, sign: Floats, weight: Floats) -> Floats | None:
    """Return the direction from the instances of negative bags to likely key instances.

    It is that from the mean of the former to the mean of the latter; see `key_scores`. None if
    these are one point.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Instances, bag after bag.
    offsets : ndarray of int of shape (n_bags + 1,)
        Rows at which bags begin.
    sign, weight : ndarray of shape (n_bags,)
        Signs of the bags, and their weights.
    """
    positive, sizes = np.flatnonzero(sign > 0), np.diff(offsets)

    def project(coef: Floats) -> Floats:
        return np.asarray(rows @ (coef @ rows))

    is_key = best_in_bags(key_scores(project, offsets, positive, weight), offsets)
    share = np.where(sign > 0, weight / np.add.reduceat(is_key, offsets[:-1], dtype=float), 0.0)
    keys = np.repeat(share, sizes) * is_key
    others = np.repeat(np.where(sign > 0, 0.0, weight), sizes)
    along = (keys / keys.sum()) @ rows - (others / others.sum()) @ rows
    length = float(np.linalg.norm(along))
    return along / length if length > 1e-9 * float(np.abs(rows).max()) else None
