"""What the page says of the bags: its first sentence, tiles, controls, charts and comparison."""

from collections.abc import Sequence
from html import escape

import numpy as np

from bagwise.inspection import _svg
from bagwise.inspection._assess import MethodCard, wilson_interval
from bagwise.inspection._tables import method_table, percent
from bagwise.inspection._verdicts import Verdicts

_UNSURE = ("unsure", "Unsure", "the tenth of the bags closest to the threshold")
_NEAR = ("unsure", "closeness to the threshold")
_IN_ORDER = ("name", "order of the data")
_BY_SCORE = ("score", "score, highest first")
_BOX = "Each box is a bag with its instances."
#: Most labels with a button of their own, and most that the first sentence counts.
_MAX_BUTTONS, _MAX_COUNTED = 10, 6


def judged_sections(
    card: MethodCard, cards: Sequence[MethodCard], verdicts: Verdicts, task: str, bags_name: str
) -> dict[str, str]:
    """Return the parts of a page on bags that are labelled right or wrong.

    Parameters
    ----------
    card : MethodCard
        The method shown.
    cards : sequence of MethodCard
        All methods to compare.
    verdicts : Verdicts
        What the method says.
    task, bags_name : str
        See `report`.
    """
    _, baseline = verdicts.majority
    return {
        "lead": _judged_lead(card, verdicts, task, bags_name),
        "tiles": _judged_tiles(card, verdicts),
        "about": f"{_BOX} Only the label of the whole bag was given; the scores of the instances "
        "are what the method made of it.",
        "filters": _filters(
            [("all", "All", ""), ("right", "Right", ""), ("wrong", "Wrong", ""), _UNSURE]
        ),
        "orders": _orders(
            [
                ("best", "margin, best first"),
                ("worst", "margin, worst first"),
                _NEAR,
                _BY_SCORE,
                _IN_ORDER,
            ]
        ),
        "span": "from the worst margin to the best",
        "charts_title": "Scores and margins",
        "charts": _judged_charts(verdicts),
        "methods": (
            "<section aria-labelledby='methods-title'>\n<h2 id='methods-title'>All methods</h2>\n"
            f"<p>On the same {card.n_bags} bags. The bar shows the accuracy{_bar_rule(cards)}; "
            "the thin mark is the baseline. <em>Key instance found</em>: "
            f"{_found_rule(verdicts)}</p>\n{method_table(cards, card.name, baseline)}\n</section>"
        ),
    }


def open_sections(
    name: str, verdicts: Verdicts, found: tuple[int, int] | None, task: str, bags_name: str
) -> dict[str, str]:
    """Return the parts of a page on bags without labels, or with lists of them.

    Parameters
    ----------
    name : str
        The method shown.
    verdicts : Verdicts
        What the method says.
    found : tuple of int or None
        In how many bags a true key instance is found, and how many hold one.
    task, bags_name : str
        See `report`.
    """
    labels = enumerate(verdicts.label_names)
    given = [(f"label-{i}", f"“{label}”", "") for i, label in labels if verdicts.counts[i]]
    buttons = given if len(given) <= _MAX_BUTTONS else []
    surest = [("best", "distance from the threshold")] if verdicts.is_binary else []
    by_score = _BY_SCORE if verdicts.is_binary or verdicts.has_lists else ("score", "lead")
    return {
        "lead": _open_lead(name, verdicts, found, task, bags_name),
        "tiles": _open_tiles(verdicts, found),
        "about": f"{_BOX} The method learned from labels of whole bags only; the scores of the "
        "instances are what it made of them.",
        "filters": _filters([("all", "All", ""), *buttons, _UNSURE]),
        "orders": _orders([*surest, by_score, _NEAR, _IN_ORDER]),
        "span": "from the lowest score to the highest",
        "charts_title": "Scores",
        "charts": _open_charts(verdicts),
        "methods": "",
    }


def legend(verdicts: Verdicts, *, has_truth: bool) -> str:
    """Return what the marks on instances mean."""
    if verdicts.instance_scores is None:
        return ""
    first, last = ("low", "high")
    if verdicts.is_binary:
        first, last = (escape(name) for name in verdicts.label_names)
    decides, scored = "it decides", "instance score"
    if verdicts.has_lists:
        decides = "it decides on the label with the highest score"
        scored = "instance score for that label"
    steps = "".join(f"<i class='s{'n' if s < 0 else 'p'}{abs(s)}'></i>" for s in range(-4, 5))
    truth = "<span><i class='swatch truth'></i> true key instance</span>" if has_truth else ""
    return (
        f"<p class='legend'><span><i class='swatch key'></i> key instance: {decides}</span>"
        f"{truth}<span>{scored}: {first} <span class='ramp'>{steps}</span> {last}</span></p>"
    )


