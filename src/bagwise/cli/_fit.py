"""``bagwise fit``: learn from bags, labelled ones unless for clusters, and save the model.

The object that ``--json`` prints::

    {"schema": 1, "command": "fit", "seed": int,
     "data": DATA,
     "model": {"name": str, "parameters": {...} as given or chosen,
               "positive": label of the positive class, or null if there is none,
               "scaled": bool, "imputed": bool,
               "path": str, "bytes": int, or null both if it was not to be saved},
     "search": {"metric": str, "mean": best of the grid, "protocol": str} or null,
     "cross_validation": {"metric": str, "mean": float, "standard_error": float,
                          "values": [float per fold, or null where it is not defined, as on a fold
                                     that lacks a label: mean and error are of the others],
                          "protocol": str,
                          "others": [{"metric", "mean", "standard_error", "values"}],
                          "baseline": {"label": most frequent one, "accuracy": its share}, or
                                      null with label lists} or null,
     "training_accuracy": float, or null with label lists, for clusters and if not saved,
     "clusters": [{"cluster": value, "bags": int}], or null for classifiers,
     "certificate": {"status": str, "objective": float, "lower_bound": or null, "gap": or null,
                     "n_iter": int, "solve_seconds": float}, or null if not saved,
     "seconds": float}

DATA is the same for all commands: ``{"name": str, "bags": int, "instances": int,
"features": int, "labels": [{"label": value, "name": or null, "bags": int}] or null,
"guessed": {...}}``.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.cli._certificates import certificate_json, certificate_text
from bagwise.cli._cluster import cluster_sizes, sizes_text
from bagwise.cli._data import DataRequest, LoadedData, load_data
from bagwise.cli._evaluate import (
    SEARCH_FOLDS,
    Evaluation,
    Scores,
    check_measurable,
    check_pattern,
    check_scoring,
    grid_size,
)
from bagwise.cli._files import MODEL, check_target
from bagwise.cli._models import (
    MODEL_STEP,
    find_model,
    kind_of,
    make_model,
    prepared,
    scaling_text,
)
from bagwise.cli._output import CommandError, Output, bad_input, json_value, number
from bagwise.cli._positive import tell_positive, told_positive
from bagwise.cli._words import count, parse_grid, parse_settings, printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bagwise.bags import Bags


def run_fit(
    output: Output,
    request: DataRequest,
    model: str,
    path: Path | None,
    *,
    params: Sequence[str] | None = None,
    grid: Sequence[str] | None = None,
    positive: str | None = None,
    scale: bool = True,
    folds: int | None = None,
    scoring: str | None = None,
    groups: str | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Fit a model.

    Parameters
    ----------
    output : Output
        Where to write.
    request : DataRequest
        The bags.
    model : str
        Name of the estimator.
    path : Path or None
        File for the model; None, with ``folds`` only: estimate, and save nothing.
    params, grid : sequence of str
        Settings ``key=value``, and values to choose from, ``key=value,value``.
    positive : str or None
        The positive one of two labels.
    scale : bool
        Whether to scale the instances first.
    folds : int or None
        Number of folds of the cross-validation, if there is to be one.
    scoring : str or None
        What to measure and to choose by, as scikit-learn calls it.
    groups : str or None
        Regular expression that finds the group of a bag in its name.
    seed : int
        Seed of the folds and of the model.
    overwrite : bool
        Whether a file that is not of this kind, or that is read, may be replaced.
    """
    if path is not None:
        check_target(path, MODEL, inputs=request.paths(), overwrite=overwrite)
    elif not folds:
        msg = "--output FILE says where the model goes. Only with --cv N it can be left out."
        raise CommandError(msg, code="usage", where="--output")
    given, choices = parse_settings(params, "--param"), parse_grid(grid, "--grid")
    with output.busy("Loading"):
        cls = find_model(model)
        _check_settings(cls, given, choices, seed)
        _check_evaluation(scoring, groups, is_wanted=bool(folds or choices))
        if scoring is not None:
            check_measurable(scoring, cls())
    learns_from_labels = kind_of(cls) != "clusterer"
    if not learns_from_labels and (folds or choices):
        msg = f"{cls.__name__} learns without labels: there is no accuracy for --cv or --grid."
        raise CommandError(msg, code="usage", where="--cv" if folds else "--grid")
    data = load_data(output, request)
    y = data.need_labels(f"{cls.__name__} learns from labels") if learns_from_labels else None
    model_alone = make_model(cls, given, seed, "--param")
    names = [*given, *choices]
    scored = tell_positive(output, model_alone, y, positive, names, scoring)
    if scale:
        output.note(scaling_text(data.bags))
    started = time.perf_counter()
    impute = request.missing == "impute"
    estimator = prepared(model_alone, data.bags, scale=scale, impute=impute)
    prefix = "" if estimator is model_alone else f"{MODEL_STEP}__"
    validation = search = None
    chosen: dict[str, Any] = {}
    with bad_input(code="data", where=request.data), output.warnings():
        if y is not None:
            evaluation = Evaluation(output, data.bags, y, seed, scoring, groups, scored)
            candidates = {f"{prefix}{name}": values for name, values in choices.items()}
            if folds:
                validation = evaluation.validate(estimator, candidates, folds)
            if choices:
                best, search = evaluation.choose(estimator, candidates, folds or SEARCH_FOLDS)
                estimator.set_params(**best)
                chosen = {name.removeprefix(prefix): value for name, value in best.items()}
        fitted = None if path is None else _fit_and_save(output, estimator, data.bags, y, path)
    pos_label = told_positive(model_alone, y)
    answer = {
        "command": "fit",
        "seed": seed,
        "data": data.as_json(),
        "model": {
            "name": cls.__name__,
            "parameters": json_value({**given, **chosen}),
            "positive": json_value(pos_label),
            "scaled": scale,
            "imputed": impute,
            "path": None if path is None else str(path),
            "bytes": None if fitted is None else fitted.size,
        },
        "search": None if search is None else _as_json(search, folds_too=False),
        "cross_validation": None
        if validation is None
        else {
            **_as_json(validation),
            "others": [_as_json(scores, with_protocol=False) for scores in validation.others],
            "baseline": _baseline(y),
        },
        "training_accuracy": None if fitted is None else fitted.accuracy,
        "clusters": None if fitted is None else fitted.clusters,
        "certificate": None if fitted is None else certificate_json(fitted.result),
        "seconds": round(time.perf_counter() - started, 3),
    }
    lines = [f"{_name_text(cls.__name__, {**given, **chosen})} on {data.summary()}"]
    if (shown := scored if pos_label is None else pos_label) is not None:
        lines.append(f"Positive label: {printable(data.label_text(shown))}")
    if search is not None:
        lines.append(
            f"Chosen: {_settings_text(chosen)}, with {search.mean_text} {search.metric} the "
            f"best of {count(grid_size(choices), 'setting')} in {search.protocol}"
        )
    if validation is not None:
        lines += _validation_lines(validation, data, y)
    elif fitted is not None and fitted.accuracy is not None:
        lines.append(
            f"Accuracy on the bags it learned from: {fitted.accuracy:.1%} "
            "(says little of others; --cv 10 estimates that)"
        )
    if fitted is not None:
        lines += fitted.lines(path)
    output.result("\n".join(lines), answer)


