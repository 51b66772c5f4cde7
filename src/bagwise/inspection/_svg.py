"""Charts as SVG text. Colours are classes of the page's style sheet, so they follow its theme."""

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10

import numpy as np

from bagwise._arrays import Booleans, Floats, Integers

_WIDTH, _HEIGHT = 560, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 14, 26, 40
_BINS = 24


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers inside a range: about ``count`` of them, in steps of 1, 2 or 5."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / count
    power = 10.0 ** floor(log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def score_histogram(scores: Floats, is_second: Booleans, label_names: Sequence[str]) -> str:
    """Draw the scores of two classes, one upwards, one downwards, and the threshold 0.

    Each bar is a button; the page's script shows the bags behind it.
    """
    edges, bins = _edges(scores), score_bins(scores)
    up, down = (
        np.bincount(bins[side], minlength=len(edges) - 1) for side in (is_second, ~is_second)
    )
    top = max(int(up.max()), int(down.max()), 1)
    x = _Scale(edges[0], edges[-1], _LEFT, _WIDTH - _RIGHT)
    y = _Scale(-top, top, _HEIGHT - _BOTTOM, _TOP)
    parts = [_y_grid(y, top, both_ways=True), _x_axis(x, "score of the bag")]
    for side, counts in ((1, up), (0, down)):
        for i, count in enumerate(counts.tolist()):
            if count:
                bar = _rect(x(edges[i]), x(edges[i + 1]), y(count if side else -count), y(0))
                text = f"{_bags(count)} of class “{label_names[side]}” with scores"
                parts.append(_button(bar, i, edges, text, side, of_class=True))
    parts.append(_line(x(edges[0]), x(edges[-1]), y(0), y(0), "axis"))
    parts.append(_threshold(x(0.0)))
    parts.append(_text(x(0.0), _TOP - 8, "threshold", "middle", "note"))
    parts.append(_text(_WIDTH - _RIGHT, _TOP + 4, f"↑ {label_names[1]}", "end", "key c1"))
    base = _HEIGHT - _BOTTOM - 6
    parts.append(_text(_WIDTH - _RIGHT, base, f"↓ {label_names[0]}", "end", "key c0"))
    summary = (
        f"Histogram of bag scores: {int(is_second.sum())} bags of class {label_names[1]} above, "
        f"{int((~is_second).sum())} of class {label_names[0]} below the axis."
    )
    return _svg(parts, summary)


def plain_histogram(scores: Floats, title: str) -> str:
    """Draw scores of bags whose classes are not known. Each bar is a button, as above."""
    edges, bins = _edges(scores), score_bins(scores)
    counts = np.bincount(bins, minlength=len(edges) - 1)
    top = int(counts.max())
    x = _Scale(edges[0], edges[-1], _LEFT, _WIDTH - _RIGHT)
    y = _Scale(0, top, _HEIGHT - _BOTTOM, _TOP)
    parts = [_y_grid(y, top), _x_axis(x, title)]
    for i, count in enumerate(counts.tolist()):
        if count:
            bar = _rect(x(edges[i]), x(edges[i + 1]), y(count), y(0))
            side = int(edges[i + 1] > 1e-12)
            parts.append(_button(bar, i, edges, f"{_bags(count)} with scores", side))
    parts.append(_line(x(edges[0]), x(edges[-1]), y(0), y(0), "axis"))
    parts.append(_threshold(x(0.0)))
    above = int((scores > 0).sum())
    return _svg(parts, f"Histogram of the {title}: {above} of {len(scores)} above 0.")


def score_bins(scores: Floats) -> Integers:
    """Return the bar of the histogram in which each score is counted."""
    edges = _edges(scores)
    return np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, len(edges) - 2)


def margin_histogram(margins: Floats) -> str:
    """Draw margins: below 0 the bag is labelled wrong. Mean and standard deviation are marked."""
    edges = _edges(margins)
    counts, _ = np.histogram(margins, edges)
    top = max(int(counts.max()), 1)
    x = _Scale(edges[0], edges[-1], _LEFT, _WIDTH - _RIGHT)
    y = _Scale(0, top, _HEIGHT - _BOTTOM, _TOP + 14)
    parts = [_y_grid(y, top), _x_axis(x, "margin of the bag")]
    for i, count in enumerate(counts.tolist()):
        if count:
            kind = "wrong" if edges[i + 1] <= 1e-12 else "right"
            text = f"{_bags(count)} with margins from {edges[i]:.2g} to {edges[i + 1]:.2g}"
            bar = _rect(x(edges[i]), x(edges[i + 1]), y(count), y(0))
            parts.append(f'<g class="m-{kind}"><title>{escape(text)}</title>{bar}</g>')
    mean, spread = float(margins.mean()), float(margins.std())
    low, high = (min(max(v, edges[0]), edges[-1]) for v in (mean - spread, mean + spread))
    height = _TOP + 6
    parts += [
        _line(x(edges[0]), x(edges[-1]), y(0), y(0), "axis"),
        _threshold(x(0.0)),
        _line(x(low), x(high), height, height, "spread"),
        f'<circle class="mean" cx="{x(mean):.1f}" cy="{height}" r="4.5"/>',
        _text(x(mean), height - 10, f"mean {mean:.3g} ± {spread:.3g}", "middle", "note"),
    ]
    wrong = int((margins <= 0).sum())
    summary = (
        f"Histogram of margins: mean {mean:.3g}, standard deviation {spread:.3g}, "
        f"{wrong} of {len(margins)} not above 0."
    )
    return _svg(parts, summary)