# ------------------------------------------------------------------------------- first sentence


def _judged_lead(card: MethodCard, verdicts: Verdicts, task: str, bags_name: str) -> str:
    label, share = verdicts.majority
    interval = "" if card.interval is None else f" ({_interval_text(card.interval)})"
    text = (
        f"{_learned(card.name, task)} the right label to <strong>"
        f"{percent(card.accuracy)} of {card.n_bags:,} {escape(bags_name)}</strong>{interval}; "
        "always answering "
        f"“{escape(label)}” would give {percent(share)}."
    )
    text += _seen_sentence(card.n_seen, card.n_bags)
    if 0 < card.n_seen < card.n_bags:
        n_right, n_new = card.n_right - card.n_right_seen, card.n_bags - card.n_seen
        text += (
            f" Of the {n_new:,} others it labels {percent(n_right / n_new)} right "
            f"({_interval_text(wilson_interval(n_right, n_new))})."
        )
    if card.n_found is not None and card.n_key_bags:
        text += _found_sentence(card.n_found, card.n_key_bags)
    return text


def _bar_rule(cards: Sequence[MethodCard]) -> str:
    """Say what is drawn around an accuracy: nothing on bags that a method learned from."""
    drawn = [card.interval is not None for card in cards]
    if not any(drawn):
        return ""
    return " with its 95 % interval" + ("" if all(drawn) else ", on bags that are new to a method")