@dataclass(frozen=True)
class _Saved:
    """What there is to say of a model that was fitted and saved."""

    size: int  # bytes of the file
    accuracy: float | None  # on the bags that it learned from
    clusters: list[dict[str, Any]] | None
    result: Any

    def lines(self, path: Path | None) -> list[str]:
        """Say it."""
        clusters = [] if self.clusters is None else [f"Clusters: {sizes_text(self.clusters)}"]
        return [
            *clusters,
            f"Certificate: {certificate_text(self.result)}",
            f"Saved: {path} ({self.size / 1000:,.1f} kB)",
        ]


def _fit_and_save(
    output: Output, estimator: Any, bags: "Bags", y: "NDArray[Any] | None", path: Path
) -> _Saved:
    import bagwise

    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    accuracy = None
    with output.busy(f"Fitting {type(last).__name__}"):
        estimator.fit(bags, *([] if y is None else [y]))
        if y is not None and y.ndim == 1:
            accuracy = float((estimator.predict(bags) == y).mean())
    bagwise.save(estimator, path)
    clusters = cluster_sizes(last.labels_) if y is None else None
    return _Saved(path.stat().st_size, accuracy, clusters, getattr(last, "result_", None))


def _check_settings(
    cls: type[Any], given: Mapping[str, Any], choices: Mapping[str, Sequence[Any]], seed: int
) -> None:
    """Refuse wrong names and values before any data are read."""
    make_model(cls, given, seed, "--param")
    for name, values in choices.items():
        if name in given:
            msg = f"{name} is given by --param and by --grid."
            raise CommandError(msg, code="usage", where="--grid")
        for value in values:
            make_model(cls, {**given, name: value}, seed, "--grid")


def _check_evaluation(scoring: str | None, groups: str | None, *, is_wanted: bool) -> None:
    """Refuse options of an evaluation that are wrong, or that nothing would look at."""
    for option, value, check in (
        ("--scoring", scoring, check_scoring),
        ("--groups", groups, check_pattern),
    ):
        if value is not None:
            if not is_wanted:
                msg = f"{option} is for --cv or --grid, and neither is given."
                raise CommandError(msg, code="usage", where=option)
            check(value)


def _as_json(
    scores: Scores, *, folds_too: bool = True, with_protocol: bool = True
) -> dict[str, Any]:
    found: dict[str, Any] = {"metric": scores.metric, "mean": number(scores.mean)}
    if folds_too:
        values = [number(value) for value in scores.values]
        found |= {"standard_error": number(scores.standard_error), "values": values}
    if with_protocol:
        found["protocol"] = scores.protocol
    return found


def _baseline(y: "NDArray[Any] | None") -> dict[str, Any] | None:
    """Return the most frequent label, and how often it is right."""
    import numpy as np

    if y is None or y.ndim == 2:
        return None
    labels, counts = np.unique(y, return_counts=True)
    top = int(counts.argmax())
    return {"label": json_value(labels[top]), "accuracy": float(counts[top] / len(y))}


def _validation_lines(scores: Scores, data: LoadedData, y: "NDArray[Any] | None") -> list[str]:
    told = [f"{other.metric} {other.text}" for other in scores.others]
    lines = [
        f"Cross-validated {scores.metric}: {', '.join([scores.text, *told])} "
        f"(mean ± standard error over the folds; {scores.protocol})"
    ]
    baseline = _baseline(y)
    if baseline is not None:
        label = data.label_text(baseline["label"])
        lines.append(f"Baseline: always answering {label} has {baseline['accuracy']:.1%} accuracy")
    return lines


def _settings_text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _name_text(name: str, settings: Mapping[str, Any]) -> str:
    return f"{name}({_settings_text(settings)})"
