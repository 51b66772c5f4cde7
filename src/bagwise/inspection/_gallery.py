"""The bags that the page shows, as the JSON object that its script reads."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from bagwise._arrays import Booleans, Floats, Integers
from bagwise.bags import Bags
from bagwise.inspection._contents import Contents, Render, render_contents
from bagwise.inspection._svg import score_bins
from bagwise.inspection._verdicts import Verdicts

#: Most instances of one bag on the page.
MAX_INSTANCES = 40


@dataclass(frozen=True)
class Gallery:
    """Bags ready for the page.

    Parameters
    ----------
    n_shown : int
        Number of bags.
    json : str
        What the script needs to know, safe inside a ``script`` element.
    contents : Contents
        What stands for the instances.
    """

    n_shown: int
    json: str
    contents: Contents


def make_gallery(
    bags: Bags,
    verdicts: Verdicts,
    is_key: Booleans | None,
    render: Render | None,
    n_shown: int,
    numbers: Integers | None = None,
) -> Gallery:
    """Choose bags evenly from the worst margin to the best, and describe them.

    By their scores if they are neither right nor wrong.

    Parameters
    ----------
    bags : Bags
        All bags.
    verdicts : Verdicts
        What was said of them.
    is_key : ndarray of bool or None
        Which instances are true key instances.
    render : callable or None
        See `render_contents`.
    n_shown : int
        How many bags to show, at most.
    numbers : ndarray of int or None
        Number of each instance in its bag; None: they are counted from 0.
    """
    n_shown = min(n_shown, len(bags))
    ranked = np.argsort(verdicts.margins if verdicts.is_judged else verdicts.scores, kind="stable")
    places = np.linspace(0, len(bags) - 1, n_shown).round().astype(np.int64)
    chosen = np.sort(ranked[places])
    inside = [_choose_instances(bags, verdicts, int(bag)) for bag in chosen]
    rows = np.concatenate(
        [bags.offsets[bag] + places for bag, places in zip(chosen, inside, strict=True)]
    )
    contents = render_contents(bags, rows, render)
    bins, unsure = score_bins(verdicts.scores), verdicts.unsure
    described = {
        "labels": verdicts.label_names,
        "binary": verdicts.is_binary,
        "judged": verdicts.is_judged,
        "bags": [
            _describe_bag(bags, verdicts, int(bag), places, numbers)
            | {"bin": int(bins[bag]), "unsure": int(unsure[bag])}
            for bag, places in zip(chosen, inside, strict=True)
        ],
        "instances": _describe_instances(bags, verdicts, is_key, rows),
        "content": _describe_contents(contents),
    }
    return Gallery(n_shown, script_json(described), contents)


def _describe_contents(contents: Contents) -> dict[str, Any]:
    if contents.sprite is None:
        return {"kind": contents.kind, "items": contents.items}
    width, height = contents.sprite.page_size
    return {
        "kind": contents.kind,
        "columns": contents.sprite.columns,
        "width": width,
        "height": height,
        "ink": contents.sprite.is_ink,
    }


def script_json(value: Any) -> str:
    """Return JSON that cannot end the ``script`` element around it, whatever the strings hold."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace").decode("utf-8")


def _choose_instances(bags: Bags, verdicts: Verdicts, bag: int) -> Integers:
    """Return the places of all instances, or of the key and the strongest ones of a large bag."""
    start, stop = bags.offsets[bag : bag + 2]
    size = int(stop - start)
    if size <= MAX_INSTANCES:
        return np.arange(size)
    if verdicts.instance_scores is None or verdicts.keys is None:
        return np.arange(MAX_INSTANCES)
    strength = np.abs(verdicts.instance_scores[start:stop])
    strength[verdicts.keys[bag]] = np.inf
    return np.sort(np.argsort(-strength, kind="stable")[:MAX_INSTANCES])


def _describe_bag(
    bags: Bags, verdicts: Verdicts, bag: int, places: Integers, numbers: Integers | None
) -> dict[str, Any]:
    key = -1
    if verdicts.keys is not None:
        key = int(np.searchsorted(places, verdicts.keys[bag]))
    told = places if numbers is None else numbers[bags.offsets[bag] + places]
    is_counted = len(places) == bags.sizes[bag] and (told == places).all()
    some = {} if is_counted else {"places": told.tolist()}
    return {
        "name": f"bag {bag}" if bags.bag_names is None else str(bags.bag_names[bag]),
        "truth": None if verdicts.truth is None else _describe_labels(verdicts.truth[bag]),
        "predicted": _describe_labels(verdicts.predicted[bag]),
        "score": rounded(verdicts.scores[bag]),
        "margin": rounded(verdicts.margins[bag]),
        "key": key,
        "size": int(bags.sizes[bag]),
        "shown": len(places),
        **({} if verdicts.top is None else {"top": int(verdicts.top[bag])}),
        **some,
    }


def _describe_labels(labels: Any) -> int | list[int]:
    """Return the code of a label, or the codes of a list of them."""
    return np.flatnonzero(labels).tolist() if np.ndim(labels) else int(labels)


def _describe_instances(
    bags: Bags, verdicts: Verdicts, is_key: Booleans | None, rows: Integers
) -> dict[str, Any]:
    """Return columns, one value for each instance shown; null for what is not known."""
    names, labels, scores = bags.instance_names, bags.instance_labels, verdicts.instance_scores
    return {
        "names": None if names is None else [str(name) for name in names[rows]],
        "labels": None if labels is None else [str(label) for label in labels[rows]],
        "scores": None if scores is None else [rounded(score) for score in scores[rows]],
        "scale": None if scores is None else _colour_scale(scores),
        "isKey": None if is_key is None else "".join("01"[int(value)] for value in is_key[rows]),
    }


def _colour_scale(scores: Floats) -> float:
    """Return the score of the strongest colour: one that a few in a hundred exceed."""
    return rounded(float(np.quantile(np.abs(scores), 0.97))) or 1.0


def rounded(value: Any) -> float:
    """Return the number with four significant digits, to save room."""
    return float(f"{float(value):.4g}")
