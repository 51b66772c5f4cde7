"""One file that is one bag: ``.npy``, ``.h5`` or ``.pt``."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.io._npy import read_npy
from bagwise.io._problems import bad, foreign, need
from bagwise.io._streams import Source

SUFFIXES = (".npy", ".h5", ".hdf5", ".pt", ".pth")

_DEFAULT_KEY = "features"


def read_array(path: Path, key: str | None, max_bytes: int | None) -> NDArray[Any]:
    """Read the array in a file; ``key`` names it where a file may hold several."""
    source = Source(path, path.suffix.lower(), None, max_bytes)
    if source.suffix == ".npy":
        with foreign(path, "the file cannot be read"), path.open("rb") as file:
            return read_npy(path, file, path.stat().st_size)
    if source.suffix in (".h5", ".hdf5"):
        return _read_h5(source, key)
    return _read_torch(source, key)


def read_bag(path: Path, key: str | None, max_bytes: int | None) -> NDArray[Any]:
    """Read a bag: a matrix, or a stack of one matrix."""
    array = read_array(path, key, max_bytes)
    if array.ndim == 3 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        msg = f"a bag is a matrix of numbers (instances x features). Got {array.dtype} of shape "
        raise bad(path, f"{msg}{array.shape}.")
    return array


def _read_h5(source: Source, key: str | None) -> NDArray[Any]:
    h5py = need("h5py", "Reading .h5 files", "'bagwise[data]'")
    path = source.path
    with foreign(path, "this is not an HDF5 file that can be read"), h5py.File(path, "r") as file:
        name = _choose(path, list(file), key)
        if not isinstance(file.get(name, getlink=True), h5py.HardLink):
            raise bad(path, f"{name!r} is a link, which might lead to another file.")
        data = file[name]
        if not isinstance(data, h5py.Dataset):
            raise bad(path, f"{name!r} is not an array.")
        if data.external or data.is_virtual:
            raise bad(path, f"{name!r} keeps its values in other files.")
        if data.dtype.kind not in "biuf":
            raise bad(path, f"{name!r} must hold numbers. Got dtype {data.dtype}.")
        source.admit(math.prod(data.shape) * data.dtype.itemsize, f"{name!r}")
        return np.asarray(data[()])


def _choose(path: Path, names: list[str], key: str | None) -> str:
    if key is not None or _DEFAULT_KEY in names:
        name = _DEFAULT_KEY if key is None else key
        if name in names:
            return name
    elif len(names) == 1:
        return names[0]
    listed = ", ".join(sorted(names)[:8]) or "nothing"
    raise bad(path, f"there is no array {key or _DEFAULT_KEY!r}; it has {listed}. key= names one.")


def _read_torch(source: Source, key: str | None) -> NDArray[Any]:
    """Read tensors only: a ``.pt`` file is a pickle, and nothing else in it is looked at."""
    torch = need("torch", "Reading .pt files", "torch")
    path = source.path
    with foreign(path, "this is not a file of plain tensors"):
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(loaded, dict):
            loaded = loaded[_choose(path, list(map(str, loaded)), key)]
        if not isinstance(loaded, torch.Tensor):
            raise bad(path, f"a tensor is needed. Got {type(loaded).__name__}.")
        if loaded.dtype == torch.bfloat16:
            loaded = loaded.float()
        return np.asarray(loaded.numpy())
