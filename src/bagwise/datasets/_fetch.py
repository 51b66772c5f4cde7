"""Real data sets: from a folder, from the cache, or downloaded and verified."""

import hashlib
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags
from bagwise.datasets._dataset import BagDataset
from bagwise.datasets._derived import derive
from bagwise.datasets._originals import Arrays, read_original
from bagwise.datasets._registry import DatasetInfo, OriginalFile, info
from bagwise.exceptions import BagFileError, DatasetUnavailableError

#: A folder with the sets in our own form, NAME.npz. It is looked at first, and never written to.
DATA_VARIABLE = "BAGWISE_DATA"
#: A folder to keep downloads in, instead of the platform's.
CACHE_VARIABLE = "BAGWISE_CACHE"


def fetch(
    name: str, *, data_home: str | os.PathLike[str] | None = None, download: bool = True
) -> BagDataset:
    """Load a data set of the registry; download it if it is not here yet.

    It is looked for as ``NAME.npz`` in the folder ``$BAGWISE_DATA``, then in the cache, then the
    original files in the cache. If it is nowhere, and the registry knows an address, the original
    files are downloaded, each from an address pinned to a commit. All files are verified by their
    SHA-256, and the numbers of bags, instances, features and labels are checked whenever a set is
    loaded.

    Parameters
    ----------
    name : str
        One of `available`.
    data_home : path, optional
        The cache. By default ``$BAGWISE_CACHE``, or the folder ``bagwise`` where the platform keeps
        caches.
    download : bool
        If False, use what is on this machine only.

    Returns
    -------
    dataset : BagDataset
        Bags, which carry their labels and names too, and the rest of what is known.

    Raises
    ------
    DatasetUnavailableError
        The set is not here and cannot be downloaded.
    BagFileError
        A file is not what the registry says.
    ValueError
        There is no such data set.

    See Also
    --------
    available : The names.
    info : What the registry says, citation and licence included.

    Examples
    --------
    >>> from bagwise.datasets import fetch
    >>> data = fetch("musk1")  # doctest: +SKIP
    >>> data.bags  # doctest: +SKIP
    Bags(92 bags, 476 instances, 166 features, float32; 2 to 40 instances per bag)
    """
    entry = info(name)
    cache = cache_folder() if data_home is None else Path(data_home)
    arrays = _from_npz(entry, cache)
    if arrays is not None:
        bags, y = _bags(entry, arrays), arrays["y"]
    elif entry.derived is not None:
        sources = [
            fetch(source, data_home=data_home, download=download)
            for source in entry.derived.sources
        ]
        part, y = derive(entry.derived, sources)
        bags = _relabeled(part, y)
    else:
        arrays = read_original(entry, _originals(entry, cache, download=download))
        bags, y = _bags(entry, arrays), arrays["y"]
    dataset = BagDataset(
        bags=bags,
        y=y,
        label_names=entry.label_names,
        instance_y=bags.instance_labels,
        description=entry.description,
    )
    _check_counts(entry, dataset)
    return dataset


