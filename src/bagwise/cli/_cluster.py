"""``bagwise cluster``: put bags into clusters, and say which instance put each there.

As CSV: ``bag,cluster``, and ``key instance`` where the method has one (its place, from 0). The
object that ``--json`` prints::

    {"schema": 1, "command": "cluster", "seed": int, "data": DATA,
     "model": {"name": str, "parameters": {...}, "scaled": bool, "imputed": bool},
     "clusters": [{"cluster": value, "bags": int}],
     "accuracy": with clusters and classes matched, "nmi": float; or null without known labels,
     "bags": [{"bag": str, "cluster": value, "key": place or null}],
     "certificate": as for ``fit``, "output": path or null}
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bagwise.cli._certificates import certificate_json, certificate_text
from bagwise.cli._data import DataRequest, LoadedData, load_data
from bagwise.cli._files import CLUSTERS, check_target, csv_text, hand_over
from bagwise.cli._models import find_model, make_model, prepared, scaling_text
from bagwise.cli._output import CommandError, Output, bad_input, json_value
from bagwise.cli._words import count, parse_settings


def run_cluster(
    output: Output,
    request: DataRequest,
    model: str,
    target: Path | None,
    *,
    clusters: int | None = None,
    params: Sequence[str] | None = None,
    scale: bool = True,
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Cluster.

    Parameters
    ----------
    output : Output
        Where to write.
    request : DataRequest
        The bags.
    model : str
        Name of a clusterer.
    target : Path or None
        File for the CSV; None: print it.
    clusters : int or None
        Number of clusters, the parameter ``n_clusters``.
    params : sequence of str
        Settings ``key=value`` of the model.
    scale : bool
        Whether to scale the instances first.
    seed : int
        Seed of the model.
    overwrite : bool
        Whether a file that is not of this kind, or that is read, may be replaced.
    """
    if target is not None:
        check_target(target, CLUSTERS, inputs=request.paths(), overwrite=overwrite)
    given = parse_settings(params, "--param")
    if clusters is not None:
        if "n_clusters" in given:
            msg = "n_clusters is given by --param and by --clusters."
            raise CommandError(msg, code="usage", where="--clusters")
        given["n_clusters"] = clusters
    with output.busy("Loading"):
        cls = find_model(model, "clusterer")
        estimator = make_model(cls, given, seed, "--param")
    data = load_data(output, request)
    fitted = estimator
    if scale:
        output.note(scaling_text(data.bags))
    impute = request.missing == "impute"
    estimator = prepared(estimator, data.bags, scale=scale, impute=impute)
    with (
        bad_input(code="data", where=request.data),
        output.warnings(),
        output.busy(f"Fitting {cls.__name__}"),
    ):
        found = estimator.fit_predict(data.bags)
        keys = _keys(estimator, fitted, data)
    result = getattr(fitted, "result_", None)
    accuracy, nmi = _agreement(data, found)
    if result is not None:
        output.note(f"Certificate: {certificate_text(result)}")
    sizes = cluster_sizes(found)
    output.note(f"Clusters: {sizes_text(sizes)}")
    if accuracy is not None:
        output.note(f"Against the labels: accuracy {accuracy:.1%}, NMI {nmi:.3f}")
    rows = [
        (name, cluster, *([] if keys is None else [keys[i]]))
        for i, (name, cluster) in enumerate(zip(data.bag_names, found.tolist(), strict=True))
    ]
    head = ["bag", "cluster", *([] if keys is None else ["key instance"])]
    text = csv_text(head, rows)
    hand_over(
        output,
        target,
        text,
        {
            "command": "cluster",
            "seed": seed,
            "data": data.as_json(),
            "model": {
                "name": cls.__name__,
                "parameters": json_value(given),
                "scaled": scale,
                "imputed": impute,
            },
            "clusters": sizes,
            "accuracy": accuracy,
            "nmi": nmi,
            "bags": [
                {"bag": row[0], "cluster": row[1], "key": None if keys is None else keys[i]}
                for i, row in enumerate(rows)
            ],
            "certificate": certificate_json(result),
        },
    )


def _keys(estimator: Any, last: Any, data: LoadedData) -> list[int] | None:
    """Return the place of the key instance of each bag, or None if the method has none."""
    if not hasattr(last, "key_instances"):
        return None
    bags = data.bags if estimator is last else estimator[:-1].transform(data.bags)
    places: list[int] = last.key_instances(bags).tolist()
    return [data.place(bag, place) for bag, place in enumerate(places)]


def _agreement(data: LoadedData, found: Any) -> tuple[float | None, float | None]:
    from bagwise.metrics import clustering_accuracy, normalized_mutual_information

    y = data.y
    if y is None or y.ndim != 1:
        return None, None
    return clustering_accuracy(y, found), normalized_mutual_information(y, found)


def cluster_sizes(found: Any) -> list[dict[str, Any]]:
    """Return the clusters that hold bags, and how many each."""
    import numpy as np

    values, counts = np.unique(found, return_counts=True)
    return [
        {"cluster": value, "bags": number}
        for value, number in zip(values.tolist(), counts.tolist(), strict=True)
    ]


def sizes_text(sizes: Sequence[dict[str, Any]]) -> str:
    """Return `cluster_sizes` as text."""
    return ", ".join(f"{size['cluster']} ({count(size['bags'], 'bag')})" for size in sizes)
