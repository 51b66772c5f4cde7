"""A Cholesky factor under changes of its rows, beside solutions from scratch."""

import numpy as np
import pytest

from bagwise.solvers.svm._updated_factor import UpdatedFactor


def _matrix(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, n + 5))
    return X @ X.T


def _assert_solves(factor, matrix, rows):
    right = np.random.default_rng(1).normal(size=(2, len(rows)))
    x, y = right.copy()
    factor.solve_two(x, y)
    expected = np.linalg.solve(matrix[np.ix_(rows, rows)], right.T).T
    np.testing.assert_allclose([x, y], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_first", [1, 12])
def test_rows_join_and_leave(n_first):
    matrix, rows = _matrix(400), list(range(n_first))
    factor = UpdatedFactor(np.linalg.cholesky(matrix[:n_first, :n_first]))
    rng = np.random.default_rng(2)
    for n_new in (5, 300, 1, 30):  # beyond the room that there is at first
        new = rng.permutation(np.setdiff1d(np.arange(400), rows))[:n_new].tolist()
        assert factor.join(matrix[np.ix_(rows, new)], matrix[np.ix_(new, new)], 1e-9)
        rows += new
        _assert_solves(factor, matrix, rows)
        places = rng.permutation(len(rows))[: min(20, len(rows) - 1)]
        places = np.union1d(places, [0])[: len(rows) - 1]
        factor.leave(rng.permutation(places))
        rows = np.delete(rows, places).tolist()
        _assert_solves(factor, matrix, rows)


def test_a_row_that_is_there_twice_joins_with_a_ridge():
    matrix = _matrix(6)
    factor = UpdatedFactor(np.linalg.cholesky(matrix))
    border, corner = matrix[:, :1].copy(), matrix[:1, :1] - 1e-12
    assert factor.join(border, corner, 1e-6)
    x, y = np.append(matrix @ np.ones(6), matrix[0] @ np.ones(6)), np.ones(7)
    factor.solve_two(x, y)
    x[0] += x[6]
    np.testing.assert_allclose(x[:6], np.ones(6), atol=1e-6)


def test_a_matrix_that_is_not_positive_is_told():
    factor = UpdatedFactor(np.eye(3))
    assert not factor.join(np.full((3, 1), 2.0), np.ones((1, 1)), 1e-9)
