"""The option ``--positive``: which of two labels is the positive one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bagwise.cli._output import CommandError, Output
from bagwise.cli._words import count, printable, same_label

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OPTION = "--positive"


def positive_label(
    output: Output, model: Any, y: "NDArray[Any] | None", text: str | None, given: Sequence[str]
) -> dict[str, Any]:
    """Return the parameter that tells a model its positive class, or refuse to guess it.

    Parameters
    ----------
    output : Output
        Where to say that nothing depends on it.
    model : object
        The estimator, not fitted.
    y : ndarray or None
        Labels or label lists, or None if the model learns without.
    text : str or None
        What the user wrote behind the option.
    given : sequence of str
        Names of the parameters that the user set or wants to be chosen.
    """
    from bagwise.base import get_bag_tags, is_conventional

    name = type(model).__name__
    labels = _two_labels(y)
    has_parameter = "pos_label" in model.get_params(deep=False)
    if text is None:
        if labels is None or not has_parameter or "pos_label" in given:
            return {}
        if get_bag_tags(model).asymmetric and not is_conventional(labels):
            first, second = (printable(str(label)) for label in labels.tolist())
            msg = (
                f"{name} does not treat the labels {first} and {second} alike: say with {_OPTION} "
                f"{first} or {_OPTION} {second} which one a single instance can decide for."
            )
            raise CommandError(msg, code="usage", where=_OPTION)
        return {}
    if "pos_label" in given:
        msg = f"the positive label is given by {_OPTION} and as the parameter pos_label."
        raise CommandError(msg, code="usage", where=_OPTION)
    if labels is None:
        msg = f"{_OPTION} is for two labels, and there are {_kind(y)}."
        raise CommandError(msg, code="usage", where=_OPTION)
    known = [label for label in labels.tolist() if same_label(label, text)]
    if not known:
        names = " and ".join(printable(str(label)) for label in labels.tolist())
        msg = f"{text!r} is none of the labels {names}."
        raise CommandError(msg, code="usage", where=_OPTION)
    if not has_parameter:
        output.note(f"{name} treats both labels alike: {_OPTION} changes nothing.")
        return {}
    return {"pos_label": known[0]}


def told_positive(model: Any, y: "NDArray[Any] | None") -> Any:
    """Return the label that a model takes for the positive one, None if it takes none."""
    labels = _two_labels(y)
    if labels is None or "pos_label" not in model.get_params(deep=False):
        return None
    return labels.tolist()[1] if model.pos_label is None else model.pos_label


def _two_labels(y: "NDArray[Any] | None") -> "NDArray[Any] | None":
    """Return the labels, if there are two."""
    import numpy as np

    if y is None or y.ndim == 2:
        return None
    labels = np.unique(y)
    return labels if len(labels) == 2 else None


def _kind(y: "NDArray[Any] | None") -> str:
    import numpy as np

    if y is None:
        return "none to learn from"
    return "lists of them" if y.ndim == 2 else count(len(np.unique(y)), "label")