def cache_folder() -> Path:
    """Return the folder that downloads are kept in; it need not exist."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "bagwise"


# ------------------------------------------------------------------------------- our own form


def _from_npz(entry: DatasetInfo, cache: Path) -> Arrays | None:
    """Return the arrays of NAME.npz, or None if there is no such file."""
    if entry.sha256 is None:
        return None
    folders = [Path(os.environ[DATA_VARIABLE]).expanduser()] if _data_folder_is_set() else []
    for folder in (*folders, cache):
        path = folder / f"{entry.name}.npz"
        if path.is_file():
            _verify(path, entry.sha256, f"the {path.name} of the registry")
            return _load_npz(path)
    return None


def _data_folder_is_set() -> bool:
    return bool(os.environ.get(DATA_VARIABLE))


def _load_npz(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (BadZipFile, OSError, ValueError) as error:
        msg = f"{path}: this is no NPZ file of arrays ({error})."
        raise BagFileError(msg) from error


def _bags(entry: DatasetInfo, arrays: Arrays) -> Bags:
    return Bags(
        arrays["X"],
        arrays["offsets"],
        bag_names=arrays.get("bag_names"),
        labels=arrays["y"],
        instance_labels=arrays.get("instance_y"),
        label_names=entry.label_names if arrays["y"].ndim == 2 else None,
    )


def _relabeled(bags: Bags, y: NDArray[Any]) -> Bags:
    """Return the same bags with these labels, and without the rows of bags left out."""
    return Bags(bags.instances, bags.offsets, bag_names=bags.bag_names, labels=y)


def _check_counts(entry: DatasetInfo, data: BagDataset) -> None:
    bags, y = data.bags, data.y
    per_label = np.bincount(y, minlength=entry.n_classes) if y.ndim == 1 else y.sum(axis=0)
    found = {
        "bags": len(bags),
        "instances": bags.n_instances,
        "features": bags.n_features,
        "bags per label": tuple(per_label.tolist()),
    }
    wanted = {
        "bags": entry.n_bags,
        "instances": entry.n_instances,
        "features": entry.n_features,
        "bags per label": entry.label_counts,
    }
    wrong = [
        f"{found[key]} {key}, not {wanted[key]}" for key in wanted if found[key] != wanted[key]
    ]
    if wrong:
        msg = f"The data set {entry.name} is not what the registry says: {'; '.join(wrong)}."
        raise BagFileError(msg)


# ---------------------------------------------------------------------------- original files


def _originals(entry: DatasetInfo, cache: Path, *, download: bool) -> list[Path]:
    """Return the verified original files, downloaded if need be."""
    origin = entry.origin
    folder = cache / "originals" / entry.name
    files = () if origin is None else origin.files
    missing = [file for file in files if not (folder / file.name).is_file()]
    if not files or (missing and not download):
        raise _unavailable(entry, "downloads are off" if files else "")
    for file in files:
        if file in missing:
            _download(entry, file, folder)
        else:
            _verify(folder / file.name, file.sha256, f"{file.path} of the registry")
    return [folder / file.name for file in files]


def _download(entry: DatasetInfo, file: OriginalFile, folder: Path) -> None:
    pooch = _import_pooch(entry)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pooch.retrieve(
            file.url, known_hash=f"sha256:{file.sha256}", fname=file.name, path=folder
        )  # to a temporary file, which is renamed once it is verified
    except OSError as error:  # of the network, too: requests' errors are OSErrors
        raise _unavailable(entry, f"the download failed: {error}") from error
    except ValueError as error:
        msg = (
            f"{file.url} is not the file that the registry knows (SHA-256 {file.sha256}). Nothing "
            "was kept."
        )
        raise BagFileError(msg) from error


def _import_pooch(entry: DatasetInfo) -> ModuleType:
    try:
        return import_module("pooch")
    except ImportError as error:
        reason = "downloads need pooch: pip install 'bagwise[data]'"
        raise _unavailable(entry, reason) from error


def _unavailable(entry: DatasetInfo, reason: str) -> DatasetUnavailableError:
    why = f" ({reason})" if reason else ""
    if entry.sha256 is not None:
        what = f"Put {entry.name}.npz into a folder and set {DATA_VARIABLE} to it"
    else:
        what = f"Get the sets that it is made of into the folder of {DATA_VARIABLE}"
    if entry.origin is not None and entry.origin.files:
        where = ", or go online once and call fetch again"
    else:
        where = f". {entry.origin.note}" if entry.origin is not None else ""
    end = "" if where.endswith(".") else "."
    msg = f"The data set {entry.name!r} is not on this machine{why}. {what}{where}{end}"
    return DatasetUnavailableError(msg)


def _verify(path: Path, sha256: str, what: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        msg = (
            f"{path} is not {what}: its SHA-256 is {found}, not {sha256}. Remove it, or set "
            f"{DATA_VARIABLE} to another folder."
        )
        raise BagFileError(msg)
