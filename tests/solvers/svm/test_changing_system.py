"""Systems by the factor of a similar one, against numpy."""

import numpy as np
import pytest

from bagwise.solvers import BlockGram
from bagwise.solvers.svm._changing_system import ChangingSystem

N_HEAD, N = 10, 90


def points(seed=0, changed=()):
    """Return feature vectors of all rows, of which some are others than before."""
    X = np.random.default_rng(seed).normal(size=(N, 12))
    X[list(changed)] = np.random.default_rng(seed + 1).normal(size=(len(changed), 12))
    return X


@pytest.fixture(scope="module")
def fixed():
    X = points()[N_HEAD:]
    return X @ X.T


def blocks(X, fixed):
    head = X[:N_HEAD]
    return BlockGram(head @ head.T, head @ X[N_HEAD:].T, fixed)


def without(*rows):
    return np.setdiff1d(np.arange(N), rows)


RIDGE = np.random.default_rng(5).uniform(0.5, 2.0, N)
OTHER = np.where(np.arange(N) % 40 == 20, 7.0, RIDGE)  # rows 20 and 60


@pytest.mark.parametrize(
    ("changed", "ridge", "rows", "n_factor", "n_border"),
    [
        ((), RIDGE, without(3, 40), 88, 0),
        ((), RIDGE, without(3, 8, 41, 42), 88, 4),  # one added, three taken
        ((), OTHER, without(3, 40), 88, 4),  # two rows are taken, and added with another ridge
        ((0, 7), RIDGE, without(3, 40), 88, 4),  # two rows are other ones
        (range(N_HEAD), RIDGE, without(3, 40), 79, 9),  # all that may change did
        (range(N_HEAD), RIDGE, np.arange(N_HEAD + 5, N), 79, 6),  # none that may change
        ((), RIDGE, np.arange(0, N, 2), None, 0),  # too far from the factor
        ((), RIDGE, np.arange(0), None, 0),
    ],
)
def test_systems_follow_the_rows(fixed, changed, ridge, rows, n_factor, n_border):
    like = ChangingSystem(blocks(points(), fixed), RIDGE, without(3, 40))
    X = points(changed=changed)
    system = ChangingSystem(blocks(X, fixed), ridge, rows, like)
    assert system.is_shared == (n_factor is not None)
    assert (system.base is like.base) == system.is_shared
    assert system.border.shape == (len(rows) if n_factor is None else n_factor, n_border)
    K = (X @ X.T + np.diag(ridge))[np.ix_(rows, rows)]
    right = np.random.default_rng(1).normal(size=(len(rows), 3))
    expected = np.linalg.solve(K, right)
    np.testing.assert_allclose(system.solve(right[:, 0]), expected[:, 0], atol=1e-12)
    np.testing.assert_allclose(system.form(right), right.T @ expected, atol=1e-11)


def test_other_fixed_rows_need_a_factor_of_their_own(fixed):
    like = ChangingSystem(blocks(points(), fixed), RIDGE, np.arange(N))
    assert ChangingSystem(blocks(points(), fixed), RIDGE, np.arange(N), like).is_shared
    assert not ChangingSystem(blocks(points(), fixed.copy()), RIDGE, np.arange(N), like).is_shared