def interval_bar(value: float, interval: tuple[float, float] | None, baseline: float) -> str:
    """Draw a share on the range from 0 to 1 with its interval, if any, and the baseline."""
    x = _Scale(0.0, 1.0, 3, 137)
    words, span = f"{value:.3f}", ""
    if interval is not None:
        low, high = interval
        words += f", interval {low:.3f} to {high:.3f}"
        span = _line(x(low), x(high), 9, 9, "range")
    return (
        '<svg class="interval" viewBox="0 0 140 18" width="140" height="18" role="img" '
        f'aria-label="{words}">'
        f"{_line(x(0), x(1), 9, 9, 'track')}{_line(x(baseline), x(baseline), 2, 16, 'base')}"
        f'{span}<circle cx="{x(value):.1f}" cy="9" r="4"/></svg>'
    )


def convergence_line(history: Floats) -> str:
    """Draw how far the objective was from its last value, on a logarithmic scale."""
    if len(history) < 3:
        return ""
    distance = np.abs(history[:-1] - history[-1])
    smallest = 1e-14 * max(1.0, abs(float(history[-1])))
    return _descent(distance, smallest, "Distance of the objective from its last value")


def gap_line(gaps: Floats) -> str:
    """Draw the duality gap as the solver went on, on a logarithmic scale."""
    smallest = 1e-16 * float(gaps.max(initial=0.0))
    return _descent(gaps, smallest, "Duality gap")


def _descent(distance: Floats, smallest: float, what: str) -> str:
    """Draw numbers that fall towards 0; those that are only rounding are left out."""
    steps = np.flatnonzero(distance > smallest)
    if len(steps) < 2:
        return ""
    if len(steps) > 60:
        steps = steps[np.unique(np.linspace(0, len(steps) - 1, 60).round().astype(int))]
    values = np.log10(distance[steps])
    x = _Scale(float(steps[0]), float(steps[-1]), 2, 138)
    y = _Scale(float(values.min()), float(values.max()), 26, 4)
    points = " ".join(
        f"{x(float(s)):.1f},{y(float(v)):.1f}" for s, v in zip(steps, values, strict=True)
    )
    first, last = distance[steps[0]], distance[steps[-1]]
    return (
        '<svg class="curve" viewBox="0 0 140 30" width="140" height="30" role="img" aria-label="'
        f'{what}: {first:.1e} at first, then down to {last:.1e}">'
        f'<polyline points="{points}"/></svg>'
    )


class _Scale:
    """A linear map from values to positions."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        self.low, self.high, self.start, self.stop = float(low), float(high), start, stop

    def __call__(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return float(self.start + (value - self.low) / span * (self.stop - self.start))


def _edges(values: Floats) -> Floats:
    """Return bin edges that cover all values and have 0 among them."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    if not high > low:
        low, high = -1.0, 1.0
    step = (high - low) / _BINS
    below, above = ceil(-low / step - 1e-9), ceil(high / step - 1e-9)
    return step * np.arange(-max(below, 1), max(above, 1) + 1, dtype=np.float64)


def _svg(parts: Sequence[str], summary: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="group" '
        f'aria-label="{escape(summary)}">{"".join(parts)}</svg>'
    )


def _x_axis(x: _Scale, title: str) -> str:
    base = _HEIGHT - _BOTTOM
    ticks = "".join(
        _line(x(t), x(t), base, base + 4, "tick") + _text(x(t), base + 17, f"{t:g}", "middle")
        for t in nice_ticks(x.low, x.high, 7)
    )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return ticks + _text(middle, _HEIGHT - 5, title, "middle", "title")


def _y_grid(y: _Scale, top: int, *, both_ways: bool = False) -> str:
    ticks = [int(t) for t in nice_ticks(0, top, 3) if t == int(t)]
    if both_ways:
        ticks += [-t for t in ticks if t]
    return "".join(
        _line(_LEFT, _WIDTH - _RIGHT, y(t), y(t), "grid")
        + _text(_LEFT - 7, y(t) + 4, f"{abs(t)}", "end")
        for t in ticks
    )


def _rect(left: float, right: float, top: float, bottom: float) -> str:
    low, high = sorted((top, bottom))
    return (
        f'<rect x="{left + 0.75:.1f}" y="{low:.1f}" width="{max(right - left - 1.5, 1):.1f}" '
        f'height="{high - low:.1f}" rx="1.5"/>'
    )


def _button(
    rect: str, place: int, edges: Floats, text: str, side: int, *, of_class: bool = False
) -> str:
    """Return a bar that can be chosen, for all bags with such scores or only those of a class."""
    span = f"{edges[place]:.2g} to {edges[place + 1]:.2g}"
    text = escape(f"{text} from {span}")
    return (
        f'<g class="bar c{side}" role="button" tabindex="0" data-bin="{place}" '
        + (f'data-class="{side}" ' if of_class else "")
        + f'data-range="{span}" aria-label="{text}; show them"><title>{text}</title>{rect}</g>'
    )


def _line(x1: float, x2: float, y1: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def _threshold(x: float) -> str:
    return _line(x, x, _TOP, _HEIGHT - _BOTTOM, "threshold")


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        + (f' class="{kind}"' if kind else "")
        + f">{escape(text)}</text>"
    )


def _bags(count: int) -> str:
    return f"{count} bag" if count == 1 else f"{count} bags"
