"""The HTML report: one file that needs nothing else."""

import base64
import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from bagwise._version import __version__
from bagwise.bags import Bags
from bagwise.inspection import _svg
from bagwise.inspection._assess import MethodCard, assess, check_is_key
from bagwise.inspection._contents import Contents, Render
from bagwise.inspection._gallery import Gallery, make_gallery
from bagwise.inspection._provenance import data_digest, package_versions
from bagwise.inspection._tables import certificate_table, fact_list, method_table, percent
from bagwise.inspection._verdicts import Verdicts, judge

#: No report is larger, in bytes: pages beyond that open slowly or not at all.
MAX_BYTES = 2_000_000


def report(
    estimator: Any,
    bags: Bags,
    y: Any,
    *,
    cards: Sequence[MethodCard] = (),
    is_key: Any = None,
    render: Render | None = None,
    title: str = "What was learned",
    task: str = "",
    bags_name: str = "bags",
    label_names: Sequence[str] | None = None,
    description: str = "",
    facts: Mapping[str, str] | None = None,
    max_bags: int = 400,
    max_bytes: int = MAX_BYTES,
) -> str:
    """Return a self-contained HTML page on what a fitted classifier does with bags.

    The page says how often the classifier is right, with an interval and the baseline; shows the
    bags, what stands for their instances, the score of each and the key instance; the
    distributions of scores and margins; how the fits ended; and how to get the same again. It has
    no external address, works offline, in light and dark, and on paper. All names are escaped.

    Parameters
    ----------
    estimator : object
        A fitted bag classifier. Label lists are not shown.
    bags : Bags
        Bags with known labels, best ones that it has not seen.
    y : array-like of shape (n_bags,)
        Their labels.
    cards : sequence of MethodCard
        Methods for the table of comparison, made by `assess`. The card named as the class of
        ``estimator`` is taken for it; without one it is assessed here.
    is_key : array-like of bool of shape (n_instances,), optional
        Which instances are true key instances.
    render : callable, optional
        ``render(features, row)`` returns what stands for an instance: an array (a picture, grey
        or in colours, uint8 or from 0 to 1), an SVG drawing as text, or another text. ``row`` is
        the place in ``bags.instances``, so that names can be looked up. Default: the features as
        bars.
    title : str
        Title of the page.
    task : str
        What was to be learned, as the end of "learned to ...".
    bags_name : str
        What the bags are called in the sentence on top, such as "test bags".
    label_names : sequence of str, optional
        Names of the classes.
    description : str
        Where the data come from.
    facts : mapping of str to str, optional
        More lines for "Reproduce this", such as the command and the seed.
    max_bags : int
        Most bags to show; the numbers and distributions are always of all.
    max_bytes : int
        Largest page. Fewer bags are shown to keep it.

    Examples
    --------
    >>> from bagwise.datasets import load_digit_bags
    >>> from bagwise.inspection import report
    >>> from bagwise.svm import SIL
    >>> data = load_digit_bags(40)
    >>> model = SIL().fit(data.bags, data.y)
    >>> page = report(model, data.bags, data.y, render=lambda x, row: 1 - x.reshape(8, 8) / 16)
    >>> page.splitlines()[0]
    '<!doctype html>'
    """
    if getattr(estimator, "multilabel_", False):
        msg = f"The report shows one label per bag; {type(estimator).__name__} has label lists."
        raise ValueError(msg)
    if len(bags) == 0 or max_bags < 1:
        msg = f"A report needs bags to show. Got {len(bags)} bags and max_bags={max_bags}."
        raise ValueError(msg)
    verdicts = judge(estimator, bags, y, label_names)
    truth = None if is_key is None else check_is_key(is_key, bags)
    own = next((card for card in cards if card.name == type(estimator).__name__), None)
    if own is None:
        own = assess(estimator, bags, y, is_key=truth)
        cards = [own, *cards]
    _, baseline = verdicts.majority
    known = {
        **(facts or {}),
        "Data (SHA-256)": data_digest(bags, y),
        "Versions": ", ".join(f"{name} {number}" for name, number in package_versions().items()),
    }
    parts = {
        "title": escape(title),
        "version": escape(__version__),
        "lead": _lead(own, verdicts, task, bags_name),
        "tiles": _tiles(own, verdicts),
        "charts": _charts(verdicts),
        "methods": method_table(cards, own.name, baseline),
        "certificates": certificate_table(cards, own.name),
        "facts": fact_list(known),
        "description": escape(description),
        "n_bags": str(own.n_bags),
        "found_rule": _found_rule(verdicts),
        "legend": _legend(verdicts, has_truth=truth is not None),
    }
    n_shown = min(max_bags, len(bags))
    while True:
        gallery = make_gallery(bags, verdicts, truth, render, n_shown)
        page = _assemble(parts, gallery, len(bags))
        size = len(page.encode())
        if size <= max_bytes or n_shown == 1:
            return page
        n_shown = max(1, min(n_shown - 1, int(0.9 * n_shown * max_bytes / size)))


