"""``bagwise predict``: labels and scores of bags.

As CSV: ``bag,predicted,score`` with two classes, ``bag,predicted,score CLASS,...`` with more or
with label lists (whose predicted labels are separated by semicolons); what a clusterer predicts
is the number of a cluster, and there is a score for each. The object that ``--json`` prints::

    {"schema": 1, "command": "predict", "model": {"name": str, "path": str}, "data": DATA,
     "classes": [label, ...], "accuracy": or null if the labels are not known,
     "metric": "accuracy", "average precision" (label lists), "clustering accuracy" (clusters
               and classes matched for the best on these bags) or null,
     "learned_from": how many of the bags the model learned from, or null if it cannot tell,
     "bags": [{"bag": str, "predicted": label or [label, ...],
               "score": float, or {"CLASS": float, ...}}],
     "output": path or null}
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.cli._data import DataRequest, LoadedData, load_data
from bagwise.cli._files import PREDICTIONS, check_target, csv_text, hand_over
from bagwise.cli._models import FittedModel, check_width, load_model
from bagwise.cli._output import Output, bad_input, json_value
from bagwise.cli._words import count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bagwise._arrays import Floats


def run_predict(
    output: Output,
    path: Path,
    request: DataRequest,
    target: Path | None,
    *,
    overwrite: bool = False,
) -> None:
    """Predict.

    Parameters
    ----------
    output : Output
        Where to write.
    path : Path
        The model file.
    request : DataRequest
        The bags.
    target : Path or None
        File for the CSV; None: print it.
    overwrite : bool
        Whether a file that is not of this kind, or that is read, may be replaced.
    """
    if target is not None:
        check_target(target, PREDICTIONS, inputs=[path, *request.paths()], overwrite=overwrite)
    with output.busy("Loading"):
        model = load_model(path)
    request = model.request(request)
    data = load_data(output, request)
    check_width(model, data.bags, request.data)
    with bad_input(code="data", where=request.data), output.busy("Predicting"):
        predicted = model.predict(data.bags)
        scores = model.decision_function(data.bags)
    labels = label_texts(output, model, data)
    names = data.bag_names
    head = ["score"] if scores.ndim == 1 else [f"score {label}" for label in labels]
    answers = [_answer(model, row, labels) for row in predicted]
    text = csv_text(
        ["bag", "predicted", *head],
        (
            (name, ";".join(answer) if isinstance(answer, list) else answer, *_list(row))
            for name, answer, row in zip(names, answers, scores, strict=True)
        ),
    )
    metric, value = quality(model, data, predicted, scores)
    n_seen = tell_quality(output, model, data, metric, value)
    hand_over(
        output,
        target,
        text,
        {
            "command": "predict",
            "model": {"name": model.name, "path": str(path)},
            "data": data.as_json(),
            "classes": labels if model.multilabel_ else json_value(model.classes_),
            "accuracy": value,
            "metric": metric,
            "learned_from": n_seen,
            "bags": [
                {
                    "bag": name,
                    "predicted": json_value(answer),
                    "score": float(row)
                    if scores.ndim == 1
                    else dict(zip(labels, row.tolist(), strict=True)),
                }
                for name, answer, row in zip(names, answers, scores, strict=True)
            ],
        },
    )


def label_texts(output: Output, model: FittedModel, data: LoadedData) -> list[str]:
    """Return the classes of a model as text; label lists are named by the data if they can be."""
    if not model.multilabel_:
        return [str(label) for label in model.classes_.tolist()]
    names = data.bags.label_names
    if names is not None and len(names) == len(model.classes_):
        output.note(f"Labels are named as in {data.name}; model files hold only their order.")
        return [str(name) for name in names.tolist()]
    output.note("Labels are counted from 0: model files hold only their order, not their names.")
    return [str(label) for label in model.classes_.tolist()]


def quality(
    model: FittedModel, data: LoadedData, predicted: "NDArray[Any]", scores: "Floats"
) -> tuple[str | None, float | None]:
    """Return how well known labels are predicted, or None if they are not known."""
    from bagwise.metrics import average_precision, clustering_accuracy

    y = data.y
    if y is None or y.shape != predicted.shape:
        return None, None
    if model.is_clusterer:
        return "clustering accuracy", float(clustering_accuracy(y, predicted))
    if model.multilabel_:
        return "average precision", float(average_precision(y, scores))
    return "accuracy", float((predicted == model.own_labels(y)).mean())


def tell_quality(
    output: Output, model: FittedModel, data: LoadedData, metric: str | None, value: float | None
) -> int | None:
    """Say how well known labels are predicted; return how many bags the model learned from."""
    from bagwise.inspection import learned_from

    seen = learned_from(model, data.bags)
    n_bags, n_seen = len(data.bags), None if seen is None else int(seen.sum())
    if value is not None:
        text = f"{metric}: {value:.1%} of {count(n_bags, 'bag')}".capitalize()
        if n_seen and not model.is_clusterer:
            which = "These are the bags" if n_seen == n_bags else f"{n_seen:,} of these are bags"
            text += f". {which} it learned from: expect less on others."
        output.note(text)
    return n_seen


def _answer(model: FittedModel, row: Any, labels: list[str]) -> Any:
    if model.multilabel_:
        return [label for label, wanted in zip(labels, row.tolist(), strict=True) if wanted]
    return row.item() if hasattr(row, "item") else row


def _list(row: Any) -> list[float]:
    return row.tolist() if row.ndim else [float(row)]
