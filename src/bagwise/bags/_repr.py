"""How bags show themselves: one line of text, or a small table with a histogram of sizes."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bagwise.bags._bags import Bags

_BARS = 24
_WIDTH, _HEIGHT = 240, 48


def text_repr(bags: "Bags") -> str:
    """Return one line: counts, type, where the values are, and the range of sizes."""
    parts = [
        _count(bags.n_bags, "bag"),
        _count(bags.n_instances, "instance"),
        _count(bags.n_features, "feature"),
        str(bags.dtype),
    ]
    if bags.is_sparse:
        parts.append("CSR")
    if bags.is_memory_mapped:
        parts.append("memory-mapped")
    if bags.is_lazy:
        parts.append("lazy")
    return f"Bags({', '.join(parts)}; {_size_range(bags)})"


def html_repr(bags: "Bags") -> str:
    """Return a table of counts and a histogram of bag sizes, as one HTML fragment."""
    layout = "CSR" if bags.is_sparse else "dense"
    where = "memory-mapped" if bags.is_memory_mapped else "in memory"
    where += ", transformed when read" if bags.is_lazy else ""
    rows = [
        ("bags", f"{bags.n_bags:,}"),
        ("instances", f"{bags.n_instances:,}"),
        ("features", f"{bags.n_features:,}"),
        ("values", f"{bags.dtype}, {layout}, {where}"),
        ("sizes", _size_range(bags)),
    ]
    if bags.bag_names is not None and len(bags):
        rows.append(("first bags", ", ".join(map(str, bags.bag_names[:3]))))
    cells = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>"
        f"{escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<div><strong>Bags</strong><table>{cells}</table>{_histogram(bags)}</div>"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _size_range(bags: "Bags") -> str:
    if not len(bags):
        return "no bags"
    low, high = int(bags.sizes.min()), int(bags.sizes.max())
    if low == high:
        return f"{_count(low, 'instance')} per bag"
    return f"{low} to {high} instances per bag"


def _histogram(bags: "Bags") -> str:
    """Draw bag sizes as bars; logarithmic bins once the sizes spread over a factor of 50."""
    if not len(bags):
        return ""
    sizes = bags.sizes
    low, high = int(sizes.min()), int(sizes.max())
    if high > 50 * low:
        edges = np.geomspace(low, high + 1, _BARS + 1)
    else:
        edges = np.linspace(low, high + 1, min(_BARS, high + 1 - low) + 1)
    counts, _ = np.histogram(sizes, edges)
    step = _WIDTH / len(counts)
    bars = "".join(
        f"<rect x='{i * step:.1f}' y='{_HEIGHT - height:.1f}' width='{max(step - 1, 1):.1f}' "
        f"height='{height:.1f}'><title>{edges[i]:.0f} to {edges[i + 1]:.0f} instances: "
        f"{count} bags</title></rect>"
        for i, count in enumerate(counts)
        for height in [(_HEIGHT - 1) * count / counts.max() + (count > 0)]
    )
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT + 14}' role='img' "
        f"aria-label='Histogram of bag sizes' fill='currentColor'><g opacity='0.6'>{bars}</g>"
        f"<text x='0' y='{_HEIGHT + 12}' font-size='10'>{low}</text>"
        f"<text x='{_WIDTH}' y='{_HEIGHT + 12}' font-size='10' text-anchor='end'>{high}</text>"
        "</svg>"
    )
