"""From instances and a kernel to a `Trainer`, and from its solutions to fitted attributes.

An exact kernel gives an expansion over training instances (``support_vectors_``, ``dual_coef_``);
so does a map on landmarks, over these. The linear kernel gives weights of features (``coef_``),
random Fourier features weights of theirs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from bagwise._arrays import Floats
from bagwise.bags import Bags, rows_of
from bagwise.base import FeatureMap, gamma_attribute, make_features
from bagwise.kernels import InstanceKernel
from bagwise.svm.machinery._pass_trainer import PassTrainer
from bagwise.svm.machinery._points import (
    BagMean,
    bag_means,
    given_points,
    kernel_points,
)
from bagwise.svm.machinery._problem import Solution
from bagwise.svm.machinery._trainer import KernelTrainer, LinearTrainer, PointTrainer, Trainer

TrainerT = TypeVar("TrainerT", bound=Trainer, covariant=True)

_FORMED = 2e8  # bytes up to which a Gram matrix is formed before it is known which rows matter


@dataclass(frozen=True, eq=False)
class Representation(Generic[TrainerT]):
    """Instances ready for training.

    Parameters
    ----------
    trainer : Trainer
        Where problems are solved.
    attributes : callable
        Takes the solutions of all outputs; returns the fitted attributes that
        `bagwise.base.expand` needs.
    """

    trainer: TrainerT
    attributes: Callable[[Sequence[Solution]], dict[str, Any]]


def represent(
    bags: Bags,
    kernel: InstanceKernel | None,
    *,
    approx: str | None,
    rank: int,
    rng: np.random.Generator,
    means: BagMean | None,
    cache_bytes: int,
    solver: dict[str, Any],
    owner: str,
) -> Representation[PointTrainer]:
    """Return where the instances live.

    Parameters
    ----------
    bags : Bags
        Training bags.
    kernel : InstanceKernel or None
        The kernel; None means that the bags hold rows of a given Gram matrix.
    approx : {"cholesky", "nystroem", "fourier"} or None
        Low-rank map of the kernel, if any.
    rank : int
        Its rank.
    rng : Generator
        For maps that are random.
    means : {"kernel_mean", "mean_instance"} or None
        Whether means of bags will be asked for, and which: those of the instances in feature space,
        or the mean instances, mapped.
    cache_bytes : int
        Most memory for a Gram matrix. A small one is formed; of others rows are kept once they were
        needed, as many as fit.
    solver : dict
        Settings of the solver that the trainer is to use, such as ``tol``.
    owner : str
        Class name for messages.
    """
    if kernel is None:
        return _given(bags, solver, means=means, owner=owner)
    if kernel.name == "linear":
        return _linear(bags, solver)
    if approx is not None:
        mapped = make_features(
            kernel, rows_of(bags), approx=approx, rank=rank, rng=rng, owner=owner
        )
        return _mapped(bags, solver, *mapped, means)
    return _exact(bags, solver, kernel, means=means, cache_bytes=cache_bytes, owner=owner)


def represent_by_passes(
    bags: Bags,
    feature_map: FeatureMap,
    *,
    means: bool,
    max_memory: int | str | None,
    solver: dict[str, Any],
) -> Representation[PassTrainer]:
    """Return where the instances live if they are read in passes.

    Parameters
    ----------
    bags : Bags
        Training bags.
    feature_map : FeatureMap
        Makes the features of a chunk when it is read; none are made with the linear kernel.
    means : bool
        Whether means of bags will be asked for.
    max_memory : int, str or None
        Bound on what the chunks in flight take.
    solver : dict
        Settings of the trainer.
    """
    points = feature_map.transform(bag_means(bags, max_memory)) if means else None
    if feature_map.inner is None:
        transform, n_features = None, bags.n_features
    else:
        transform = feature_map.transform
        n_features = transform(bags[0]).shape[1]
    return Representation(
        PassTrainer(bags, points, transform, n_features, max_memory=max_memory, **solver),
        lambda solutions: feature_map.attributes(weights_of(solutions, n_features)),
    )


def expansion_attributes(instances: Any, coef: Floats, kernel: InstanceKernel) -> dict[str, Any]:
    """Return an expansion over instances as attributes; rows without a coefficient are left out."""
    rows = np.flatnonzero(coef.any(axis=0))
    return support_attributes(instances[rows], np.ascontiguousarray(coef[:, rows]), kernel)


def support_attributes(vectors: Any, coef: Floats, kernel: InstanceKernel) -> dict[str, Any]:
    """Return support vectors and their coefficients as attributes, without a copy."""
    return {"support_vectors_": vectors, "dual_coef_": coef, **gamma_attribute(kernel)}


def _exact(
    bags: Bags,
    solver: dict[str, Any],
    kernel: InstanceKernel,
    *,
    means: BagMean | None,
    cache_bytes: int,
    owner: str,
) -> Representation[PointTrainer]:
    instances, sizes = bags.instances, bags.sizes
    points = kernel_points(
        instances, bags.offsets, kernel,
        means=means, max_bytes=min(cache_bytes, _FORMED), owner=owner,
    )  # fmt: skip
    if points.array is None:
        solver = {**solver, "cache_bytes": cache_bytes}

    def attributes(solutions: Sequence[Solution]) -> dict[str, Any]:
        coef = np.array([solution.instance_coef(sizes) for solution in solutions])
        return {
            "support_": np.flatnonzero(coef.any(axis=0)),
            **expansion_attributes(instances, coef, kernel),
        }

    return Representation(KernelTrainer(points, bags.n_instances, **solver), attributes)


def _given(
    bags: Bags, solver: dict[str, Any], *, means: BagMean | None, owner: str
) -> Representation[PointTrainer]:
    points, rows = given_points(bags, means=means is not None, owner=owner)
    sizes = bags.sizes

    def attributes(solutions: Sequence[Solution]) -> dict[str, Any]:
        coef = np.array([solution.instance_coef(sizes) for solution in solutions])
        support = np.flatnonzero(coef.any(axis=0))
        return {"support_": rows[support], "dual_coef_": np.ascontiguousarray(coef[:, support])}

    return Representation(KernelTrainer(points, bags.n_instances, **solver), attributes)


def weights_of(solutions: Sequence[Solution], n_features: int) -> Floats:
    """Return the weight vectors; a constant machine has none."""
    zero = np.zeros(n_features)
    return np.array([zero if s.weights is None else s.weights for s in solutions])


def _linear(bags: Bags, solver: dict[str, Any]) -> Representation[PointTrainer]:
    n_features = bags.n_features
    return Representation(
        LinearTrainer(bags.instances, bags.offsets, **solver),
        lambda solutions: {"coef_": weights_of(solutions, n_features)},
    )


def _mapped(
    bags: Bags,
    solver: dict[str, Any],
    feature_map: FeatureMap,
    features: Any,
    means: BagMean | None,
) -> Representation[PointTrainer]:
    mapped = None
    if means == "mean_instance":
        mapped = feature_map.transform(bag_means(bags))
    return Representation(
        LinearTrainer(features, bags.offsets, means=mapped, **solver),
        lambda solutions: feature_map.attributes(weights_of(solutions, features.shape[1])),
    )
