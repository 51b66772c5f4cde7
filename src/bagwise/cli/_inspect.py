"""``bagwise inspect``: what is inside a file, a folder or a data set.

The object that ``--json`` prints::

    {"schema": 1, "command": "inspect", "path": str, "format": str, "compression": or null,
     "bytes": on the disk, or null, "guessed": {...},
     "bags": int, "instances": int, "features": int, "dtype": str, "sparse": bool,
     "bag_sizes": {"smallest": int, "median": float, "largest": int,
                   "histogram": [{"from": int, "to": int, "bags": int}] or null},
     "labels": [{"label": value, "name": or null, "bags": int}] or null, "label_lists": bool,
     "feature_names": [str] or null, "bag_names": bool, "instance_names": bool,
     "instance_labels": bool,
     "constant_features": [name or number, ...] or null,
     "duplicate_instances": number of instances equal to an earlier one, or null,
     "missing_values": int or null}

The histogram, constant features, duplicates and missing values are null where the file is too
large to be read into memory for them.
"""

from typing import TYPE_CHECKING, Any

from bagwise.cli._data import (
    DataRequest,
    LoadedData,
    count_missing,
    load_data,
    opened_file,
)
from bagwise.cli._output import Output
from bagwise.cli._words import count, printable

if TYPE_CHECKING:
    from bagwise.bags import Bags
    from bagwise.io import Description

#: Files up to this size are read as a whole; larger ones pass by.
_WHOLE_BYTES = 500 * 10**6
_DUPLICATE_CELLS = 5 * 10**7
_BAR = 40
_LISTED = 12


def run_inspect(output: Output, request: DataRequest) -> None:
    """Inspect.

    Parameters
    ----------
    output : Output
        Where to write.
    request : DataRequest
        What to look at.
    """
    found = _of_set(output, request) if request.is_name else _of_file(output, request)
    output.result(_as_text(found), {"command": "inspect", **found})


def _of_set(output: Output, request: DataRequest) -> dict[str, Any]:
    data = load_data(output, request)
    return {
        "path": request.data,
        "format": "data set",
        "compression": None,
        "bytes": None,
        "guessed": {},
        **_of_bags(data),
    }


def _of_file(output: Output, request: DataRequest) -> dict[str, Any]:
    with output.busy(f"Reading {request.data}"), opened_file(request) as file:
        n_bytes = file.n_bytes
        found: dict[str, Any] = {
            "path": request.data,
            "format": file.format,
            "compression": file.compression,
            "bytes": n_bytes,
            "guessed": file.guessed,
        }
        if n_bytes > _WHOLE_BYTES:
            return {**found, **_of_description(file.describe())}
        bags = file.read()
        return {**found, **_of_bags(LoadedData(request.data, bags, bags.labels))}


def _of_description(seen: "Description") -> dict[str, Any]:
    """Return what is known of a file that is too large to be kept."""
    labels = seen.label_counts
    return {
        "bags": seen.n_bags,
        "instances": seen.n_instances,
        "features": seen.n_features,
        "dtype": seen.dtype,
        "sparse": seen.is_sparse,
        "bag_sizes": {
            "smallest": seen.smallest_bag,
            "median": seen.median_bag,
            "largest": seen.largest_bag,
            "histogram": None,
        },
        "labels": None
        if labels is None
        else [{"label": label, "name": None, "bags": n} for label, n in labels.items()],
        "label_lists": seen.is_multilabel,
        "feature_names": seen.feature_names,
        "bag_names": seen.has_bag_names,
        "instance_names": seen.has_instance_names,
        "instance_labels": seen.has_instance_labels,
        "constant_features": None,
        "duplicate_instances": None,
        "missing_values": None,
    }


def _of_bags(data: LoadedData) -> dict[str, Any]:
    import numpy as np

    bags = data.bags
    names = bags.feature_names
    return {
        "bags": len(bags),
        "instances": bags.n_instances,
        "features": bags.n_features,
        "dtype": str(bags.dtype),
        "sparse": bags.is_sparse,
        "bag_sizes": {
            "smallest": int(bags.sizes.min()),
            "median": float(np.median(bags.sizes)),
            "largest": int(bags.sizes.max()),
            "histogram": _histogram(bags),
        },
        "labels": data.label_counts(),
        "label_lists": data.y is not None and data.y.ndim == 2,
        "feature_names": None if names is None else names.tolist(),
        "bag_names": bags.bag_names is not None,
        "instance_names": bags.instance_names is not None,
        "instance_labels": bags.instance_labels is not None,
        "constant_features": _constant_features(bags),
        "duplicate_instances": _duplicates(bags),
        "missing_values": count_missing(bags),
    }


