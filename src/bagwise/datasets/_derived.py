"""Data sets that are parts of others, as papers used them."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bagwise._arrays import Integers
from bagwise.bags import Bags
from bagwise.datasets._dataset import BagDataset
from bagwise.datasets._registry import Derivation

Part = tuple[Bags, Integers]


def derive(derivation: Derivation, sources: Sequence[BagDataset]) -> Part:
    """Return the bags of a derived set and their labels."""
    return _RULES[derivation.rule](derivation, sources)


def _first_classes(derivation: Derivation, sources: Sequence[BagDataset]) -> Part:
    """Take the first classes."""
    (source,) = sources
    chosen = source.y < derivation.classes
    return source.bags[chosen], source.y[chosen]


def _positive_bags(derivation: Derivation, sources: Sequence[BagDataset]) -> Part:
    """Take the positive bags of each set; each set is a class."""
    parts = [source.bags[source.y == 1] for source in sources]
    return Bags.concatenate(parts), np.repeat(np.arange(len(parts)), [len(bags) for bags in parts])


def _single_label(derivation: Derivation, sources: Sequence[BagDataset]) -> Part:
    """Take the bags that have one label only, one of the columns; these are the classes."""
    (source,) = sources
    of_columns = source.y[:, list(derivation.columns)] > 0
    chosen = (source.y.sum(axis=1) == 1) & of_columns.any(axis=1)
    return source.bags[chosen], of_columns[chosen].argmax(axis=1)


_RULES: Mapping[str, Callable[[Derivation, Sequence[BagDataset]], Part]] = {
    "first_classes": _first_classes,
    "positive_bags": _positive_bags,
    "single_label": _single_label,
}
