"""The option ``--positive``: which of two labels is the positive one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bagwise.cli._output import CommandError, Output
from bagwise.cli._words import count, printable, same_label

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OPTION = "--positive"


def tell_positive(
    output: Output,
    model: Any,
    y: "NDArray[Any] | None",
    text: str | None,
    given: Sequence[str],
    scoring: str | None = None,
) -> Any:
    """Tell a model its positive class, or refuse to guess it.

    Parameters
    ----------
    output : Output
        Where to say that nothing depends on it.
    model : object
        The estimator, not fitted; its parameter is set, if it has one.
    y : ndarray or None
        Labels or label lists, or None if the model learns without.
    text : str or None
        What the user wrote behind the option.
    given : sequence of str
        Names of the parameters that the user set or wants to be chosen.
    scoring : str or None
        What is measured, as scikit-learn calls it.

    Returns
    -------
    label or None
        The label that the score is about, if it is about one of two and it is known.
    """
    from bagwise.metrics import OF_POSITIVE_CLASS

    is_scored = scoring in OF_POSITIVE_CLASS
    model.set_params(**_parameter(output, model, y, text, given, is_scored=is_scored))
    labels = _two_labels(y)
    if labels is None or not is_scored:
        return None
    if text is not None:
        return _known_label(labels, text)
    return _scored_label(model, labels, scoring, given)


def _parameter(
    output: Output,
    model: Any,
    y: "NDArray[Any] | None",
    text: str | None,
    given: Sequence[str],
    *,
    is_scored: bool,
) -> dict[str, Any]:
    """Return the parameter that tells a model its positive class."""
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
    label = _known_label(labels, text)
    if not has_parameter:
        if not is_scored:
            output.note(f"{name} treats both labels alike: {_OPTION} changes nothing.")
        return {}
    return {"pos_label": label}


def _known_label(labels: "NDArray[Any]", text: str) -> Any:
    """Return which of two labels the user means."""
    known = [label for label in labels.tolist() if same_label(label, text)]
    if not known:
        names = " and ".join(printable(str(label)) for label in labels.tolist())
        msg = f"{text!r} is none of the labels {names}."
        raise CommandError(msg, code="usage", where=_OPTION)
    return known[0]


def _scored_label(
    model: Any, labels: "NDArray[Any]", scoring: str | None, given: Sequence[str]
) -> Any:
    """Return which of two labels a score is about where the option is not given."""
    from bagwise.base import is_conventional

    if "pos_label" in given:  # None: it is to be chosen, and each fit has its own
        return model.pos_label
    if is_conventional(labels):
        return labels.tolist()[1]
    first, second = (printable(str(label)) for label in labels.tolist())
    msg = (
        f"--scoring {scoring} is about one of the labels {first} and {second}: say with {_OPTION} "
        f"{first} or {_OPTION} {second} which one."
    )
    raise CommandError(msg, code="usage", where=_OPTION)


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
