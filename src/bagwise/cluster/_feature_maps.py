"""Explicit features of a kernel, so that a method for linear scores serves with kernels too."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags
from bagwise.base import check_fourier, gamma_attribute
from bagwise.exceptions import MemoryLimitError
from bagwise.kernels import (
    InstanceKernel,
    LandmarkMap,
    cholesky_features,
    nystroem,
    random_fourier,
)

#: An exact factor of the Gram matrix is made of no more instances than this.
MOST_EXACT = 10_000


class MappedBags(NamedTuple):
    """Bags of features, and what is to be kept of the map.

    Parameters
    ----------
    bags : Bags
        The same bags, each instance in the features of the map.
    attributes : callable
        Takes weights of the features, of shape (n_outputs, rank); returns the fitted attributes
        that `bagwise.base._expansions.expand` needs to score instances.
    """

    bags: Bags
    attributes: Callable[[NDArray[np.float64]], dict[str, Any]]


def map_bags(
    bags: Bags,
    kernel: InstanceKernel,
    *,
    approx: str | None,
    rank: int,
    rng: np.random.Generator,
    owner: str,
) -> MappedBags:
    """Return bags of features whose inner products are the kernel, or approximate it.

    Parameters
    ----------
    bags : Bags
        The bags; with the linear kernel they are returned as they are.
    kernel : InstanceKernel
        The kernel.
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
    if kernel.name == "linear":
        return MappedBags(bags, lambda coef: {"coef_": coef})
    gamma = gamma_attribute(kernel)
    instances = bags.instances
    if approx == "fourier":
        check_fourier(kernel, owner)
        feature_map = random_fourier(kernel, bags.n_features, rank=rank, rng=rng)
        kept = {
            "fourier_weights_": feature_map.weights,
            "fourier_offset_": feature_map.offset,
            **gamma,
        }
        features = feature_map.transform(instances)
        return MappedBags(Bags(features, bags.offsets), lambda coef: {"coef_": coef, **kept})
    if approx is None:
        rank = _full_rank(bags, owner)
    landmarks: LandmarkMap
    if approx == "nystroem":
        landmarks = nystroem(kernel, instances, rank=rank, rng=rng)
        features = landmarks.transform(instances)
    else:
        landmarks, features = cholesky_features(kernel, instances, rank=rank)
    if landmarks.rank == 0:  # a kernel that is 0 everywhere
        features = np.zeros((bags.n_instances, 1), features.dtype)

    def attributes(coef: NDArray[np.float64]) -> dict[str, Any]:
        return {
            "support_vectors_": landmarks.landmarks,
            "dual_coef_": landmarks.expansion(coef[:, : landmarks.rank]),
            **gamma,
        }

    return MappedBags(Bags(features, bags.offsets), attributes)


def _full_rank(bags: Bags, owner: str) -> int:
    if bags.n_instances > MOST_EXACT:
        msg = (
            f"{owner} with an exact kernel takes at most {MOST_EXACT} instances. "
            f"Got {bags.n_instances}: choose approx='nystroem', 'cholesky' or 'fourier'."
        )
        raise MemoryLimitError(msg)
    return int(bags.n_instances)
