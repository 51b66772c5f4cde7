"""``bagwise datasets``: the registry of real sets, and which of them are here.

The objects that ``--json`` prints::

    {"schema": 1, "command": "datasets list", "sets": [SET, ...]}
    {"schema": 1, "command": "datasets show", "set": SET and {"title": str, "citation": str,
        "licence": str, "note": str, "labels": [{"name": str, "bags": int}], "sha256": or null,
        "repository": or null, "commit": or null, "urls": [str], "made_of": [name, ...]}}
    {"schema": 1, "command": "datasets fetch", "set": SET, "seconds": float}

with SET ``{"name": str, "task": str, "bags": int, "instances": int, "features": int,
"classes": int, "found": "folder", "cache", "download" or "none", "path": str or null}``; "found"
says where `bagwise.datasets.fetch` would take it from.
"""

import logging
import os
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagwise.cli._output import CommandError, Output
from bagwise.cli._words import align, count, did_you_mean

if TYPE_CHECKING:
    from bagwise.datasets import DatasetInfo

_MEANING = {
    "folder": "in the folder of BAGWISE_DATA",
    "cache": "in the cache",
    "download": "not here; 'bagwise datasets fetch' downloads it",
    "none": "not here, and no address is known",
}


def run_list(output: Output, task: str | None) -> None:
    """Print the table of data sets."""
    with output.busy("Loading"):
        from bagwise.datasets import available, info
    known = {info(name).task for name in available()}
    if task is not None and task not in known:
        msg = f"there is no task {task!r}. {did_you_mean(task, sorted(known))}"
        raise CommandError(msg, code="usage", where="--task")
    sets = [_summary(info(name)) for name in available(task)]
    keys = ("name", "task", "bags", "instances", "features", "classes", "found")
    head = ("name", "task", "bags", "instances", "features", "classes", "where")
    rows = [[f"{s[key]:,}" if isinstance(s[key], int) else s[key] for key in keys] for s in sets]
    here = sum(s["found"] in ("folder", "cache") for s in sets)
    output.result(
        align([head, *rows], right=(2, 3, 4, 5)), {"command": "datasets list", "sets": sets}
    )
    output.note(f"{here} of {count(len(sets), 'set')} here. 'digits' needs no file.")


def run_show(output: Output, name: str) -> None:
    """Print what the registry says of a set."""
    entry = find_set(name)
    origin = entry.origin
    found: dict[str, Any] = {
        **_summary(entry),
        "title": entry.title,
        "citation": entry.citation,
        "licence": entry.licence,
        "note": entry.note,
        "labels": [
            {"name": label, "bags": number}
            for label, number in zip(entry.label_names, entry.label_counts, strict=True)
        ],
        "sha256": entry.sha256,
        "repository": None if origin is None else origin.repository,
        "commit": None if origin is None else origin.commit,
        "urls": [] if origin is None else [file.url for file in origin.files],
        "made_of": [] if entry.derived is None else list(entry.derived.sources),
    }
    output.result(_as_text(entry, found), {"command": "datasets show", "set": found})


def run_fetch(output: Output, name: str) -> None:
    """Get a set, verify it and say where it is."""
    entry = find_set(name)
    started = time.perf_counter()
    before, _ = locate(entry)
    doing = f"Downloading {name}" if before == "download" else f"Checking {name}"
    logging.getLogger("pooch").setLevel(logging.WARNING)  # it would talk into the progress
    with output.busy(doing):
        from bagwise.datasets import fetch

        fetch(name)
    seconds = time.perf_counter() - started
    summary = _summary(entry)
    verb = "downloaded" if before == "download" else "was here already"
    place = summary["path"] or "its sources"
    output.result(
        f"{name}: {_counts(entry)}. It {verb.replace('downloaded', 'was downloaded')} and is what "
        f"the registry says: {place}",
        {"command": "datasets fetch", "set": summary, "seconds": round(seconds, 3)},
    )


def find_set(name: str) -> "DatasetInfo":
    """Return what the registry says of a set, or say which name is closest."""
    from bagwise.datasets import available, info

    known = available()
    if name not in known:
        if name == "digits":
            msg = "'digits' is embedded and needs no file: give it as DATA to any command."
        else:
            msg = f"there is no data set {name!r}. {did_you_mean(name, known)}"
        raise CommandError(msg, code="data", where=name)
    return info(name)


def locate(entry: "DatasetInfo") -> tuple[str, str | None]:
    """Tell where `fetch` would take a set from, without reading it, and which file or folder."""
    from bagwise.datasets import cache_folder, info

    cache = cache_folder()
    folder = os.environ.get("BAGWISE_DATA")
    if entry.sha256 is not None:
        for word, place in (("folder", folder), ("cache", cache)):
            path = Path(place).expanduser() / f"{entry.name}.npz" if place else None
            if path is not None and path.is_file():
                return word, str(path)
    if entry.derived is not None:
        words = [locate(info(source))[0] for source in entry.derived.sources]
        return max(words, key=list(_MEANING).index), None
    if entry.origin is None or not entry.origin.files:
        return "none", None
    originals = cache / "originals" / entry.name
    if all((originals / file.name).is_file() for file in entry.origin.files):
        return "cache", str(originals)
    return "download", None


def _summary(entry: "DatasetInfo") -> dict[str, Any]:
    found, path = locate(entry)
    return {
        "name": entry.name,
        "task": entry.task,
        "bags": entry.n_bags,
        "instances": entry.n_instances,
        "features": entry.n_features,
        "classes": entry.n_classes,
        "found": found,
        "path": path,
    }


def _counts(entry: "DatasetInfo") -> str:
    return (
        f"{count(entry.n_bags, 'bag')}, {count(entry.n_instances, 'instance')}, "
        f"{count(entry.n_features, 'feature')}"
    )


def _as_text(entry: "DatasetInfo", found: dict[str, Any]) -> str:
    labels = ", ".join(f"{label['name']} ({label['bags']:,} bags)" for label in found["labels"])
    where = _MEANING[found["found"]] + (f": {found['path']}" if found["path"] else "")
    lines = [
        ("name", entry.name),
        ("title", entry.title),
        ("task", entry.task),
        ("size", _counts(entry)),
        ("labels", labels),
        ("note", entry.note),
        ("made of", ", ".join(found["made_of"])),
        ("cite", entry.citation),
        ("licence", entry.licence),
        ("where", where),
        ("from", _origin_text(entry)),
        *(("address", url) for url in found["urls"]),
    ]
    return "\n".join(_paragraph(name, text) for name, text in lines if text)


def _origin_text(entry: "DatasetInfo") -> str:
    origin = entry.origin
    if origin is None:
        return ""
    path = f", {origin.path}" if origin.path else ""
    place = f"github.com/{origin.repository} at commit {origin.commit[:12]}{path}"
    return f"{place}. {origin.note}" if origin.note else place


def _paragraph(name: str, text: str) -> str:
    if name == "address":  # not broken, so that it can be copied
        return f"{name:<10}{text}"
    return textwrap.fill(
        text,
        96,
        initial_indent=f"{name:<10}",
        subsequent_indent=" " * 10,
        break_long_words=False,
        break_on_hyphens=False,
    )
