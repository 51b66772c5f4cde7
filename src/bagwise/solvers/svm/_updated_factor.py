"""A Cholesky factor that rows join and leave, each at the cost of a few solutions.

The factor itself is changed, so any number of rows may come and go, one after another. Where
systems are solved that differ in a few rows from one and the same factor, `ChangingSystem` leaves
the factor as it is and borders it.
"""

import numpy as np
from scipy.linalg import lapack

from bagwise._arrays import Floats, Integers

_ROOM = 256  # rows that may join before the factor is copied


class UpdatedFactor:
    """The lower factor of a symmetric positive definite matrix.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        The factor to begin with; what is above its diagonal does not matter.
    """

    def __init__(self, factor: Floats) -> None:
        self.n = len(factor)
        self._memory = np.empty((self.n + _ROOM,) * 2)
        self._memory[: self.n, : self.n] = factor

    def solve_two(self, x: Floats, y: Floats) -> None:
        """Multiply two vectors by the inverse of the matrix, in place."""
        from bagwise.solvers.svm._updated_factor_kernels import solve_two

        solve_two(self._memory, x, y)

    def join(self, border: Floats, corner: Floats, ridge: float) -> bool:
        """Let rows join at the end; return whether the matrix is positive definite with them.

        Parameters
        ----------
        border : ndarray of shape (n, n_new)
            Entries of the matrix between the rows that are there and the new ones; overwritten.
        corner : ndarray of shape (n_new, n_new)
            Those between the new ones; overwritten.
        ridge : float
            Is added to the diagonal of the new rows where rounding has left less than nothing.
        """
        from bagwise.solvers.svm._updated_factor_kernels import solve_columns

        n, last = self.n, self.n + len(corner)
        if last > len(self._memory):
            memory = np.empty((last + max(_ROOM, n // 4),) * 2)
            memory[:n, :n] = self._memory[:n, :n]
            self._memory = memory
        solve_columns(self._memory, border)
        corner -= border.T @ border
        self._memory[n:last, :n] = border.T
        for more in (0.0, 1.0, 100.0, 1e4):
            corner.flat[:: len(corner) + 1] += more * ridge
            factor, info = lapack.dpotrf(corner, lower=1, clean=0)
            if info == 0:
                self._memory[n:last, n:last] = factor
                self.n = last
                return True
        return False

    def leave(self, places: Integers) -> None:
        """Take rows out."""
        from bagwise.solvers.svm._updated_factor_kernels import remove_row

        for place in np.sort(places)[::-1]:
            remove_row(self._memory, self.n, int(place))
            self.n -= 1
