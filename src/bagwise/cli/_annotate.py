"""``bagwise annotate``: from bags with lists of labels to instances with a label each.

A model learns every label of the lists against the rest. Each instance then gets the label, of
those on the list of its bag, for which it scores highest. ``MIMLCA`` has given instances their
labels while it learned, each label of a list to one instance at most: these it keeps. Below the
threshold of ``--reject`` an instance gets none. As CSV: ``bag,instance,name,label,score``, where
instances are counted from 0 and the label is empty if it is none of these. The object that
``--json`` prints::

    {"schema": 1, "command": "annotate", "seed": int, "data": DATA,
     "model": {"name": str, "parameters": {...}, "scaled": bool, "imputed": bool},
     "reject": or null, "any_label": bool, "labels": [str, ...],
     "named": number of instances with a label, "rejected": number without,
     "instance_accuracy": share named right of the instances whose label is known, or null,
     "instances": [{"bag": str, "instance": int, "name": or null, "label": or null,
                    "score": float or null}],
     "certificate": as for ``fit``, "output": path or null}
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.cli._certificates import certificate_json, certificate_text
from bagwise.cli._data import DataRequest, LoadedData, load_data
from bagwise.cli._files import ANNOTATIONS, check_target, csv_text, hand_over
from bagwise.cli._models import FittedModel, find_model, make_model, prepared, scaling_text
from bagwise.cli._output import CommandError, Output, bad_input, json_value
from bagwise.cli._words import count, parse_settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bagwise._arrays import Floats


@dataclass(frozen=True)
class _Names:
    """The column of the label of each instance (-1: none), and its score (NaN: no candidate)."""

    columns: "NDArray[np.intp]"
    scores: "Floats"


def run_annotate(
    output: Output,
    request: DataRequest,
    model: str,
    target: Path | None,
    *,
    params: Sequence[str] | None = None,
    scale: bool = True,
    reject: float | None = None,
    any_label: bool = False,
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Name instances.

    Parameters
    ----------
    output : Output
        Where to write.
    request : DataRequest
        Bags with lists of labels.
    model : str
        Name of a classifier that scores instances.
    target : Path or None
        File for the CSV; None: print it.
    params : sequence of str
        Settings ``key=value`` of the model.
    scale : bool
        Whether to scale the instances first.
    reject : float or None
        Instances that score below are none of these.
    any_label : bool
        Whether an instance may get a label that is not on the list of its bag.
    seed : int
        Seed of the model.
    overwrite : bool
        Whether a file that is not of this kind, or that is read, may be replaced.
    """
    if target is not None:
        check_target(target, ANNOTATIONS, inputs=request.paths(), overwrite=overwrite)
    given = parse_settings(params, "--param")
    with output.busy("Loading"):
        cls = find_model(model, "classifier")
        estimator = make_model(cls, given, seed, "--param")
        _check_scores_instances(estimator)
    data = load_data(output, request, lists=True)
    y = data.need_labels("annotate learns from lists of labels")
    if y.ndim != 2 or y.shape[1] < 2:
        msg = (
            f"annotate needs bags with lists of labels, such as a label column with 'a;b;c'; "
            f"{request.data} has one label per bag."
        )
        raise CommandError(msg, code="data", where=request.data)
    if scale:
        output.note(scaling_text(data.bags))
    impute = request.missing == "impute"
    estimator = prepared(estimator, data.bags, scale=scale, impute=impute)
    with bad_input(code="data", where=request.data), output.warnings():
        with output.busy(f"Fitting {cls.__name__}"):
            fitted = FittedModel(estimator.fit(data.bags, y))
        with output.busy("Naming instances"):
            names = _name_instances(fitted, data, y, reject, any_label=any_label)
    labels = data.label_list(y.shape[1])
    n_named = int((names.columns >= 0).sum())
    accuracy = _accuracy(data, names, labels)
    output.note(f"Certificate: {certificate_text(fitted.result_)}")
    n_rejected = data.bags.n_instances - n_named
    output.note(f"{count(n_named, 'instance')} named, {n_rejected:,} none of these.")
    if accuracy is not None:
        output.note(f"Right: {accuracy:.1%} of the instances whose label is known")
    rows = _rows(data, names, labels)
    text = csv_text(["bag", "instance", "name", "label", "score"], rows)
    keys = ("bag", "instance", "name", "label", "score")
    hand_over(
        output,
        target,
        text,
        {
            "command": "annotate",
            "seed": seed,
            "data": data.as_json(),
            "model": {
                "name": cls.__name__,
                "parameters": json_value(given),
                "scaled": scale,
                "imputed": impute,
            },
            "reject": reject,
            "any_label": any_label,
            "labels": labels,
            "named": n_named,
            "rejected": n_rejected,
            "instance_accuracy": accuracy,
            "instances": [dict(zip(keys, row, strict=True)) for row in rows],
            "certificate": certificate_json(fitted.result_),
        },
    )


def _check_scores_instances(estimator: Any) -> None:
    from bagwise.base import get_bag_tags

    if not get_bag_tags(estimator).instance_scores:
        msg = f"{type(estimator).__name__} scores bags only, so it cannot name instances."
        raise CommandError(msg, code="model", where="--model")


def _name_instances(
    model: FittedModel,
    data: LoadedData,
    y: "NDArray[Any]",
    reject: float | None,
    *,
    any_label: bool,
) -> _Names:
    import numpy as np

    scores = model.instance_decision_function(data.bags)
    if not any_label:
        scores = np.where(_candidates(model, data, y), scores, -np.inf)
    columns = scores.argmax(axis=1)
    best = scores.max(axis=1)
    without = np.isneginf(best)  # there is no candidate
    columns = np.where(without | (best < (-np.inf if reject is None else reject)), -1, columns)
    return _Names(columns, np.where(without, np.nan, best))


def _candidates(model: FittedModel, data: LoadedData, y: "NDArray[Any]") -> "NDArray[np.bool_]":
    """Tell which labels each instance may get."""
    import numpy as np

    assigned = getattr(model.last, "assignments_", None)
    if assigned is None:
        return np.repeat(y > 0, data.bags.sizes, axis=0)
    return np.asarray(assigned[:, None] == np.arange(y.shape[1]))


def _rows(data: LoadedData, names: _Names, labels: list[str]) -> list[tuple[Any, ...]]:
    bag_names, offsets = data.bag_names, data.bags.offsets.tolist()
    columns, scores = names.columns.tolist(), names.scores.tolist()
    rows = []
    for i, bag in enumerate(bag_names):
        for place, row in enumerate(range(offsets[i], offsets[i + 1])):
            label = None if columns[row] < 0 else labels[columns[row]]
            score = None if scores[row] != scores[row] else scores[row]
            name = data.instance_name(i, place)
            rows.append((bag, data.place(i, place), name, label, score))
    return rows


def _accuracy(data: LoadedData, names: _Names, labels: list[str]) -> float | None:
    """Return the share named right of the instances whose label is known.

    One that has none of the labels is right without a name.
    """
    truth = data.true_columns(labels)
    if truth is None:
        return None
    columns, known = truth
    return float((names.columns == columns)[known].mean())
