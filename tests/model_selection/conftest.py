"""Bags on which searches are compared."""

import numpy as np
import pytest

from bagwise import Bags
from bagwise.testing import make_toy_bags


@pytest.fixture(scope="module")
def toy():
    bags, y = make_toy_bags(30, max_size=4)
    return Bags.from_list(bags), np.asarray(y)
