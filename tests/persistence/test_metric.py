"""A metric comes back as it was; one that is code, or none at all, is refused."""

import numpy as np
import pytest

from bagwise.exceptions import ModelFileError
from bagwise.kernels import InstanceMetric
from bagwise.persistence import _format
from bagwise.persistence._metric import Metric
from bagwise.persistence._schema import Scope
from persistence.standins import blob_of

FACTOR = np.random.default_rng(0).normal(size=(3, 2))


def scope(arrays):
    return Scope("Some", "field", arrays, {}, codec=None)


def round_trip(value):
    arrays = {}
    node = Metric().dump(value, scope(arrays))
    header, arrays = _format.decode(blob_of({"node": node}, arrays))
    result = Metric().load(header["node"], scope(arrays))
    assert not arrays
    return result


@pytest.mark.parametrize("name", ["euclidean", "cosine"])
def test_named(name):
    assert round_trip(name) == name
    metric = round_trip(InstanceMetric(name))
    assert isinstance(metric, InstanceMetric)
    assert (metric.name, metric.factor) == (name, None)


@pytest.mark.parametrize("name", ["mahalanobis", "sqmahalanobis"])
def test_learned(name):
    metric = round_trip(InstanceMetric(name, factor=FACTOR))
    assert metric.name == name
    np.testing.assert_array_equal(metric.factor, FACTOR, strict=True)


def test_functions_are_refused():
    for value in (np.dot, InstanceMetric(np.dot)):
        with pytest.raises(ModelFileError, match="a callable is code"):
            Metric().dump(value, scope({}))


@pytest.mark.parametrize(
    ("node", "arrays", "message"),
    [
        ({"metric": "nearness", "factor": None}, {}, "must be a metric: The name"),
        ({"metric": "mahalanobis", "factor": None}, {}, "takes either factor or matrix"),
        ({"metric": 3, "factor": None}, {}, "must be a metric with a name"),
        ({"metric": "euclidean", "factor": {"array": "C"}}, {"field": FACTOR}, "takes neither"),
        ({"metric": "mahalanobis", "factor": {"array": "C"}}, {"field": FACTOR[0]}, "2 dimensions"),
        ({"metric": "mahalanobis", "factor": 1}, {}, "field"),
        ({"metric": "cosine"}, {}, "field"),
        ({"metric": "cosine", "factor": None, "more": 1}, {}, "field"),
        (
            {"metric": "mahalanobis", "factor": {"array": "C"}},
            {"field": FACTOR * np.inf},
            "must be finite",
        ),
    ],
)
def test_hostile_nodes_are_refused(node, arrays, message):
    with pytest.raises(ModelFileError, match=message):
        Metric().load(node, scope(dict(arrays)))
