"""Features that stand for a kernel, and functions of them as the attributes that a fit leaves.

The features of the linear kernel are the instances themselves; a function of them is ``coef_``. So
is one of random Fourier features, beside the map itself. A function of the features of landmarks is
an expansion over these, ``support_vectors_`` and ``dual_coef_``, as that of an exact kernel is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Floats
from bagwise._compat import Interval, StrOptions
from bagwise._threads import ordered_map
from bagwise.base._kernel_parameters import gamma_attribute
from bagwise.exceptions import MemoryLimitError
from bagwise.kernels import (
    FourierMap,
    InstanceKernel,
    LandmarkMap,
    cholesky_features,
    nystroem,
    random_fourier,
)

#: Constraints on the parameters that choose a map.
MAP_CONSTRAINTS: dict[str, list[Any]] = {
    "approx": [StrOptions({"cholesky", "nystroem", "fourier"}), None],
    "rank": [Interval(Integral, 1, None, closed="left")],
}
#: An exact factor of the Gram matrix is made of no more instances than this.
MOST_EXACT = 10_000
_MOST_ROWS, _LEAST_ROWS, _BLOCK_VALUES = 4096, 128, 2**19  # that are multiplied at a time
_WITH_FOURIER = ("rbf", "laplacian")


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """A map of instances to features whose inner products are a kernel, or approximate it.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel.
    inner : LandmarkMap, FourierMap or None
        What makes the features; None with the linear kernel.
    """

    kernel: InstanceKernel
    inner: LandmarkMap | FourierMap | None = None

    def transform(self, instances: Any) -> Any:
        """Return the features of instances."""
        return instances if self.inner is None else _some(self.inner.transform(instances))

    def attributes(self, coef: Floats) -> dict[str, Any]:
        """Return the fitted attributes that `expand` needs.

        Parameters
        ----------
        coef : ndarray of shape (n_outputs, n_map_features)
            Weights of the features.
        """
        if self.inner is None:
            return {"coef_": coef}
        if isinstance(self.inner, FourierMap):
            kept = {
                "coef_": coef,
                "fourier_weights_": self.inner.weights,
                "fourier_offset_": self.inner.offset,
            }
        else:
            weights = coef[:, : self.inner.rank]
            kept = {
                "support_vectors_": self.inner.landmarks,
                # One by one: the bits of an output do not depend on what else is learned.
                "dual_coef_": np.array([self.inner.expansion(one) for one in weights]),
            }
        return {**kept, **gamma_attribute(self.kernel)}


def make_features(
    kernel: InstanceKernel,
    instances: Any,
    *,
    approx: str | None,
    rank: int,
    rng: np.random.Generator,
    owner: str,
) -> tuple[FeatureMap, Any]:
    """Return a map that fits the instances, and their features.

    Parameters
    ----------
    kernel : InstanceKernel
        The kernel.
    instances : ndarray, CSR matrix or SelectedRows of shape (n_instances, n_features)
        Instances.
    approx : {"cholesky", "nystroem", "fourier"} or None
        Which low-rank map; None for features of the exact kernel, which are as many as the rank
        of the Gram matrix.
    rank : int
        Rank of the low-rank map.
    rng : Generator
        For maps that are random.
    owner : str
        Class name for messages.
    """
    if kernel.name != "linear" and approx in ("cholesky", None):
        rank = _full_rank(instances, owner) if approx is None else rank
        inner, features = cholesky_features(kernel, instances, rank=rank)
        return FeatureMap(kernel, inner), _some(features)
    mapped = make_map(kernel, instances, approx=approx, rank=rank, rng=rng, owner=owner)
    return mapped, mapped.transform(instances)


def make_map(
    kernel: InstanceKernel,
    instances: Any,
    *,
    approx: str | None,
    rank: int,
    rng: np.random.Generator,
    owner: str,
) -> FeatureMap:
    """Return a map that is made without the features of all instances.

    Parameters
    ----------
    kernel, instances, rank, rng, owner
        As in `make_features`.
    approx : {"nystroem", "fourier"} or None
        Which low-rank map; None only with the linear kernel.
    """
    if kernel.name == "linear":
        return FeatureMap(kernel)
    if approx == "fourier":
        _check_fourier(kernel, owner)
        return FeatureMap(kernel, random_fourier(kernel, instances.shape[1], rank=rank, rng=rng))
    return FeatureMap(kernel, nystroem(kernel, instances, rank=rank, rng=rng))


def expand(model: Any, instances: Any, fitted: Mapping[str, Any] | None = None) -> Floats:
    """Return the scores of instances, without intercept.

    Parameters
    ----------
    model : KernelParameters
        An estimator with a kernel.
    instances : ndarray, CSR matrix or SelectedRows of shape (n_instances, n_features)
        Instances.
    fitted : mapping, optional
        Fitted attributes; those of the model if they are not given.
    """
    fitted = vars(model) if fitted is None else fitted
    if "fourier_weights_" in fitted:
        kernel = model._fitted_kernel(fitted)
        fourier = FourierMap(kernel, fitted["fourier_weights_"], fitted["fourier_offset_"])
        return linear_scores(instances, fitted["coef_"], fourier.transform)
    if "coef_" in fitted:
        return linear_scores(instances, fitted["coef_"])
    if model.kernel == "precomputed":
        return linear_scores(
            instances, fitted["dual_coef_"], lambda block: block[:, fitted["support_"]]
        )
    scores: Floats = model._fitted_kernel(fitted).expand(
        instances, fitted["support_vectors_"], fitted["dual_coef_"]
    )
    return scores


def linear_scores(
    instances: Any, coef: Floats, features: Callable[[Any], Any] | None = None
) -> Floats:
    """Return inner products with weights, block by block: single precision is never copied.

    Parameters
    ----------
    instances : ndarray, CSR matrix or SelectedRows of shape (n_instances, n_features)
        Instances.
    coef : ndarray of shape (n_outputs, n_map_features)
        The weights.
    features : callable, optional
        Makes the features of a block; by default they are the instances themselves.
    """
    n, weights = int(instances.shape[0]), np.ascontiguousarray(coef.T)
    out = np.empty((n, len(coef)))
    fitting = _BLOCK_VALUES // max(1, int(instances.shape[1]))
    length = min(_MOST_ROWS, max(_LEAST_ROWS, fitting))
    starts = range(0, n, length)

    def scores(start: int) -> Floats:
        block = instances[start : start + length]
        return np.asarray((block if features is None else features(block)) @ weights, np.float64)

    made = ordered_map(scores, starts, n_threads=None if len(starts) > 1 else 1)
    for start, part in zip(starts, made, strict=True):
        out[start : start + length] = part
    return out


def _some(features: NDArray[Any]) -> NDArray[Any]:
    """Return features; one that is 0 where there are none, as of a kernel that is 0 everywhere."""
    return features if features.shape[1] else np.zeros((len(features), 1), features.dtype)


def _full_rank(instances: Any, owner: str) -> int:
    n_instances = int(instances.shape[0])
    if n_instances > MOST_EXACT:
        msg = (
            f"{owner} with an exact kernel takes at most {MOST_EXACT} instances. "
            f"Got {n_instances}: choose approx='nystroem', 'cholesky' or 'fourier'."
        )
        raise MemoryLimitError(msg)
    return n_instances


def _check_fourier(kernel: InstanceKernel, owner: str) -> None:
    """Refuse kernels that are no function of the difference of two instances."""
    if kernel.name not in _WITH_FOURIER:
        msg = (
            f"{owner} with approx='fourier' needs kernel='rbf' or 'laplacian': other kernels have "
            f"no random Fourier features. Got kernel={kernel.name!r}."
        )
        raise ValueError(msg)
