"""What is inside a file, without keeping it."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.io._gather import checked_blocks
from bagwise.io._problems import bad
from bagwise.io._rows import Ledger, Reading


@dataclass(frozen=True)
class Description:
    """What `inspect` found in a file.

    Attributes
    ----------
    path : str
        The file.
    format : str
        Its format.
    compression : str or None
        gzip, bzip2, xz, zip or None.
    n_bytes : int
        Size on the disk (of a folder: of the files in it).
    guessed : dict of str to str
        What had to be guessed, by role: format, separator, bag, label, and so on.
    n_bags, n_instances, n_features : int
        Counts.
    dtype : str
        Type of the values.
    is_sparse : bool
        Whether the features are sparse.
    smallest_bag, median_bag, largest_bag : int, float, int
        Number of instances of the bags.
    label_counts : dict of str to int, or None
        Number of bags with each label (of several per bag: with each of them); None: no labels.
    is_multilabel : bool
        Whether a bag has a row of labels.
    has_bag_names, has_instance_names, has_instance_labels : bool
        What else is known.
    feature_names : list of str or None
        Names of the columns.
    """

    path: str
    format: str
    compression: str | None
    n_bytes: int
    guessed: dict[str, str]
    n_bags: int
    n_instances: int
    n_features: int
    dtype: str
    is_sparse: bool
    smallest_bag: int
    median_bag: float
    largest_bag: int
    label_counts: dict[str, int] | None
    is_multilabel: bool
    has_bag_names: bool
    has_instance_names: bool
    has_instance_labels: bool
    feature_names: list[str] | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as JSON can hold it."""
        return asdict(self)


def describe(reading: Reading) -> Description:
    """Read everything, block by block, and keep what is known about bags and columns."""
    facts = _of_rows(reading) if reading.blocks is not None else _of_pieces(reading)
    sizes = facts.pop("sizes")
    labels = facts.pop("labels")
    names = facts.pop("label_names")
    return Description(
        path=str(reading.source.path),
        format=reading.format,
        compression=reading.source.compression,
        n_bytes=reading.source.n_bytes,
        guessed=dict(reading.guessed),
        n_bags=len(sizes),
        n_instances=int(sizes.sum()),
        smallest_bag=int(sizes.min()),
        median_bag=float(np.median(sizes)),
        largest_bag=int(sizes.max()),
        label_counts=_count(labels, names),
        is_multilabel=labels is not None and labels.ndim == 2,
        **facts,
    )


def _of_rows(reading: Reading) -> dict[str, Any]:
    assert reading.blocks is not None
    ledger = Ledger(reading)
    width, dtype, is_sparse = 0, "", False
    for rows in checked_blocks(reading, reading.blocks()):
        ledger.add(rows)
        width = max(width, rows.matrix.shape[1])
        dtype, is_sparse = str(rows.matrix.dtype), not isinstance(rows.matrix, np.ndarray)
    known = ledger.aligned()
    return {
        "sizes": ledger.sizes,
        "labels": known.get("labels"),
        "label_names": known.get("label_names"),
        "n_features": width,
        "dtype": dtype,
        "is_sparse": is_sparse,
        "has_bag_names": True,
        "has_instance_names": "instance_names" in known,
        "has_instance_labels": "instance_labels" in known,
        "feature_names": reading.feature_names,
    }


def _of_pieces(reading: Reading) -> dict[str, Any]:
    assert reading.pieces is not None
    sizes, labels, last = [], [], None
    for piece in reading.pieces():
        sizes.append(piece.sizes)
        if piece.labels is not None:
            labels.append(piece.labels)
        last = piece
    if last is None:
        raise bad(reading.source.path, "there is no bag in it.")
    return {
        "sizes": np.concatenate(sizes),
        "labels": np.concatenate(labels) if labels else None,
        "label_names": last.label_names,
        "n_features": last.n_features,
        "dtype": str(last.dtype),
        "is_sparse": last.is_sparse,
        "has_bag_names": last.bag_names is not None,
        "has_instance_names": last.instance_names is not None,
        "has_instance_labels": last.instance_labels is not None,
        "feature_names": None if last.feature_names is None else last.feature_names.tolist(),
    }


def _count(labels: NDArray[Any] | None, names: Any) -> dict[str, int] | None:
    if labels is None:
        return None
    if labels.ndim == 1:
        values, counts = np.unique(labels, return_counts=True)
        return {str(v): int(n) for v, n in zip(values.tolist(), counts, strict=True)}
    shown = [str(j) for j in range(labels.shape[1])] if names is None else list(map(str, names))
    totals = (labels > 0).sum(axis=0).tolist()
    return dict(zip(shown, totals, strict=True))