def write_report(
    path: str | os.PathLike[str], estimator: Any, bags: Bags, y: Any, **options: Any
) -> int:
    """Write the page of `report` to a file, which appears under its name only when complete.

    Parameters
    ----------
    path : str or path-like
        The file; one that is there is replaced.
    estimator, bags, y, **options
        As for `report`.

    Returns
    -------
    size : int
        Number of bytes.
    """
    content = report(estimator, bags, y, **options).encode()
    target = Path(path)
    temporary = target.with_name(f".{target.name}-{secrets.token_hex(6)}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(target)
    except BaseException:  # Ctrl-C too must not leave the temporary file behind
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return len(content)


def _assemble(parts: Mapping[str, str], gallery: Gallery, n_bags: int) -> str:
    style = _resource("report.css") + _sprite_style(gallery.contents)
    script = _resource("report.js")
    fingerprint = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sampled = ""
    if gallery.n_shown < n_bags:
        sampled = (
            f"<p class='note'>This page shows {gallery.n_shown:,} of the {n_bags:,} bags, chosen "
            "evenly from the worst margin to the best; the numbers and charts are of all bags.</p>"
        )
    return Template(_resource("report.html")).substitute(
        parts,
        style=style,
        script=script,
        fingerprint=fingerprint,
        data=gallery.json,
        sampled=sampled,
    )


def _resource(name: str) -> str:
    return (files("bagwise.inspection") / name).read_text(encoding="utf-8")


def _sprite_style(contents: Contents) -> str:
    """Return the rule that puts all pictures on the page, once."""
    sprite = contents.sprite
    if sprite is None:
        return ""
    width, height = sprite.page_size
    png = base64.b64encode(sprite.png).decode()
    crisp = "image-rendering:pixelated;" if height >= 2 * sprite.height else ""
    return (
        f".picture{{display:block;width:{width}px;height:{height}px;{crisp}"
        f"background-size:{sprite.columns * width}px {sprite.rows * height}px;"
        f"background-image:url(data:image/png;base64,{png})}}\n"
    )


def _lead(card: MethodCard, verdicts: Verdicts, task: str, bags_name: str) -> str:
    low, high = card.interval
    label, share = verdicts.majority
    learned = f"learned to {escape(task)}. It gives" if task else "gives"
    text = (
        f"<strong>{escape(card.name)}</strong> {learned} the right label to <strong>"
        f"{percent(card.accuracy)} of {card.n_bags:,} {escape(bags_name)}</strong> "
        f"(95\u202f% interval {100 * low:.1f} to {percent(high)}); always answering "
        f"“{escape(label)}” would give {percent(share)}."
    )
    if card.key_success is not None:
        text += (
            f" In <strong>{card.n_found:,} of the {card.n_key_bags:,}</strong> bags that hold a "
            "true key instance, it finds one."
        )
    return text


def _tiles(card: MethodCard, verdicts: Verdicts) -> str:
    low, high = card.interval
    label, share = verdicts.majority
    tiles = [
        (
            "accuracy",
            percent(card.accuracy),
            f"95\u202f% interval {100 * low:.1f} to {percent(high)}",
        ),
        ("baseline", percent(share), f"always “{escape(label)}”"),
    ]
    if card.key_success is not None:
        tiles.append(
            (
                "key instance found",
                percent(card.key_success),
                f"{card.n_found} of {card.n_key_bags} bags that hold one",
            )
        )
    margins = verdicts.margins
    tiles.append(
        ("mean margin", f"{margins.mean():.3g}", f"standard deviation {margins.std():.3g}")
    )
    return "".join(
        f"<div class='tile'><dt>{name}</dt><dd><b>{value}</b><span>{note}</span></dd></div>"
        for name, value, note in tiles
    )


def _charts(verdicts: Verdicts) -> str:
    figures = []
    if verdicts.is_binary:
        figures.append(
            (
                "Scores",
                _svg.score_histogram(verdicts.scores, verdicts.truth == 1, verdicts.label_names),
                "Bags right of the threshold are labelled "
                f"“{escape(verdicts.label_names[1])}”. Choose a bar to see its bags.",
            )
        )
    figures.append(
        (
            "Margins",
            _svg.margin_histogram(verdicts.margins),
            "The margin is the score counted towards the true label: below 0 the label is wrong.",
        )
    )
    return "".join(
        f"<figure><h3>{name}</h3>{chart}<figcaption>{caption}</figcaption></figure>"
        for name, chart, caption in figures
    )


def _found_rule(verdicts: Verdicts) -> str:
    which = "decides for the label that the method gave"
    if verdicts.is_binary:
        name = escape(verdicts.label_names[1])
        which = f"scores highest for “{name}”, whatever label the bag got,"
    return (
        f"among the bags that hold a true key instance, how often the instance that {which} is one."
    )


def _legend(verdicts: Verdicts, *, has_truth: bool) -> str:
    if verdicts.instance_scores is None:
        return ""
    first, last = ("low", "high")
    if verdicts.is_binary:
        first, last = (escape(name) for name in verdicts.label_names)
    steps = "".join(f"<i class='s{'n' if s < 0 else 'p'}{abs(s)}'></i>" for s in range(-4, 5))
    truth = "<span><i class='swatch truth'></i> true key instance</span>" if has_truth else ""
    return (
        "<p class='legend'><span><i class='swatch key'></i> key instance: it decides</span>"
        f"{truth}<span>instance score: {first} <span class='ramp'>{steps}</span> {last}</span></p>"
    )