def _interval_text(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"95\u202f% interval {100 * low:.1f} to {percent(high)}"


def _seen_sentence(n_seen: int, n_bags: int) -> str:
    if not n_seen:
        return ""
    which = "These are the bags" if n_seen == n_bags else f"{n_seen:,} of these are bags"
    return f" <strong>{which} it learned from</strong>: expect less on others."


def _open_lead(
    name: str, verdicts: Verdicts, found: tuple[int, int] | None, task: str, bags_name: str
) -> str:
    counts = verdicts.counts
    order = [i for i in (-counts).argsort(kind="stable").tolist() if counts[i]]
    told = [
        f"“{escape(verdicts.label_names[i])}” to <strong>{counts[i]:,}</strong>"
        for i in order[:_MAX_COUNTED]
    ]
    n_bags = len(verdicts.predicted)
    if verdicts.has_lists:
        n_bare = int((verdicts.predicted.sum(axis=1) == 0).sum())
        told += [f"no label to <strong>{n_bare:,}</strong>"] if n_bare else []
    last = f" and {told[-1]}" if len(told) > 1 else told[-1]
    n_more = len(order) - _MAX_COUNTED
    more = f" ({n_more:,} other labels are given as well)" if n_more > 0 else ""
    text = (
        f"{_learned(name, task)} {', '.join(told[:-1])}{last} of {n_bags:,} "
        f"{escape(bags_name)}{more}."
    )
    if verdicts.truth is None:
        text += " The true labels are not known, so nothing is said on how often that is right."
    elif verdicts.average_precision is not None:
        text += (
            f" Its average precision is <strong>{percent(verdicts.average_precision)}</strong>; "
            "100\u202f% means that in every bag all true labels score above all others."
        )
        text += _seen_sentence(verdicts.n_seen, n_bags)
    if found is not None and found[1]:
        text += _found_sentence(*found)
    return text


def _learned(name: str, task: str) -> str:
    learned = f"learned to {escape(task)}. It gives" if task else "gives"
    return f"<strong>{escape(name)}</strong> {learned}"


def _found_sentence(n_found: int, n_key_bags: int) -> str:
    return (
        f" In <strong>{n_found:,} of the {n_key_bags:,}</strong> bags that hold a "
        "true key instance, it finds one."
    )


# ---------------------------------------------------------------------------------------- tiles


def _judged_tiles(card: MethodCard, verdicts: Verdicts) -> str:
    label, share = verdicts.majority
    note = card.interval_text if card.interval is None else _interval_text(card.interval)
    tiles = [
        ("accuracy", percent(card.accuracy), note),
        ("baseline", percent(share), f"always “{escape(label)}”"),
    ]
    if card.n_found is not None and card.n_key_bags:
        tiles.append(_found_tile(card.n_found, card.n_key_bags))
    margins = verdicts.margins
    tiles.append(
        ("mean margin", f"{margins.mean():.3g}", f"standard deviation {margins.std():.3g}")
    )
    return _tiles(tiles)


def _open_tiles(verdicts: Verdicts, found: tuple[int, int] | None) -> str:
    known = "true labels not known" if verdicts.truth is None else "true labels known"
    tiles = [("bags", f"{len(verdicts.predicted):,}", known)]
    if verdicts.average_precision is not None:
        value = percent(verdicts.average_precision)
        tiles.append(("average precision", value, "of the ranking of labels"))
    if verdicts.has_lists:
        known = f"of {len(verdicts.label_names):,}"
        if verdicts.truth is not None:
            known = f"true ones: {verdicts.truth.sum(axis=1).mean():.2f}"
        given = verdicts.predicted.sum(axis=1).mean()
        tiles.append(("labels given to a bag", f"{given:.2f}", known))
    else:
        label, share = verdicts.majority
        tiles.append(("most frequent label", percent(share), f"“{escape(label)}”"))
    if found is not None and found[1]:
        tiles.append(_found_tile(*found))
    measure = "mean lead over the next label"
    if verdicts.has_lists:
        measure = "mean highest score"
    elif verdicts.is_binary:
        measure = "mean distance from the threshold"
    margins = verdicts.margins
    tiles.append((measure, f"{margins.mean():.3g}", f"standard deviation {margins.std():.3g}"))
    return _tiles(tiles)


def _found_tile(n_found: int, n_key_bags: int) -> tuple[str, str, str]:
    note = f"{n_found} of {n_key_bags} bags that hold one"
    return "key instance found", percent(n_found / n_key_bags), note


def _tiles(tiles: Sequence[tuple[str, str, str]]) -> str:
    return "".join(
        f"<div class='tile'><dt>{name}</dt><dd><b>{value}</b><span>{note}</span></dd></div>"
        for name, value, note in tiles
    )


# ------------------------------------------------------------------------------------- controls


def _filters(buttons: Sequence[tuple[str, str, str]]) -> str:
    return "\n".join(
        f'<button type="button" data-show="{key}" aria-pressed="{str(key == "all").lower()}"'
        + (f' title="{title}"' if title else "")
        + f">{escape(text)}</button>"
        for key, text, title in buttons
    )


def _orders(options: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f'<option value="{key}">{text}</option>' for key, text in options)


# --------------------------------------------------------------------------------------- charts


def _judged_charts(verdicts: Verdicts) -> str:
    figures = []
    if verdicts.is_binary:
        figures.append(
            (
                "Scores",
                _svg.score_histogram(
                    verdicts.scores, np.asarray(verdicts.truth) == 1, verdicts.label_names
                ),
                _binary_caption(verdicts),
            )
        )
    figures.append(
        (
            "Margins",
            _svg.margin_histogram(verdicts.margins),
            "The margin is the score counted towards the true label: below 0 the label is wrong.",
        )
    )
    return _figures(figures)


def _open_charts(verdicts: Verdicts) -> str:
    title, axis = "Lead of each bag's label", "lead of the bag's label"
    caption = "How far the label given is ahead of the next one. Choose a bar to see its bags."
    if verdicts.has_lists:
        title, axis = "Highest score of each bag", "highest score of the bag"
        caption = "Bags right of the threshold get a label or more. Choose a bar to see its bags."
    elif verdicts.is_binary:
        title, axis = "Score of each bag", "score of the bag"
        caption = _binary_caption(verdicts)
    return _figures([(title, _svg.plain_histogram(verdicts.scores, axis), caption)])


def _binary_caption(verdicts: Verdicts) -> str:
    text = (
        "Bags right of the threshold are labelled "
        f"“{escape(verdicts.label_names[1])}”. Choose a bar to see its bags."
    )
    if verdicts.positive is not None:
        text += f" The positive class is “{escape(verdicts.label_names[verdicts.positive])}”."
    return text


def _figures(figures: Sequence[tuple[str, str, str]]) -> str:
    return "".join(
        f"<figure><h3>{name}</h3>{chart}<figcaption>{caption}</figcaption></figure>"
        for name, chart, caption in figures
    )


def _found_rule(verdicts: Verdicts) -> str:
    which = "decides for the label that the method gave"
    if verdicts.is_binary:
        name = escape(verdicts.label_names[1 if verdicts.positive is None else verdicts.positive])
        which = f"scores highest for “{name}”, whatever label the bag got,"
    return (
        f"among the bags that hold a true key instance, how often the instance that {which} is one."
    )
