import xml.etree.ElementTree as ET

import numpy as np
import pytest

from bagwise.inspection import _svg


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 10.0, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
        (-1.0, 1.0, [-1.0, -0.5, 0.0, 0.5, 1.0]),
        (0.0, 0.3, [0.0, 0.1, 0.2, 0.3]),
        (2.0, 2.0, [2.0]),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert _svg.nice_ticks(low, high) == expected


@pytest.mark.parametrize(
    "scores", [[-1.0, 2.0, 0.3, 0.0], [1.0, 2.0], [-3.0], [0.0, 0.0], [1e-9, -1e9], [-1e-300, 5.0]]
)
def test_every_bag_is_in_one_bar(scores):
    scores = np.array(scores)
    is_second = scores > 0
    root = ET.fromstring(_svg.score_histogram(scores, is_second, ["no & <", 'a "3"']))
    bars = [g for g in root if g.get("class", "").startswith("bar")]
    counts = {
        (int(g.get("data-class")), int(g.get("data-bin"))): g.find("title").text for g in bars
    }
    bins = _svg.score_bins(scores)
    for side in (0, 1):
        for place, count in zip(
            *np.unique(bins[is_second == side], return_counts=True), strict=True
        ):
            assert counts.pop((side, int(place))).startswith(f"{count} bag")
    assert not counts


@pytest.mark.parametrize("scores", [[-1.0, 2.0, 0.3, 0.0], [-3.0], [0.0, 0.0], [1e-9, -1e9]])
def test_every_bag_without_class_is_in_one_bar(scores):
    root = ET.fromstring(_svg.plain_histogram(np.array(scores), "score"))
    bars = [g for g in root if g.get("class", "").startswith("bar")]
    counts = {int(g.get("data-bin")): int(g.find("title").text.split()[0]) for g in bars}
    places, expected = np.unique(_svg.score_bins(np.array(scores)), return_counts=True)
    assert counts == dict(zip(places.tolist(), expected.tolist(), strict=True))
    assert not any("data-class" in g.attrib for g in bars)


def test_bars_do_not_cross_the_threshold():
    scores = np.random.default_rng(0).normal(size=500)
    bins = _svg.score_bins(scores)
    assert bins[scores < 0].max() < bins[scores >= 0].min()


def test_margins_are_summed_up():
    text = _svg.margin_histogram(np.array([-1.0, 1.0, 3.0]))
    root = ET.fromstring(text)
    assert "mean 1 ± 1.63" in text
    assert "1 of 3 not above 0" in root.get("aria-label")
    kinds = [g.get("class") for g in root if g.tag == "g"]
    assert kinds == ["m-wrong", "m-right", "m-right"]


def test_curve_of_short_history_is_empty():
    assert _svg.gap_line(np.array([])) == ""
    assert _svg.gap_line(np.array([5.0, -1e-18])) == ""
    gap = ET.fromstring(_svg.gap_line(np.array([8.0, 1e-3, 1e-9, 0.0])))
    assert gap.get("aria-label") == "Duality gap: 8.0e+00 at first, then down to 1.0e-09"
    assert _svg.convergence_line(np.array([])) == ""
    assert _svg.convergence_line(np.array([3.0, 3.0, 3.0])) == ""
    curve = ET.fromstring(_svg.convergence_line(np.geomspace(1.0, 1e-8, 500)))
    points = curve.find("polyline").get("points").split()
    assert 2 <= len(points) <= 60
    heights = [float(point.split(",")[1]) for point in points]
    assert heights == sorted(heights)  # downwards on the page


def test_interval_bar():
    bar = ET.fromstring(_svg.interval_bar(0.5, (0.25, 1.0), 0.0))
    line = next(item for item in bar if item.get("class") == "range")
    assert [float(line.get(name)) for name in ("x1", "x2")] == [36.5, 137.0]
    assert float(bar.find("circle").get("cx")) == 70.0
    without = ET.fromstring(_svg.interval_bar(0.5, None, 0.0))
    assert [item.get("class") for item in without] == ["track", "base", None]
