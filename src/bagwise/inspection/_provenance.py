"""Where a result comes from: versions of what computed it, and a fingerprint of the data."""

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from bagwise._version import __version__
from bagwise.bags import Bags

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "threadpoolctl")


def package_versions() -> dict[str, str]:
    """Return the versions of bagwise, Python and what bagwise computes with."""
    found = {"bagwise": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def data_digest(bags: Bags, y: Any = None) -> str:
    """Return the SHA-256 of the values, the offsets and the labels; names do not count.

    Parameters
    ----------
    bags : Bags
        The bags.
    y : array-like, optional
        Their labels.

    Examples
    --------
    >>> from bagwise import Bags
    >>> from bagwise.inspection import data_digest
    >>> together = Bags([[1.0], [2.0]], [0, 2])
    >>> apart = Bags([[1.0], [2.0]], [0, 1, 2])
    >>> data_digest(together) == data_digest(apart)
    False
    """
    instances = bags.instances
    arrays = [bags.offsets]
    if bags.is_sparse:
        arrays += [instances.data, instances.indices, instances.indptr]
    else:
        arrays.append(instances)
    if y is not None:
        labels = np.asarray(y)
        arrays.append(labels if labels.dtype.kind in "biuf" else labels.astype(np.str_))
    digest = hashlib.sha256()
    for array in arrays:
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{plain.dtype.str}{plain.shape};".encode())
        digest.update(plain.tobytes())
    return digest.hexdigest()
