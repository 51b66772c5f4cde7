"""Which distance between bags: the parameters that methods of distances share."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagwise._compat import StrOptions
from bagwise.bags import Bags
from bagwise.kernels import InstanceMetric

#: Metrics that look at differences only.
_BY_DIFFERENCE = ("cityblock", "euclidean", "sqeuclidean")

#: Relative differences of distances that are rounding: the accuracy of `hausdorff`.
DISTANCE_ROUNDING = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}


class MetricParameter:
    """The parameter ``metric``, a distance between instances."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [
            StrOptions({"euclidean", "sqeuclidean", "cityblock", "cosine"}),
            InstanceMetric,
            callable,
        ],
    }

    metric: Any

    @property
    def _instance_metric(self) -> InstanceMetric:
        given = isinstance(self.metric, InstanceMetric)
        return self.metric if given else InstanceMetric(self.metric)

    def _distance_tags(self) -> dict[str, Any]:
        """Return what bag tags say of units and origin."""
        return {
            "scale_powers": {} if isinstance(self.metric, str) else None,
            "shift_invariant": isinstance(self.metric, str) and self.metric in _BY_DIFFERENCE,
        }


class DistanceParameters(MetricParameter):
    """The parameters ``distance`` and ``metric``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "distance": [StrOptions({"average", "min", "max", "precomputed"})],
        **MetricParameter._parameter_constraints,
    }

    distance: Any

    @property
    def _distance_is_given(self) -> bool:
        return bool(self.distance == "precomputed")

    def _given_square(self, bags: Bags) -> NDArray[Any]:
        """Return the distances between all training bags that were given."""
        shape = len(self._one_row_each(bags)), bags.n_features
        if shape[0] != shape[1]:
            msg = (
                f"With distance='precomputed', {type(self).__name__}.fit needs a square matrix, "
                f"the distances between all training bags. Got shape {shape}."
            )
            raise ValueError(msg)
        return self._given_rows(bags)

    def _given_rows(self, bags: Bags) -> NDArray[Any]:
        """Return the distances that were given, one row for each bag."""
        rows = self._one_row_each(bags).instances
        return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)

    def _one_row_each(self, bags: Bags) -> Bags:
        if (bags.sizes != 1).any():
            which = int(np.flatnonzero(bags.sizes != 1)[0])
            msg = (
                f"With distance='precomputed', {type(self).__name__} takes a matrix with one row "
                f"for each bag. Got {bags.describe(which)} with {bags.sizes[which]} rows."
            )
            raise ValueError(msg)
        return bags

    def _distance_tags(self) -> dict[str, Any]:
        tags = super()._distance_tags()
        return {**tags, "shift_invariant": tags["shift_invariant"] and not self._distance_is_given}
