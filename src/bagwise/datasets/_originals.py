"""The layouts of the public copies of the data sets.

Each function takes the files of one original, already verified, in the order of the registry, and
the registry's entry, and returns the arrays of our own form: ``X, offsets, y`` and where known
``bag_names, instance_y``.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from bagwise._arrays import Floats, Integers
from bagwise.bags import Bags
from bagwise.datasets._registry import DatasetInfo
from bagwise.exceptions import BagFileError
from bagwise.io import read

Arrays: TypeAlias = dict[str, NDArray[Any]]


def read_original(entry: DatasetInfo, paths: Sequence[Path]) -> Arrays:
    """Read the files of an original, or say which of them is not as it should be."""
    if entry.origin is None or entry.origin.layout is None:
        msg = f"{entry.name} has no original files that can be read."
        raise BagFileError(msg)
    try:
        arrays = _LAYOUTS[entry.origin.layout](entry, paths)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        names = ", ".join(path.name for path in paths)
        msg = f"{names}: this is not the original of {entry.name} ({error})."
        raise BagFileError(msg) from error
    arrays["X"] = _shortest_float(arrays["X"])
    return arrays


def _c45(entry: DatasetInfo, paths: Sequence[Path]) -> Arrays:
    """Lines of bag, instance, features and class (0. or 1.), as in UCI's Musk."""
    return _from_bags(read(paths[0], format="c45"), np.int64)


def _milpy(entry: DatasetInfo, paths: Sequence[Path]) -> Arrays:
    """Three Matlab files: instances, the bag of each instance, the class of each bag."""
    instances, bags, labels = (loadmat(path) for path in paths)
    _, starts = _runs(bags["Bag2"].ravel())
    return {
        "X": instances["X"].astype(np.float64),
        "offsets": np.append(starts, len(bags["Bag2"])),
        "y": labels["bagI"].ravel().astype(np.int64),
    }


def _milpy_blocks(entry: DatasetInfo, paths: Sequence[Path]) -> Arrays:
    """As `_milpy`, where the third file marks the first class only: classes are equal blocks."""
    arrays = _milpy(entry, paths)
    first = arrays["y"]
    arrays["y"] = np.repeat(np.arange(entry.n_classes), entry.label_counts)
    if not np.array_equal(first == 1, arrays["y"] == 0):
        msg = "the bags of the first class are not where they should be"
        raise ValueError(msg)
    return arrays


def _miml_arff(entry: DatasetInfo, paths: Sequence[Path]) -> Arrays:
    """Relational ARFF with a column of zeros and ones for each label."""
    return _from_bags(read(paths[0], format="arff", label=entry.label_names), np.int8)


def _mcil(entry: DatasetInfo, paths: Sequence[Path]) -> Arrays:
    """Lines of ``instance:bag:label index:value ...`` behind a line with the counts.

    Bags are put in the order of their numbers, of which each class has 60 on end.
    """
    n_instances, n_features = map(int, _lines(paths[0])[0].split())
    instances = np.zeros((n_instances, n_features))
    bag_ids = np.empty(n_instances, dtype=np.int64)
    for row, line in enumerate(_lines(paths[0])[1:]):
        ids, *pairs = line.split()
        bag_ids[row] = int(ids.split(":")[1])
        for pair in pairs:
            index, value = pair.split(":")
            instances[row, int(index) - 1] = float(value)
    order = np.argsort(bag_ids, kind="stable")
    numbers, starts = _runs(bag_ids[order])
    ids_of_classes = entry.origin.class_ids if entry.origin is not None else ()
    return {
        "X": instances[order],
        "offsets": np.append(starts, n_instances),
        "y": np.searchsorted(ids_of_classes, (numbers - 1) // 60),
        "bag_names": numbers.astype(str),
    }


def _birds(entry: DatasetInfo, paths: Sequence[Path]) -> Arrays:
    """Three tables with a line of heads: features, labels of bags, label of each instance."""
    features, bag_labels, instance_labels = (
        [line.split(",") for line in _lines(path)[1:]] for path in paths
    )
    names, starts = _runs(np.array([cells[0] for cells in features]))
    if [cells[0] for cells in instance_labels] != [cells[0] for cells in features]:
        msg = "features and instance labels are not of the same bags"
        raise ValueError(msg)
    lists = {cells[0]: [int(label) - 1 for label in cells[1:]] for cells in bag_labels}
    y = np.zeros((len(names), entry.n_classes), dtype=np.int8)
    for bag, name in enumerate(names.tolist()):
        y[bag, lists[name]] = 1
    species = np.array([int(cells[1]) for cells in instance_labels], dtype=np.int16)
    return {
        "X": np.array([cells[1:] for cells in features], dtype=np.float64),
        "offsets": np.append(starts, len(features)),
        "y": y,
        "bag_names": names,
        "instance_y": np.where(species > 0, species - 1, -1).astype(np.int16),
    }


def _letter(entry: DatasetInfo, paths: Sequence[Path]) -> Arrays:
    """Matlab structure: instances, their labels, their bags, and the labels of bags as signs."""
    data = loadmat(paths[0])["DD"][0, 0]
    names, starts = _runs(data["XtB"].ravel())
    return {
        "X": data["X"].astype(np.float64),
        "offsets": np.append(starts, len(data["X"])),
        "y": (data["YB"] > 0).astype(np.int8),
        "bag_names": names.astype(str),
        "instance_y": data["YR"].argmax(axis=1).astype(np.int16),
    }


_LAYOUTS: Mapping[str, Callable[[DatasetInfo, Sequence[Path]], Arrays]] = {
    "birds": _birds,
    "c45": _c45,
    "letter": _letter,
    "mcil": _mcil,
    "milpy": _milpy,
    "milpy_blocks": _milpy_blocks,
    "miml_arff": _miml_arff,
}


def _from_bags(bags: Bags, label_type: type[np.integer[Any]]) -> Arrays:
    """Return the arrays of bags that one of the readers of users' files has read."""
    assert bags.labels is not None
    assert bags.bag_names is not None
    return {
        "X": bags.instances,
        "offsets": bags.offsets,
        "y": bags.labels.astype(label_type),
        "bag_names": bags.bag_names,
    }


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _runs(ids: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Return the bags in their order and the row at which each begins."""
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    names = ids[starts]
    if len(np.unique(names)) < len(names):
        msg = "the rows of a bag are not next to each other"
        raise ValueError(msg)
    return names, starts


def _shortest_float(values: Floats) -> NDArray[Any]:
    """Return float32 where that is exact."""
    short = values.astype(np.float32)
    return short if np.array_equal(short, values) else values
