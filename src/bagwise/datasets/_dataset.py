"""What every loader of a data set returns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags


@dataclass(frozen=True, kw_only=True, eq=False)
class BagDataset:
    """Bags, their labels, and what else is known about them.

    Parameters
    ----------
    bags : Bags
        The bags, with names where there are any.
    y : ndarray of shape (n_bags,) or (n_bags, n_labels)
        Labels of the bags, or an indicator matrix of label lists.
    label_names : tuple of str
        What the labels mean: the name of label 0, 1, ..., or of each column.
    instance_y : ndarray of shape (n_instances,) or None
        Labels of the instances, where the truth is known. Not for learning.
    description : str
        Where the data come from and what is in them.
    target : int, str or None
        The instance label that makes a bag positive, where one does.
    """

    bags: Bags
    y: NDArray[Any]
    label_names: tuple[str, ...]
    instance_y: NDArray[Any] | None = None
    description: str = ""
    target: int | str | None = None

    def __repr__(self) -> str:
        counts = (
            np.bincount(self.y, minlength=len(self.label_names))
            if self.y.ndim == 1
            else self.y.sum(axis=0)
        )
        labels = ", ".join(
            f"{name!r}: {count}" for name, count in zip(self.label_names, counts, strict=True)
        )
        return f"BagDataset({self.bags!r}, labels {{{labels}}})"
