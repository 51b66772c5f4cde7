"""The field of a parameter that may be a distance between instances."""

from dataclasses import dataclass
from typing import Any

from bagwise.persistence._params import Value
from bagwise.persistence._schema import Array, Field, Scope


@dataclass(frozen=True)
class Metric(Field):
    """A plain value, or an `InstanceMetric` that has a name: the name, and its factor if any."""

    def dump(self, value: Any, at: Scope) -> Any:
        from bagwise.kernels import InstanceMetric

        if not isinstance(value, InstanceMetric):
            return Value().dump(value, at)
        name = Value().dump(value.name, at)
        factor = None if value.factor is None else self._factor.dump(value.factor, at)
        return {"metric": name, "factor": factor}

    def load(self, node: Any, at: Scope) -> Any:
        from bagwise.kernels import InstanceMetric

        if not isinstance(node, dict) or "metric" not in node:
            return Value().load(node, at)
        at.members(node, ["metric", "factor"])
        if type(node["metric"]) is not str:
            at.fail("must be a metric with a name")
        given = node["factor"] is not None
        factor = self._factor.load(node["factor"], at) if given else None
        try:
            return InstanceMetric(node["metric"], factor=factor)
        except ValueError as error:
            return at.fail(f"must be a metric: {error}", error)

    @property
    def _factor(self) -> Array:
        return Array(shape=(None, None), itemsizes=(8,))


@dataclass(frozen=True)
class LearnedMetric(Metric):
    """A `Metric`, or an estimator that learns one."""

    def dump(self, value: Any, at: Scope) -> Any:
        if hasattr(value, "get_params"):
            return {"learner": at.codec.dump(value, at)}
        return super().dump(value, at)

    def load(self, node: Any, at: Scope) -> Any:
        if isinstance(node, dict) and "learner" in node:
            return at.codec.load(at.members(node, ["learner"])["learner"], at)
        return super().load(node, at)
