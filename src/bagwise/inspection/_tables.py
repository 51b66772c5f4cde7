"""The tables of the report."""

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite

from bagwise.inspection._assess import MethodCard
from bagwise.inspection._svg import convergence_line, gap_line, interval_bar
from bagwise.solvers import Certificate

_STATUS = {
    "converged": "converged",
    "stalled": "stalled: rounding forbids further progress",
    "max_iter": "stopped: more iterations needed",
}


def percent(share: float) -> str:
    """Return a share as text."""
    return f"{100 * share:.1f}\u202f%"


def method_table(cards: Sequence[MethodCard], featured: str, baseline: float) -> str:
    """Return one row for each method: how well it does and how long it took."""
    rows = []
    for card in cards:
        key = "–" if card.key_success is None else percent(card.key_success)
        cv = "–" if card.cv_accuracy is None else percent(card.cv_accuracy)
        seconds = "–" if card.fit_seconds is None else f"{card.fit_seconds:.3f}"
        rows.append(
            f"<tr{_mark(card.name, featured)}><th scope='row'>{escape(card.name)}"
            f"<small>{escape(card.parameters)}</small></th>"
            f"<td class='wide'>{interval_bar(card.accuracy, card.interval, baseline)}</td>"
            f"<td>{percent(card.accuracy)}<small>{card.interval_text}</small></td>"
            f"<td>{key}</td><td>{cv}</td><td>{seconds}</td></tr>"
        )
    return _table(
        "How well each method does",
        (
            "method",
            "",
            "accuracy",
            "key instance found",
            "accuracy in cross-validation",
            "seconds to fit",
        ),
        rows,
    )


def certificate_table(certificates: Sequence[tuple[str, Certificate | None]], featured: str) -> str:
    """Return one row for each method by name: what is proven about its solution."""
    rows, descents, gaps = [], [], []
    for name, result in certificates:
        if result is None:
            continue
        bounded = isfinite(result.lower_bound)
        gap = _tiny(result.gap) if bounded else "not known"
        share = f"<small>relative {_tiny(result.relative_gap)}</small>" if bounded else ""
        status = str(result.status)
        good = "ok" if result.converged else "warn"
        starts = f"<small>{result.starts_text}</small>" if result.starts_text else ""
        rows.append(
            f"<tr{_mark(name, featured)}><th scope='row'>{escape(name)}</th>"
            f"<td class='text'><span class='badge {good}'>{escape(_STATUS.get(status, status))}"
            f"</span></td><td>{result.objective:.6g}{starts}</td><td>{gap}{share}</td>"
            f"<td>{result.n_iter:,}</td><td>{result.solve_time:.3f}</td>"
        )
        descents.append(convergence_line(result.history))
        gaps.append(gap_line(result.gap_history))
    if not rows:
        return "<p>These methods keep none.</p>"
    heads = ["method", "status", "objective", "gap", "iterations", "seconds"]
    for head, curves in (
        ("objective above its last value (log scale)", descents),
        ("gap on the way (log scale)", gaps),
    ):
        if any(curves):
            heads.append(head)
            drawn = zip(rows, curves, strict=True)
            rows = [f"{row}<td class='wide'>{curve}</td>" for row, curve in drawn]
    rows = [f"{row}</tr>" for row in rows]
    return _table("How each fit ended", heads, rows)


def fact_list(facts: Mapping[str, str]) -> str:
    """Return names and values."""
    return "".join(
        f"<dt>{escape(name)}</dt><dd><code>{escape(value)}</code></dd>"
        for name, value in facts.items()
    )


def _tiny(gap: float) -> str:
    """Return a gap as text; rounding can make it slightly negative."""
    return f"{gap:.1e}" if gap > 0 else "0"


def _mark(name: str, featured: str) -> str:
    return " class='featured'" if name == featured else ""


def _table(caption: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th scope='col'>{name}</th>" if name else "<td></td>" for name in heads)
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{caption}'><table>"
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
