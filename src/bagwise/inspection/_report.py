"""The HTML report: one file that needs nothing else."""

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from bagwise._files import write_file
from bagwise._version import __version__
from bagwise.bags import Bags
from bagwise.base import last_step
from bagwise.inspection._answers import unwrapped
from bagwise.inspection._assess import MethodCard, assess, check_is_key, count_found
from bagwise.inspection._contents import Contents, Render
from bagwise.inspection._gallery import Gallery, make_gallery
from bagwise.inspection._provenance import data_digest, package_versions
from bagwise.inspection._sections import judged_sections, legend, open_sections
from bagwise.inspection._tables import certificate_table, fact_list
from bagwise.inspection._verdicts import judge

#: No report is larger, in bytes: pages beyond that open slowly or not at all.
MAX_BYTES = 2_000_000


def report(
    estimator: Any,
    bags: Bags,
    y: Any = None,
    *,
    cards: Sequence[MethodCard] = (),
    is_key: Any = None,
    name: str | None = None,
    render: Render | None = None,
    title: str = "What was learned",
    task: str = "",
    bags_name: str = "bags",
    label_names: Sequence[str] | None = None,
    description: str = "",
    facts: Mapping[str, str] | None = None,
    max_bags: int = 400,
    max_bytes: int = MAX_BYTES,
    pos_label: Any = None,
    places: Any = None,
) -> str:
    """Return a self-contained HTML page on what a fitted classifier does with bags.

    The page says how often the classifier is right, with an interval (unless these are the bags
    that it learned from, which it says then) and the baseline; shows the
    bags, what stands for their instances, the score of each and the key instance; the
    distributions of scores and margins; how the fits ended; and how to get the same again. It has
    no external address, works offline, in light and dark, and on paper. All names are escaped.

    Without labels the page says what is predicted, and nothing on what is right. With label lists
    it shows for each bag the labels predicted, the scores for the highest one, and the average
    precision if the true lists are known.

    Parameters
    ----------
    estimator : object
        A fitted bag classifier, a pipeline that ends in one, or a search over these.
    bags : Bags
        Bags, best ones that it has not seen.
    y : array-like of shape (n_bags,) or (n_bags, n_labels), optional
        Their labels, if known; for label lists an indicator matrix.
    cards : sequence of MethodCard
        Methods for the table of comparison, made by `assess`. The card with the name of
        ``estimator`` is taken for it; without one it is assessed here. Only the certificates
        are shown if the labels are not known or are lists.
    is_key : array-like of bool of shape (n_instances,), optional
        Which instances are true key instances.
    name : str, optional
        Name of the estimator. Default: the name of its class.
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
        Names of the classes or labels.
    description : str
        Where the data come from.
    facts : mapping of str to str, optional
        More lines for "Reproduce this", such as the command and the seed.
    max_bags : int
        Most bags to show; the numbers and distributions are always of all.
    max_bytes : int
        Largest page. Fewer bags are shown to keep it.
    pos_label : label, optional
        The positive one of two classes, to which the key instances belong. Default: that of the
        classifier, or the second class if it has none.
    places : array-like of int of shape (n_instances,), optional
        Number by which each instance is known in its bag, such as its row in a file from which
        some were left out. Default: they are counted from 0.

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
    if len(bags) == 0 or max_bags < 1:
        msg = f"A report needs bags to show. Got {len(bags)} bags and max_bags={max_bags}."
        raise ValueError(msg)
    name = type(last_step(estimator)[0]).__name__ if name is None else name
    estimator = unwrapped(estimator)
    verdicts = judge(estimator, bags, y, label_names, pos_label)
    truth = None if is_key is None else check_is_key(is_key, bags)
    numbers = None if places is None else np.asarray(places)
    if numbers is not None and numbers.shape != (bags.n_instances,):
        msg = (
            f"places must have one number for each of the {bags.n_instances} instances. "
            f"Got shape {numbers.shape}."
        )
        raise ValueError(msg)
    certificates = [(card.name, card.certificate) for card in cards]
    if verdicts.is_judged:
        own = next((card for card in cards if card.name == name), None)
        if own is None:
            own = assess(estimator, bags, y, is_key=truth, name=name, pos_label=pos_label)
            cards = [own, *cards]
        sections = judged_sections(own, cards, verdicts, task, bags_name)
    else:
        found = None
        if truth is not None and verdicts.keys is not None and not verdicts.has_lists:
            found = count_found(estimator, bags, truth, pos_label)
        sections = open_sections(name, verdicts, found, task, bags_name)
    if name not in dict(certificates):
        certificates.insert(0, (name, getattr(estimator, "result_", None)))
    if verdicts.positive is not None:
        facts = {**(facts or {}), "Positive class": verdicts.label_names[verdicts.positive]}
    known = {
        **(facts or {}),
        "Data (SHA-256)": data_digest(bags, y),
        "Versions": ", ".join(f"{part} {number}" for part, number in package_versions().items()),
    }
    parts = {
        "title": escape(title),
        "version": escape(__version__),
        "certificates": certificate_table(certificates, name),
        "facts": fact_list(known),
        "description": escape(description),
        "legend": legend(verdicts, has_truth=truth is not None),
        **sections,
    }
    n_shown = min(max_bags, len(bags))
    while True:
        gallery = make_gallery(bags, verdicts, truth, render, n_shown, numbers)
        page = _assemble(parts, gallery, len(bags))
        size = len(page.encode())
        if size <= max_bytes or n_shown == 1:
            return page
        n_shown = max(1, min(n_shown - 1, int(0.9 * n_shown * max_bytes / size)))


def write_report(
    path: str | os.PathLike[str], estimator: Any, bags: Bags, y: Any = None, **options: Any
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
    write_file(path, content)
    return len(content)


def _assemble(parts: Mapping[str, str], gallery: Gallery, n_bags: int) -> str:
    style = _resource("report.css") + _sprite_style(gallery.contents)
    script = _resource("report.js")
    fingerprint = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sampled = ""
    if gallery.n_shown < n_bags:
        sampled = (
            f"<p class='note'>This page shows {gallery.n_shown:,} of the {n_bags:,} bags, chosen "
            f"evenly {parts['span']}; the numbers and charts are of all bags.</p>"
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
