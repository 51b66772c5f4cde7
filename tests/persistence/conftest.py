import numpy as np
import pytest

from bagwise.persistence._registry import REGISTRY
from persistence.standins import KEY, KernelStandIn, stand_in_entry


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch):
    monkeypatch.setitem(REGISTRY, KEY, stand_in_entry())


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(24, 5))


@pytest.fixture
def model(X):
    return KernelStandIn().fit(X, np.tile(["a", "b", "c"], 8))
