"""Lists of labels as users write them: a set, or a list, of labels for each bag."""

from collections.abc import Collection
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Booleans

_SETS = (set, frozenset)
_LISTS = (list, tuple)


def holds_lists(y: Any) -> bool:
    """Tell whether labels are lists of labels: sets, or lists that are not rows of a matrix.

    Lists are rows of a matrix if all are as long as each other and hold no text.
    """
    if isinstance(y, str | bytes | dict) or not isinstance(y, Collection):
        return False
    kind = getattr(getattr(y, "dtype", None), "kind", "O")  # data frames have types without one
    if getattr(y, "ndim", 1) != 1 or kind != "O":
        return False
    rows = list(y)
    if any(isinstance(row, _SETS) for row in rows):
        return True
    lists = [row for row in rows if isinstance(row, _LISTS)]
    is_matrix = len({len(row) for row in lists}) == 1 and len(lists) == len(rows)
    return bool(lists) and not (is_matrix and not any(isinstance(x, str) for x in lists[0]))


def checked_lists(y: Collection[Any], name: str) -> list[list[Any]]:
    """Return the labels of each bag, or say which of them cannot be labels.

    Parameters
    ----------
    y : collection of sets, or of lists or tuples of text
        The labels of each bag.
    name : str
        Class name for messages.
    """
    rows = [_checked_list(row, bag, name) for bag, row in enumerate(y)]
    is_text = any(isinstance(label, str) for row in rows for label in row)
    if not is_text and not any(isinstance(row, _SETS) for row in y):
        # Some of the bags might have lists of one length, which are rows of a matrix.
        msg = f"{name}: lists of numbers are not taken for lists of labels. Give sets of labels."
        raise ValueError(msg)
    return rows


def listed_labels(rows: list[list[Any]], name: str) -> NDArray[Any]:
    """Return the labels that are on some list, sorted.

    Parameters
    ----------
    rows : list of list
        The labels of each bag.
    name : str
        Class name for messages.
    """
    labels = {label for row in rows for label in row}
    try:
        ordered = sorted(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        msg = f"{name}: labels must be of one type, so that they can be sorted. Got {kinds}."
        raise ValueError(msg) from None
    if len(ordered) < 2:
        msg = f"{name} needs lists of at least two labels in all. Got {ordered}."
        raise ValueError(msg)
    return np.array(ordered)


def indicator_of(rows: list[list[Any]], classes: NDArray[Any]) -> Booleans:
    """Return which of the classes are on each list, and in a last column whether any other is.

    Parameters
    ----------
    rows : list of list
        The labels of each bag.
    classes : ndarray
        Labels.
    """
    place = {label: column for column, label in enumerate(classes.tolist())}
    indicator = np.zeros((len(rows), len(classes) + 1), np.bool_)
    for bag, row in enumerate(rows):
        indicator[bag, [place.get(label, -1) for label in row]] = True
    return indicator


def plain_label(label: Any) -> Any:
    """Return a label of numpy as one of Python; others are what they are."""
    return label.item() if isinstance(label, np.generic) else label


def _checked_list(row: Any, bag: int, name: str) -> list[Any]:
    """Return the labels of a bag, of Python's own types."""
    if not isinstance(row, _SETS + _LISTS):
        msg = (
            f"{name}: y must hold a set or list of labels for each bag, or one label for each. "
            f"Got {row!r} for bag {bag} beside lists."
        )
        raise ValueError(msg)
    out = [plain_label(label) for label in row]
    for label in out:
        if not isinstance(label, str | Real) or label != label:
            msg = (
                f"{name}: labels must be texts or numbers. Got {label!r} on the list of bag {bag}."
            )
            raise ValueError(msg)
    return out