def _histogram(bags: "Bags") -> list[dict[str, int]]:
    """Count bags by size, in at most ten ranges of whole numbers."""
    import numpy as np

    sizes = bags.sizes
    low, high = int(sizes.min()), int(sizes.max())
    step = max(1, -(-(high - low + 1) // 10))
    starts = range(low, high + 1, step)
    counts = np.bincount((sizes - low) // step, minlength=len(starts))
    return [
        {"from": start, "to": min(start + step - 1, high), "bags": int(number)}
        for start, number in zip(starts, counts.tolist(), strict=True)
    ]


def _constant_features(bags: "Bags") -> list[Any]:
    import numpy as np

    instances = bags.instances
    low, high = instances.min(axis=0), instances.max(axis=0)
    if bags.is_sparse:
        low, high = low.toarray().ravel(), high.toarray().ravel()
    names = bags.feature_names
    constant = np.flatnonzero(low == high).tolist()
    return constant if names is None else [str(names[j]) for j in constant]


def _duplicates(bags: "Bags") -> int | None:
    import numpy as np

    if bags.is_sparse or bags.n_instances * bags.n_features > _DUPLICATE_CELLS:
        return None
    rows = np.ascontiguousarray(bags.instances) + 0.0  # -0.0 is the same number, in other bytes
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return len(whole) - len(np.unique(whole))


# ------------------------------------------------------------------------------------------- text


def _as_text(found: dict[str, Any]) -> str:
    sizes = found["bag_sizes"]
    parts = [found["format"]]
    if found["compression"]:
        parts.append(found["compression"])
    if found["bytes"] is not None:
        parts.append(_bytes_text(found["bytes"]))
    lines = [
        ("data", found["path"]),
        ("format", ", ".join(parts)),
        ("guessed", "; ".join(f"{role}: {what}" for role, what in found["guessed"].items())),
        (
            "size",
            f"{count(found['bags'], 'bag')}, {count(found['instances'], 'instance')}, "
            f"{count(found['features'], 'feature')} ({found['dtype']}"
            f"{', sparse' if found['sparse'] else ''})",
        ),
        ("labels", _labels_text(found)),
        ("known", _known_text(found)),
        ("features", _listed(found["feature_names"] or [], 6)),
        ("constant", _constant_text(found["constant_features"])),
        ("duplicates", _duplicates_text(found)),
        ("missing", count(found["missing_values"], "value") if found["missing_values"] else ""),
        (
            "bag sizes",
            f"{sizes['smallest']:,} to {sizes['largest']:,} instances, median {sizes['median']:g}",
        ),
    ]
    text = "\n".join(f"{name:<12}{printable(value)}" for name, value in lines if value)
    return text + _histogram_text(sizes["histogram"] or [])


def _bytes_text(n_bytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return count(n_bytes, "byte")


def _labels_text(found: dict[str, Any]) -> str:
    labels = found["labels"]
    if labels is None:
        return "none"
    shown = [
        f"{part['label']}" + (f" ({part['name']})" if part["name"] else "") + f": {part['bags']:,}"
        for part in labels
    ]
    kind = "lists; bags with each: " if found["label_lists"] else ""
    return kind + _listed(shown)


def _known_text(found: dict[str, Any]) -> str:
    words = ("bag_names", "instance_names", "instance_labels")
    return ", ".join(word.replace("_", " ") for word in words if found[word])


def _constant_text(constant: list[Any] | None) -> str:
    if not constant:
        return ""
    return f"{count(len(constant), 'feature')}: {_listed([str(name) for name in constant])}"


def _duplicates_text(found: dict[str, Any]) -> str:
    if not found["duplicate_instances"]:
        return ""
    return f"{count(found['duplicate_instances'], 'instance')} equal to an earlier one"


def _listed(words: list[str], most: int = _LISTED) -> str:
    rest = f", ... ({len(words):,} in all)" if len(words) > most else ""
    return ", ".join(words[:most]) + rest


def _histogram_text(histogram: list[dict[str, int]]) -> str:
    if len(histogram) < 2:
        return ""
    most = max(part["bags"] for part in histogram)
    ranges = [
        f"{p['from']:,}" if p["from"] == p["to"] else f"{p['from']:,}-{p['to']:,}"
        for p in histogram
    ]
    width = max(map(len, ranges))
    digits = len(f"{most:,}")
    lines = [
        f"{'':<12}{text:>{width}}  {part['bags']:>{digits},}  "
        + "#" * -(-_BAR * part["bags"] // most)
        for text, part in zip(ranges, histogram, strict=True)
    ]
    return "\n" + "\n".join(line.rstrip() for line in lines)
