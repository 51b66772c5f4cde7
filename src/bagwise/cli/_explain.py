"""``bagwise explain``: which instance of each bag decides, and what the others score.

The object that ``--json`` prints::

    {"schema": 1, "command": "explain", "model": {"name": str, "path": str}, "data": DATA,
     "positive": label of the positive class, or null if there is none,
     "accuracy": or null, "metric": or null, "learned_from": or null, as for ``predict``,
     "key_success": share of the bags with a true key instance in which one is found (with two
                    classes: has the highest score for the positive one), or null,
     "bags": [{"bag": str, "predicted": label, "score": of the bag,
               "key": INSTANCE, "next": [INSTANCE, ...]}],
     "report": {"path": str, "bytes": int} or null}

with INSTANCE ``{"instance": place in the bag of the file, from 0, "name": str or null, "score":
float}``. With two classes, scores are for the second one; with more, and with clusters, for the one
predicted. With label lists there is an entry for each label predicted, or for the best one if none
is.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.cli._data import DataRequest, LoadedData, load_data
from bagwise.cli._files import REPORT, check_target
from bagwise.cli._models import FittedModel, check_width, load_model
from bagwise.cli._output import CommandError, Output, bad_input, json_value
from bagwise.cli._predict import label_texts, quality, tell_quality
from bagwise.cli._words import align, printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bagwise._arrays import Floats, Integers

_SEEN = (
    "This model file does not tell which bags the model learned from: if it was these, expect less "
    "on others."
)


@dataclass(frozen=True)
class _Story:
    """Why one bag got one label."""

    bag: int
    predicted: Any
    score: float
    places: list[int]  # the key instance first
    scores: list[float]


def run_explain(
    output: Output,
    path: Path,
    request: DataRequest,
    top: int,
    report: Path | None,
    *,
    overwrite: bool = False,
) -> None:
    """Explain.

    Parameters
    ----------
    output : Output
        Where to write.
    path : Path
        The model file.
    request : DataRequest
        The bags.
    top : int
        How many instances to name beside the key instance.
    report : Path or None
        File for the HTML report, if it is wanted.
    overwrite : bool
        Whether a file that is not of this kind, or that is read, may be replaced.
    """
    if report is not None:
        inputs = [path, *request.paths()]
        check_target(report, REPORT, inputs=inputs, overwrite=overwrite, option="--report")
    with output.busy("Loading"):
        model = load_model(path)
    if report is not None and model.is_clusterer:
        msg = f"{path} holds a {model.name}, which is a clusterer: reports are about classifiers."
        raise CommandError(msg, code="model", where="--report")
    request = model.request(request)
    data = load_data(output, request).with_positive(model.pos_label_)
    check_width(model, data.bags, request.data)
    with bad_input(code="data", where=request.data), output.busy("Explaining"):
        predicted, scores = model.predict(data.bags), model.decision_function(data.bags)
        try:
            keys, inside = model.key_instances(data.bags), _instance_scores(model, data)
        except AttributeError as error:
            msg = f"{model.name} scores bags only, not instances: it names no key instance."
            raise CommandError(msg, code="model", where=str(path)) from error
        labels = label_texts(output, model, data)
        stories = list(_stories(model, data, predicted, scores, keys, inside, labels, top))
    metric, value = quality(model, data, predicted, scores)
    found = _key_success(model, data)
    if model.pos_label_ is not None:
        output.note(f"Positive label: {printable(data.label_text(model.pos_label_))}")
    n_seen = tell_quality(output, model, data, metric, value)
    if found is not None:
        output.note(f"Key instance found in {found[0]:,} of the {found[1]:,} bags that hold one")
    written = None
    if report is not None:
        written = _write_report(output, report, model, path, data, request, labels, n_seen)
    text = _as_text(model, data, stories)
    output.result(
        text,
        {
            "command": "explain",
            "model": {"name": model.name, "path": str(path)},
            "data": data.as_json(),
            "positive": json_value(model.pos_label_),
            "accuracy": value,
            "metric": metric,
            "learned_from": n_seen,
            "key_success": None if found is None else found[0] / found[1],
            "bags": [_as_json(data, story) for story in stories],
            "report": None if written is None else {"path": str(report), "bytes": written},
        },
    )


def _instance_scores(model: FittedModel, data: LoadedData) -> "Floats":
    """Return the scores of instances as a matrix."""
    scores: Floats = model.instance_decision_function(data.bags)
    return scores[:, None] if scores.ndim == 1 else scores


def _stories(
    model: FittedModel,
    data: LoadedData,
    predicted: "NDArray[Any]",
    scores: "Floats",
    keys: "Integers",
    inside: "Floats",
    labels: list[str],
    top: int,
) -> Iterator[_Story]:
    import numpy as np

    offsets = data.bags.offsets
    for i in range(len(data.bags)):
        rows = inside[offsets[i] : offsets[i + 1]]
        if model.multilabel_:
            columns = np.flatnonzero(predicted[i])
            for j in columns if len(columns) else [int(scores[i].argmax())]:
                places, values = _ranked(rows[:, j], int(keys[i, j]), top)
                yield _Story(i, labels[j], float(scores[i, j]), places, values)
            continue
        column = 0 if scores.ndim == 1 else int(scores[i].argmax())
        score = scores[i] if scores.ndim == 1 else scores[i, column]
        places, values = _ranked(rows[:, column], int(keys[i]), top)
        yield _Story(i, predicted[i], float(score), places, values)


def _ranked(scores: "Floats", key: int, top: int) -> tuple[list[int], list[float]]:
    """Return the key instance and those that come next, towards the side that it decides for."""
    import numpy as np

    side = -scores if scores[key] == scores.max() else scores
    order = np.argsort(side, kind="stable")
    places = [key, *order[order != key][:top].tolist()]
    return places, scores[places].tolist()


def _key_success(model: FittedModel, data: LoadedData) -> tuple[int, int] | None:
    from bagwise.inspection import count_found

    if data.is_key is None or model.multilabel_ or model.is_clusterer:
        return None
    found, holding = count_found(model, data.bags, data.is_key)
    return (found, holding) if holding else None


# --------------------------------------------------------------------------------------- results


def _as_text(model: FittedModel, data: LoadedData, stories: list[_Story]) -> str:
    names = data.bag_names
    label_text = str if model.is_clusterer else data.label_text
    rows = [["bag", "predicted", "score", "key instance", "its score", "next: instance (score)"]]
    for story in stories:
        shown = [_instance_text(data, story, k) for k in range(len(story.places))]
        following = [
            f"{text} ({score:.3g})" for text, score in zip(shown[1:], story.scores[1:], strict=True)
        ]
        rows.append(
            [
                printable(names[story.bag]),
                printable(label_text(story.predicted)),
                f"{story.score:.3g}",
                shown[0],
                f"{story.scores[0]:.3g}",
                ", ".join(following) or "-",
            ]
        )
    return align(rows, right=(2, 4))


def _instance_text(data: LoadedData, story: _Story, k: int) -> str:
    name = data.instance_name(story.bag, story.places[k])
    place = data.place(story.bag, story.places[k])
    return str(place) if name is None else f"{place} {printable(name)}"


def _as_json(data: LoadedData, story: _Story) -> dict[str, Any]:
    instances = [
        {
            "instance": data.place(story.bag, place),
            "name": data.instance_name(story.bag, place),
            "score": score,
        }
        for place, score in zip(story.places, story.scores, strict=True)
    ]
    return {
        "bag": data.bag_names[story.bag],
        "predicted": json_value(story.predicted),
        "score": story.score,
        "key": instances[0],
        "next": instances[1:],
    }


def _write_report(
    output: Output,
    report: Path,
    model: FittedModel,
    path: Path,
    data: LoadedData,
    request: DataRequest,
    labels: list[str],
    n_seen: int | None,
) -> int:
    from bagwise.inspection import write_report

    command = ["bagwise", "explain", str(path), *request.arguments(), "--report", str(report)]
    told = data.y is None or n_seen is not None
    if not model.multilabel_:
        labels = [data.label_name(label) or str(label) for label in json_value(model.classes_)]
    with bad_input(code="data", where=request.data), output.busy("Writing the report"):
        size = write_report(
            report,
            model,
            data.bags,
            None if data.y is None else model.own_labels(data.y),
            is_key=data.is_key,
            name=model.name,
            render=data.render,
            title=f"{model.name} on {data.name}",
            label_names=labels,
            description=data.description if told else f"{data.description} {_SEEN}",
            facts={"Command": shlex.join(command)},
            places=data.places,
        )
    output.note(f"Report: {report} ({size / 1000:,.0f} kB), {report.resolve().as_uri()}")
    return size
