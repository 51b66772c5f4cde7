"""NPZ archives: ``X`` and ``offsets`` (or bag ids), and what else is known."""

import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.bags import Bags
from bagwise.exceptions import InvalidBagsError
from bagwise.io._npy import read_npy
from bagwise.io._options import Options
from bagwise.io._problems import bad, foreign
from bagwise.io._rows import Reading
from bagwise.io._streams import Source

OPTIONS = frozenset({"bag", "label"})

#: The parts of bags, and how they may be called in an archive; the first name is ours.
_NAMES = {
    "instances": ("X", "instances", "features"),
    "offsets": ("offsets",),
    "bag_ids": ("bag_ids", "bags", "groups", "bag"),
    "labels": ("y", "labels", "label"),
    "label_names": ("label_names",),
    "bag_names": ("bag_names",),
    "instance_labels": ("instance_y", "instance_labels"),
    "instance_names": ("instance_names",),
    "feature_names": ("feature_names",),
}
_CSR = ("data", "indices", "indptr", "shape")
_MAX_MEMBERS = 1000


def open_reading(source: Source, options: Options) -> Reading:
    """Look at the names inside an archive."""
    problem = "this is not an NPZ archive that can be read"
    with foreign(source.path, problem), zipfile.ZipFile(source.path) as archive:
        names = [info.filename.removesuffix(".npy") for info in archive.infolist()]
        source.admit(sum(info.file_size for info in archive.infolist()))
    if len(names) > _MAX_MEMBERS:
        raise bad(source.path, f"an archive of bags has a few arrays, not {len(names)}.")
    guessed: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for role, usual in _NAMES.items():
        given = {"bag_ids": options.bag, "labels": options.label}.get(role)
        if given is False:
            continue
        if given is not None and given not in names:
            msg = f"there is no array {given!r}. It has {', '.join(names)}."
            raise bad(source.path, msg)
        found = [name for name in usual if name in names] if given is None else [str(given)]
        if found:
            chosen[role] = found[0]
            if given is None and found[0] != usual[0]:
                guessed[role] = f"array {found[0]!r}"
    is_sparse = "instances" not in chosen and set(_CSR) <= set(names)
    if not is_sparse and "instances" not in chosen:
        msg = f"there is no array X (the instances). It has {', '.join(names) or 'no arrays'}."
        raise bad(source.path, msg)
    if options.bag is not None:
        chosen.pop("offsets", None)
    if "offsets" not in chosen and "bag_ids" not in chosen:
        msg = f"there is no array offsets or bag_ids. It has {', '.join(names)}."
        raise bad(source.path, msg)
    guessed["arrays"] = ", ".join([*chosen.values(), *(_CSR if is_sparse else ())])
    return Reading(
        source,
        "npz",
        pieces=lambda: _pieces(source, chosen, is_sparse, bool(options.allow_nan)),
        guessed=guessed,
    )


def _pieces(
    source: Source, chosen: dict[str, str], is_sparse: bool, allow_nan: bool
) -> Iterator[Bags]:
    with foreign(source.path, "the archive is damaged"), zipfile.ZipFile(source.path) as archive:
        parts = {role: _member(source, archive, name) for role, name in chosen.items()}
        if is_sparse:
            parts["instances"] = _csr(source, [_member(source, archive, n) for n in _CSR])
    yield _bags(source, parts, allow_nan)


def _member(source: Source, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as file:
        array = read_npy(f"{source.path}: {name}", file, info.file_size)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _csr(source: Source, parts: list[NDArray[Any]]) -> Any:
    data, indices, indptr, shape = parts
    with foreign(source.path, "data, indices, indptr and shape do not make a matrix"):
        matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
        return matrix


def _bags(source: Source, parts: dict[str, Any], allow_nan: bool) -> Bags:
    names = parts.pop("label_names", None)
    labels = parts.get("labels")
    if labels is not None and labels.ndim == 2:  # for a single label a bag, y says it already
        parts["label_names"] = names
    ids = parts.pop("bag_ids", None)
    instances = parts.pop("instances")
    try:
        if "offsets" in parts:
            return Bags(instances, parts.pop("offsets"), **parts, allow_nan=allow_nan)
        parts.pop("bag_names", None)
        n_rows = instances.shape[0] if instances.ndim else 0
        if labels is not None and len(np.unique(ids)) == len(labels) != n_rows:
            msg = f"with bag_ids, labels must be given for each row. Got {len(labels)}."
            raise InvalidBagsError(msg)
        return Bags.from_groups(instances, ids, **parts, allow_nan=allow_nan)
    except (InvalidBagsError, TypeError, IndexError) as error:
        raise bad(source.path, f"{error}") from error
