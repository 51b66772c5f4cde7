"""Fitted attributes of a function in the space of a kernel, and its values on instances."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.kernels import FourierMap, InstanceKernel, needs_gamma

_WITH_FOURIER = ("rbf", "laplacian")


def expand(model: Any, instances: Any) -> NDArray[np.float64]:
    """Return the scores of instances under the fitted attributes, without intercept."""
    if hasattr(model, "fourier_weights_"):
        fourier = FourierMap(model._fitted_kernel(), model.fourier_weights_, model.fourier_offset_)
        return np.asarray(fourier.transform(instances) @ model.coef_.T, np.float64)
    if hasattr(model, "coef_"):
        return np.asarray(instances @ model.coef_.T, np.float64)
    if model.kernel == "precomputed":
        return np.asarray(instances[:, model.support_] @ model.dual_coef_.T, np.float64)
    scores: NDArray[np.float64] = model._fitted_kernel().expand(
        instances, model.support_vectors_, model.dual_coef_
    )
    return scores


def gamma_attribute(kernel: InstanceKernel) -> dict[str, Any]:
    """Return the coefficient ``gamma`` of a kernel as a fitted attribute, if it has one."""
    return {"gamma_": kernel.gamma} if needs_gamma(kernel.name) else {}


def check_fourier(kernel: InstanceKernel, owner: str) -> None:
    """Refuse kernels that are no function of the difference of two instances."""
    if kernel.name not in _WITH_FOURIER:
        msg = (
            f"{owner} with approx='fourier' needs kernel='rbf' or 'laplacian': other kernels have "
            f"no random Fourier features. Got kernel={kernel.name!r}."
        )
        raise ValueError(msg)
