"""Rows of which a solver can only ask for blocks: the four members that make an operator."""

import numpy as np

from bagwise.solvers import RowOperator


class BlockRows(RowOperator):
    """Rows known by a matrix that is never handed out whole; it notes which rows were asked for."""

    def __init__(self, gram):
        self.gram, self.asked = np.asarray(gram), []

    @property
    def n(self):
        return len(self.gram)

    @property
    def dtype(self):
        return self.gram.dtype

    def diagonal(self):
        return self.gram.diagonal().astype(float)

    def block(self, rows, columns=None, out=None):
        self.asked.append(list(rows))
        values = self.gram[rows] if columns is None else self.gram[np.ix_(rows, columns)]
        if out is None:
            return values
        out[:] = values
        return out
