"""Pipelines and searches that answer for instances as well."""

from typing import Any

from numpy.typing import NDArray

from bagwise._arrays import Floats, Integers
from bagwise.bags import Bags
from bagwise.base import last_step

#: Fitted attributes of the estimator that decides; it may lack some.
_FITTED = ("classes_", "multilabel_", "pos_label_", "result_")


class Answers:
    """What a fitted estimator says of bags and instances, whatever it is wrapped in.

    A pipeline of scikit-learn answers for bags only. Bags are transformed once, whatever is asked
    of them one after another.

    Parameters
    ----------
    estimator : object
        A fitted bag classifier or clusterer, a pipeline that ends in one, or a search over these.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = getattr(estimator, "best_estimator_", estimator)
        self.last, self._front = last_step(estimator)
        self._seen: tuple[Bags, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _FITTED:
            return getattr(self.last, name)
        if name in ("steps", "_bag_digests"):  # for `learned_from`
            return getattr(self.estimator, name)
        msg = f"{type(self).__name__} has no attribute {name!r}"
        raise AttributeError(msg)

    def predict(self, bags: Bags) -> NDArray[Any]:
        """Return the labels of bags."""
        return self.last.predict(self._transformed(bags))

    def decision_function(self, bags: Bags) -> Floats:
        """Return the scores of bags."""
        return self.last.decision_function(self._transformed(bags))

    def instance_decision_function(self, bags: Bags) -> Floats:
        """Return the scores of instances."""
        return self.last.instance_decision_function(self._transformed(bags))

    def key_instances(self, bags: Bags) -> Integers:
        """Return the place of the key instance in each bag."""
        return self.last.key_instances(self._transformed(bags))

    def _transformed(self, bags: Bags) -> Any:
        if self._front is None:
            return bags
        if self._seen is None or self._seen[0] is not bags:
            self._seen = (bags, self._front.transform(bags))
        return self._seen[1]


def unwrapped(estimator: Any) -> Any:
    """Return a pipeline or search as `Answers`; everything else as it is."""
    if last_step(estimator)[0] is estimator:
        return estimator
    return Answers(estimator)
