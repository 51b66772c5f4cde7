"""``bagwise fit``: learn from bags, labelled ones unless for clusters, and save the model.

The object that ``--json`` prints::

    {"schema": 1, "command": "fit", "seed": int,
     "data": DATA,
     "model": {"name": str, "parameters": {...} as given or chosen, "scaled": bool,
               "path": str, "bytes": int},
     "search": {"metric": str, "mean": best of the grid, "protocol": str} or null,
     "cross_validation": {"metric": str, "mean": float, "standard_error": float,
                          "values": [float per fold], "protocol": str} or null,
     "training_accuracy": float, or null with label lists and for clusters,
     "clusters": [{"cluster": value, "bags": int}], or null for classifiers,
     "certificate": {"status": str, "objective": float, "lower_bound": or null, "gap": or null,
                     "n_iter": int, "solve_seconds": float} or null,
     "seconds": float}

DATA is the same for all commands: ``{"name": str, "bags": int, "instances": int,
"features": int, "labels": [{"label": value, "name": or null, "bags": int}] or null,
"guessed": {...}}``.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bagwise.cli._certificates import certificate_json, certificate_text
from bagwise.cli._cluster import cluster_sizes, sizes_text
from bagwise.cli._data import DataRequest, load_data
from bagwise.cli._evaluate import SEARCH_FOLDS, Evaluation, Scores, grid_size
from bagwise.cli._files import MODEL, check_target
from bagwise.cli._models import (
    MODEL_STEP,
    find_model,
    kind_of,
    make_model,
    scaling_text,
    with_scaling,
)
from bagwise.cli._output import CommandError, Output, bad_input, json_value
from bagwise.cli._words import count, parse_grid, parse_settings


def run_fit(
    output: Output,
    request: DataRequest,
    model: str,
    path: Path,
    *,
    params: Sequence[str] | None = None,
    grid: Sequence[str] | None = None,
    scale: bool = True,
    folds: int | None = None,
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
    path : Path
        File for the model.
    params, grid : sequence of str
        Settings ``key=value``, and values to choose from, ``key=value,value``.
    scale : bool
        Whether to scale the instances first.
    folds : int or None
        Number of folds of the cross-validation, if there is to be one.
    seed : int
        Seed of the folds and of the model.
    overwrite : bool
        Whether a file that is not of this kind, or that is read, may be replaced.
    """
    check_target(path, MODEL, inputs=request.paths(), overwrite=overwrite)
    given, choices = parse_settings(params, "--param"), parse_grid(grid, "--grid")
    with output.busy("Loading"):
        cls = find_model(model)
        _check_settings(cls, given, choices, seed)
    learns_from_labels = kind_of(cls) != "clusterer"
    if not learns_from_labels and (folds or choices):
        msg = f"{cls.__name__} learns without labels: there is no accuracy for --cv or --grid."
        raise CommandError(msg, code="usage", where="--cv" if folds else "--grid")
    data = load_data(output, request)
    y = data.need_labels(f"{cls.__name__} learns from labels") if learns_from_labels else None
    if scale:
        output.note(scaling_text(data.bags))
    started = time.perf_counter()
    estimator = make_model(cls, given, seed, "--param")
    prefix = ""
    if scale:
        estimator, prefix = with_scaling(estimator, data.bags), f"{MODEL_STEP}__"
    validation = search = None
    chosen: dict[str, Any] = {}
    with bad_input(code="data", where=request.data), output.warnings():
        if y is not None:
            evaluation = Evaluation(output, data.bags, y, seed)
            candidates = {f"{prefix}{name}": values for name, values in choices.items()}
            if folds:
                validation = evaluation.validate(estimator, candidates, folds)
            if choices:
                best, search = evaluation.choose(estimator, candidates, folds or SEARCH_FOLDS)
                estimator.set_params(**best)
                chosen = {name.removeprefix(prefix): value for name, value in best.items()}
        with output.busy(f"Fitting {cls.__name__}"):
            fitted = estimator.fit(data.bags, *([] if y is None else [y]))
            right = None
            if y is not None and y.ndim == 1:
                right = float((fitted.predict(data.bags) == y).mean())

    import bagwise

    bagwise.save(fitted, path)
    result = getattr(fitted[-1] if scale else fitted, "result_", None)
    size = path.stat().st_size
    sizes = None
    if not learns_from_labels:
        sizes = cluster_sizes((fitted[-1] if scale else fitted).labels_)
    answer = {
        "command": "fit",
        "seed": seed,
        "data": data.as_json(),
        "model": {
            "name": cls.__name__,
            "parameters": json_value({**given, **chosen}),
            "scaled": scale,
            "path": str(path),
            "bytes": size,
        },
        "search": None if search is None else _as_json(search, folds_too=False),
        "cross_validation": None if validation is None else _as_json(validation),
        "training_accuracy": right,
        "clusters": sizes,
        "certificate": certificate_json(result),
        "seconds": round(time.perf_counter() - started, 3),
    }
    lines = [f"{_name_text(cls.__name__, {**given, **chosen})} on {data.summary()}"]
    if search is not None:
        lines.append(
            f"Chosen: {_settings_text(chosen)}, with {_percent(search.mean)} {search.metric} the "
            f"best of {count(grid_size(choices), 'setting')} in {search.protocol}"
        )
    if validation is not None:
        lines.append(_validation_text(validation))
    elif right is not None:
        lines.append(
            f"Accuracy on the bags it learned from: {_percent(right)} "
            "(says little of others; --cv 10 estimates that)"
        )
    if sizes is not None:
        lines.append(f"Clusters: {sizes_text(sizes)}")
    lines.append(f"Certificate: {certificate_text(result)}")
    lines.append(f"Saved: {path} ({size / 1000:,.1f} kB)")
    output.result("\n".join(lines), answer)


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


def _as_json(scores: Scores, *, folds_too: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {"metric": scores.metric, "mean": scores.mean}
    if folds_too:
        found |= {"standard_error": scores.standard_error, "values": list(scores.values)}
    return {**found, "protocol": scores.protocol}


def _validation_text(scores: Scores) -> str:
    return (
        f"Cross-validated {scores.metric}: {_percent(scores.mean)} ± "
        f"{100 * scores.standard_error:.1f} (mean ± standard error over the folds; "
        f"{scores.protocol})"
    )


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _settings_text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _name_text(name: str, settings: Mapping[str, Any]) -> str:
    return f"{name}({_settings_text(settings)})"
