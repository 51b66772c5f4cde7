"""What decides inside of pipelines and searches."""

from typing import Any

from sklearn.pipeline import Pipeline


def last_step(estimator: Any) -> tuple[Any, Any]:
    """Return the estimator that decides, and what transforms the bags for it, or None.

    Parameters
    ----------
    estimator : object
        An estimator, a pipeline that ends in one, or a fitted search over these.
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, Pipeline):
        return estimator, None
    return estimator[-1], estimator[:-1] if len(estimator) > 1 else None
