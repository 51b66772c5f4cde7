"""The list of real data sets, read from ``registry.toml`` beside this file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class OriginalFile:
    """A file of a public repository, pinned to a commit.

    Parameters
    ----------
    path : str
        Path inside the repository.
    url : str
        Address of the file as it is in that commit.
    sha256 : str
        Its checksum.
    """

    path: str
    url: str
    sha256: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Origin:
    """The public copy that a data set was made of.

    Parameters
    ----------
    repository : str
        GitHub repository, owner and name.
    commit : str
        The commit.
    path : str
        Where in it, if there are no files.
    layout : str or None
        How the files are read; None if there are none.
    files : tuple of OriginalFile
        The files; empty if they cannot be had one by one.
    class_ids : tuple of int
        Numbers that the original gives to the classes, where it does.
    note : str
        Why there are no files, or what the original lacks.
    """

    repository: str
    commit: str
    path: str = ""
    layout: str | None = None
    files: tuple[OriginalFile, ...] = ()
    class_ids: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Derivation:
    """How a data set is made of others.

    Parameters
    ----------
    rule : {"first_classes", "positive_bags", "single_label"}
        What is taken of them.
    sources : tuple of str
        Names of the others.
    columns : tuple of int
        For "single_label": the labels whose bags are taken, in the order of the new classes.
    classes : int
        For "first_classes": how many.
    """

    rule: str
    sources: tuple[str, ...]
    columns: tuple[int, ...] = ()
    classes: int = 0


@dataclass(frozen=True)
class DatasetInfo:
    """What the registry says of a data set.

    Parameters
    ----------
    name : str
        Name to fetch it by.
    title, citation, licence, note : str
        What it is, whom to cite, what is known of its licence, and what to bear in mind.
    task : {"classification", "multiclass", "multilabel", "clustering"}
        What it is used for; "classification" is of two classes.
    n_bags, n_instances, n_features : int
        Counts.
    label_names : tuple of str
        Names of the classes or labels.
    label_counts : tuple of int
        Number of bags of each.
    sha256 : str or None
        Checksum of the set in our own form, ``NAME.npz``; None if there is no such file.
    origin : Origin or None
        Where it comes from.
    derived : Derivation or None
        How it is made of other sets.
    """

    name: str
    title: str
    task: str
    citation: str
    licence: str
    note: str
    n_bags: int
    n_instances: int
    n_features: int
    label_names: tuple[str, ...]
    label_counts: tuple[int, ...]
    sha256: str | None
    origin: Origin | None
    derived: Derivation | None

    @property
    def n_classes(self) -> int:
        """Number of classes or labels."""
        return len(self.label_names)

    @property
    def description(self) -> str:
        """Title, counts, note, citation and licence in one text."""
        counts = (
            f"{self.n_bags} bags, {self.n_instances} instances, {self.n_features} features, "
            f"{self.n_classes} {'labels' if self.task == 'multilabel' else 'classes'}."
        )
        parts = (f"{self.title}.".replace("?.", "?"), counts, self.note, f"{self.citation}.")
        return " ".join((*filter(None, parts), f"Licence: {self.licence}"))


@cache
def registry() -> Mapping[str, DatasetInfo]:
    """Return all entries by name."""
    text = files("bagwise.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
    return parse_registry(text)


def parse_registry(text: str) -> Mapping[str, DatasetInfo]:
    """Read entries in the form of ``registry.toml``."""
    entries = {name: _entry(name, table) for name, table in tomllib.loads(text).items()}
    return MappingProxyType(entries)


def info(name: str) -> DatasetInfo:
    """Return what is known of a data set without loading it.

    Parameters
    ----------
    name : str
        One of `available`.

    Examples
    --------
    >>> from bagwise.datasets import info
    >>> info("musk1").n_bags, info("musk1").origin.repository
    (92, 'garydoranjr/misvm')
    """
    known = registry()
    if name not in known:
        close = get_close_matches(str(name), known, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "bagwise.datasets.available() lists all."
        msg = f"There is no data set {name!r}. {hint}"
        raise ValueError(msg)
    return known[name]


def available(task: str | None = None) -> list[str]:
    """Return the names of the data sets that `fetch` knows, in the order of the registry.

    Parameters
    ----------
    task : {"classification", "multiclass", "multilabel", "clustering"}, optional
        Only the sets for this task.

    Examples
    --------
    >>> from bagwise.datasets import available
    >>> available("classification")[:5]
    ['musk1', 'musk2', 'elephant', 'fox', 'tiger']
    """
    known = registry()
    tasks = sorted({entry.task for entry in known.values()})
    if task is not None and task not in tasks:
        msg = f"task must be one of {tasks} or None. Got {task!r}."
        raise ValueError(msg)
    return [name for name, entry in known.items() if task in (None, entry.task)]


def _entry(name: str, table: dict[str, Any]) -> DatasetInfo:
    origin, derived = table.get("origin"), table.get("derived")
    return DatasetInfo(
        name=name,
        title=table["title"],
        task=table["task"],
        citation=table["citation"],
        licence=table["licence"],
        note=table.get("note", ""),
        n_bags=table["bags"],
        n_instances=table["instances"],
        n_features=table["features"],
        label_names=tuple(table["label_names"]),
        label_counts=tuple(table["label_counts"]),
        sha256=table.get("sha256"),
        origin=None if origin is None else _origin(origin),
        derived=None if derived is None else Derivation(**_tuples(derived)),
    )


def _origin(table: dict[str, Any]) -> Origin:
    return Origin(
        repository=table["repository"],
        commit=table["commit"],
        path=table.get("path", ""),
        layout=table.get("layout"),
        files=tuple(OriginalFile(**file) for file in table.get("files", ())),
        class_ids=tuple(table.get("class_ids", ())),
        note=table.get("note", table.get("remark", "")),
    )


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in table.items()}
