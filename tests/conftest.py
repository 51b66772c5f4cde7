"""Shared by all tests: hypothesis without a clock, and the classic data sets where they are."""

import gc
import os
from pathlib import Path

# Before numpy is loaded, and for processes that tests start. Threads of BLAS that wait for each
# other on cores that other tests use take longer than the small matrices here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "bagwise",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=int(os.environ.get("BAGWISE_EXAMPLES", "40")),
    suppress_health_check=[HealthCheck.too_slow],  # it looks at the clock
)
settings.load_profile("bagwise")


def pytest_collection_finish():
    """Spare the garbage collector the tests themselves: half a second each time it looks at all."""
    gc.freeze()


@pytest.fixture(scope="session")
def load_set():
    """Return a function that loads a set of $BAGWISE_DATA by name, or skips the test."""

    def load(name):
        folder = os.environ.get("BAGWISE_DATA")
        if folder is None:
            pytest.skip("BAGWISE_DATA does not say where the data sets are")
        path = Path(folder) / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"{path} is not there")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)

    return load
