"""What MIML, MildML and MC2B share: centred instances, and a linear map of them."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from bagwise._arrays import Floats, Integers
from bagwise._compat import Interval
from bagwise.bags import Bags, BagSource
from bagwise.base import BagTags, Target
from bagwise.metric._lists import ListedBags, distinct
from bagwise.metric._metric_learner import MetricLearner
from bagwise.solvers import (
    Certificate,
    FeaturePasses,
    LabelLists,
    leading,
    row_space,
    solve_label_assignments,
    whitening,
)


@dataclass(frozen=True)
class LearnedMap:
    """What a method learns of centred instances.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_dimensions)
        The map.
    centers : ndarray of shape (n_used, n_dimensions)
        The centres of labels, before the map.
    used : ndarray of int of shape (n_used,)
        The columns of these labels.
    certificate : Certificate
        How the map was found.
    more : dict
        Further fitted attributes.
    """

    components: Floats
    centers: Floats
    used: Integers
    certificate: Certificate
    more: dict[str, Any]


class LinearMetricLearner(MetricLearner):
    """Base of methods that learn a linear map of the features and nothing else.

    A subclass writes `_learn_map`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        **MetricLearner._parameter_constraints,
    }

    n_components: int | None

    @abstractmethod
    def _learn_map(self, task: ListedBags, rows: Floats) -> LearnedMap:
        """Learn the map of the instances of bags, whose coordinates are given.

        Parameters
        ----------
        task : ListedBags
            Bags, of which no two are alike.
        rows : ndarray of shape (n_instances, n_dimensions)
            Their instances, less the mean, in the space that they span.
        """

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        task = distinct(bags, target, bag_weight)
        passes = FeaturePasses(BagSource(task.bags), task.weight)
        mean = passes.mean()
        rows = np.asarray(passes.centred(mean).all_rows(), np.float64)
        row_weight = np.repeat(task.weight, task.bags.sizes)
        rows, lift = _in_their_span(rows, row_weight)
        learned = self._learn_map(task, rows)
        inner = _uncorrelated(learned.components, rows, row_weight)
        components, centers = lift(inner), lift(learned.centers)
        signs = _signs(components)
        components = signs[:, None] * components
        return {
            "components_": components,
            "offset_": components @ mean,
            "centroids_": centers + mean,
            "mapped_centroids_": (learned.centers @ inner.T) * signs,
            "used_": learned.used,
            "result_": learned.certificate,
            **learned.more,
        }

    def _rng(self) -> np.random.Generator:
        seed: int = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng(seed)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(order_tolerance=0.05, exclusive_labels=True, shift_invariant=True)


def _in_their_span(rows: Floats, weight: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return coordinates of rows in the space that they span, and the way back for vectors."""
    if len(rows) < rows.shape[1]:
        space = row_space(rows, weight)
        return space.coordinates, lambda vectors: space.lift(vectors, rows)
    basis = whitening((rows * weight[:, None]).T @ rows)
    return basis.project(rows), basis.lift


def principal_directions(rows: Floats, weight: Floats, n_components: int) -> Floats:
    """Return the directions along which weighted rows vary most, as rows of unit length."""
    gram = (rows * weight[:, None]).T @ rows
    return np.ascontiguousarray(leading(gram, n_components, rows.dtype)[1].T)


def _uncorrelated(components: Floats, rows: Floats, weight: Floats) -> Floats:
    """Turn a map, which changes no distance: mapped rows vary most along its first component."""
    mapped = rows @ components.T
    turn = np.linalg.eigh((mapped * weight[:, None]).T @ mapped)[1][:, ::-1].T
    return np.asarray(turn @ components)


def _signs(components: Floats) -> Floats:
    """Return the signs that make the largest entry of each component positive."""
    largest = components[np.arange(len(components)), np.abs(components).argmax(axis=1)]
    return np.where(largest < 0, -1.0, 1.0)


def usual_components(n_components: int | None, n_dimensions: int) -> int:
    """Return the number of dimensions after a map, by default half of those before."""
    return min(n_components or max(2, n_dimensions // 2), n_dimensions)


def named_map(
    components: Floats, rows: Floats, task: ListedBags, certificate: Certificate
) -> LearnedMap:
    """Return a map with the centres of labels: the means of the instances that bear them.

    All instances bear the class of their bag. Of lists they get labels such that after the map the
    sum of squared distances from the means of labels is small.
    """
    labels = _labels(rows @ components.T, task)
    passes = FeaturePasses(BagSource(Bags(rows, task.bags.offsets)), task.weight)
    sums, mass = passes.label_sums(labels, task.lists.shape[1])
    used = np.flatnonzero(mass > 0)
    centers = sums[used] / mass[used, None]
    more = {"assignments_": task.spread(labels)}
    return LearnedMap(components, centers, used, certificate, more)


def _labels(mapped: Floats, task: ListedBags) -> Integers:
    """Return the column of the label of each instance, -1 for none."""
    if task.codes is not None:
        return np.repeat(task.codes, task.bags.sizes).astype(np.int64)
    lists = LabelLists.from_indicator(task.bags.offsets, task.lists)
    return solve_label_assignments(mapped, lists, sample_weight=task.weight).labels
