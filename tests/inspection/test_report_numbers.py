"""Every number of the report, found by its heading, beside one that is computed apart from it."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, label_ranking_average_precision_score

from bagwise import Bags
from bagwise.datasets import load_digit_bags, make_three_class_bags
from bagwise.inspection import MethodCard, data_digest, report
from bagwise.solvers import Certificate, Status
from bagwise.svm import SIL, MIKernelSVM
from inspection.judges import BagsOnly, BothSides, FirstFeature, LabelLists, ThreeClasses
from inspection.pages import Page, counted, numbers

RNG = np.random.default_rng(0)
SIZES = RNG.integers(1, 5, 30)
BAGS = Bags(RNG.normal(size=(SIZES.sum(), 3)) - 0.8, np.append(0, SIZES.cumsum()))
#: Labels of 12 and 18 bags, most of them right.
Y = np.r_[np.ones(12, int), np.zeros(18, int)]
IS_KEY = RNG.uniform(size=BAGS.n_instances) < 0.3
METHODS, FITS = "How well each method does", "How each fit ended"


def percent(share):
    return f"{100 * share:.1f} %"


def rows_of(bags):
    """Return the rows of each bag."""
    return [range(a, b) for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]


def keys_found(bags, is_key, chosen):
    """Return in how many bags the chosen row is a true key, of those that hold one."""
    holding = [any(is_key[row] for row in rows) for rows in rows_of(bags)]
    found = [holds and is_key[row] for holds, row in zip(holding, chosen, strict=True)]
    return int(sum(found)), sum(holding)


def interval(n_right, n_bags):
    return stats.binomtest(n_right, n_bags).proportion_ci(method="wilson")


def highest(bags, column=0):
    """Return the row with the highest value in each bag."""
    return [max(rows, key=lambda row: bags.instances[row, column]) for rows in rows_of(bags)]


# ------------------------------------------------------------------------------- labelled bags


@pytest.fixture(scope="module")
def page():
    names = ["dull", "bright"]
    return Page(report(FirstFeature(), BAGS, Y, is_key=IS_KEY, label_names=names))


@pytest.fixture(scope="module")
def expected():
    scores = np.array([BAGS.instances[row, 0] for row in highest(BAGS)])
    n_right = round(30 * accuracy_score(Y, scores > 0))
    n_found, n_holding = keys_found(BAGS, IS_KEY, highest(BAGS))
    counts = {n_right, 30 - n_right, 12, 18, n_found, n_holding}
    assert len(counts) == 6  # so that a mix-up is seen
    margins = [score if label else -score for score, label in zip(scores, Y, strict=True)]
    return {
        "scores": scores,
        "right": n_right,
        "interval": interval(n_right, 30),
        "found": (n_found, n_holding),
        "margins": np.array(margins),
    }


def test_tiles(page, expected):
    low, high = expected["interval"]
    n_found, n_holding = expected["found"]
    assert page.tiles == {
        "accuracy": (
            percent(expected["right"] / 30),
            f"95 % interval {100 * low:.1f} to {100 * high:.1f} %",
        ),
        "baseline": (percent(18 / 30), "always “dull”"),
        "key instance found": (
            percent(n_found / n_holding),
            f"{n_found} of {n_holding} bags that hold one",
        ),
        "mean margin": (
            f"{np.mean(expected['margins']):.3g}",
            f"standard deviation {np.std(expected['margins']):.3g}",
        ),
    }


def test_lead(page, expected):
    low, high = expected["interval"]
    n_found, n_holding = expected["found"]
    assert page.lead == (
        f"FirstFeature gives the right label to {percent(expected['right'] / 30)} of 30 bags (95 % "
        f"interval {100 * low:.1f} to {100 * high:.1f} %); always answering “dull” would give "
        f"60.0 %. In {n_found} of the {n_holding} bags that hold a true key instance, it finds one."
    )


def test_baseline_is_the_share_of_the_majority():
    for y in (Y, 1 - Y):
        tile = Page(report(FirstFeature(), BAGS, y)).tiles["baseline"]
        assert tile == ("60.0 %", f"always “{int(y.mean() > 0.5)}”")


def test_bags_of_the_gallery(page, expected):
    told = page.data["bags"]
    np.testing.assert_array_equal([bag["truth"] for bag in told], Y)
    np.testing.assert_array_equal([bag["predicted"] for bag in told], expected["scores"] > 0)
    np.testing.assert_allclose([bag["score"] for bag in told], expected["scores"], rtol=1e-3)
    np.testing.assert_allclose([bag["margin"] for bag in told], expected["margins"], rtol=1e-3)
    np.testing.assert_array_equal([bag["size"] for bag in told], SIZES)
    places = np.array(highest(BAGS)) - BAGS.offsets[:-1]
    np.testing.assert_array_equal([bag["key"] for bag in told], places)
    closest = np.argsort(np.abs(expected["scores"]))[:3]  # a tenth
    assert [i for i, bag in enumerate(told) if bag["unsure"]] == sorted(closest.tolist())


def test_charts(page, expected):
    scores, margins = page.charts["Scores"], page.charts["Margins"]
    for side, wanted in (("1", expected["scores"][Y == 1]), ("0", expected["scores"][Y == 0])):
        assert_counts(scores, wanted, side)
    assert_counts(margins, expected["margins"], None)
    assert numbers(scores.get("aria-label")) == [12, 18]
    mean, spread = np.mean(expected["margins"]), np.std(expected["margins"])
    rounded = [float(f"{value:.3g}") for value in (mean, spread)]
    assert numbers(margins.get("aria-label")) == [*rounded, 30 - expected["right"], 30, 0]


def assert_counts(chart, values, side):
    """Every bar counts the values in its range, up to the rounding of the ends."""
    bars = {ends: n for ends, n in counted(chart).items() if ends[2] == side}
    assert sum(bars.values()) == len(values)
    for (low, high, _), n_bags in bars.items():
        slack = 0.06 * (high - low) + 0.05 * max(abs(low), abs(high))
        inside = np.sum((values >= low - slack) & (values <= high + slack))
        surely = np.sum((values >= low + slack) & (values <= high - slack))
        assert surely <= n_bags <= inside


def test_facts():
    page = Page(report(FirstFeature(), BAGS, Y, facts={"Seed": "7", "Command": "bagwise x"}))
    assert page.facts.pop("Versions").startswith("bagwise ")
    assert {name: page.facts[name] for name in ("Seed", "Command", "Data (SHA-256)")} == {
        "Seed": "7",
        "Command": "bagwise x",
        "Data (SHA-256)": data_digest(BAGS, Y),
    }


# ---------------------------------------------------------------------------------------- tables

ENDINGS = {
    "Best": Certificate(
        objective=-12.345678,
        status=Status.CONVERGED,
        n_iter=1234,
        lower_bound=-12.4,
        solve_time=0.0625,
        history=np.array([7.0, -3.0, -12.0, -12.345678]),
        gap_history=np.array([40.0, 5.0, 0.05]),
    ),
    "Stuck": Certificate(
        objective=0.25, status=Status.STALLED, n_iter=17, lower_bound=0.125, solve_time=3.5
    ),
    "Hasty": Certificate(
        objective=8.5,
        status=Status.MAX_ITER,
        n_iter=9,
        history=np.array([99.0, 20.0, 9.5, 8.5]),
        ends=np.array([8.5, 8.0, 9.6]),
    ),
    "Exact": Certificate(objective=3.0, status=Status.CONVERGED, n_iter=1, lower_bound=3.0),
}
COUNTS = {"Best": (27, 9, 11), "Stuck": (20, 5, 12), "Hasty": (13, None, None), "Exact": (7, 0, 8)}
CARDS = [
    MethodCard(
        name=name,
        n_right=n_right,
        n_bags=30,
        n_found=n_found,
        n_key_bags=n_holding,
        parameters=f"C = {n_right}",
        fit_seconds=None if name == "Exact" else n_right / 64,
        cv_accuracy=None if name == "Exact" else (n_right + 1) / 31,
        certificate=ENDINGS[name],
    )
    for name, (n_right, n_found, n_holding) in COUNTS.items()
]


@pytest.fixture(scope="module")
def compared():
    return Page(report(FirstFeature(), BAGS, Y, cards=CARDS, name="Stuck"))


def test_table_of_methods(compared):
    rows = compared.table(METHODS)
    assert list(rows) == list(COUNTS)
    assert compared.featured(METHODS) == ["Stuck"]
    for name, (n_right, n_found, n_holding) in COUNTS.items():
        low, high = interval(n_right, 30)
        description, bar = rows[name].pop("")
        assert numbers(description) == pytest.approx([n_right / 30, low, high], abs=5e-4)
        lines = bar.findall("line")
        drawn = {line.get("class"): [float(line.get(x)) for x in ("x1", "x2")] for line in lines}
        at = [(3 + 134 * share) for share in (low, high, 18 / 30)]
        assert drawn["range"] == pytest.approx(at[:2], abs=0.06)
        assert drawn["base"] == pytest.approx([at[2]] * 2, abs=0.06)
        unknown = name == "Exact"
        assert rows[name] == {
            "method": (name, f"C = {n_right}"),
            "accuracy": (percent(n_right / 30), f"{100 * low:.1f} to {100 * high:.1f}"),
            "key instance found": ("–" if n_found is None else percent(n_found / n_holding), ""),
            "accuracy in cross-validation": ("–" if unknown else percent((n_right + 1) / 31), ""),
            "seconds to fit": ("–" if unknown else f"{n_right / 64:.3f}", ""),
        }


def test_table_of_certificates(compared):
    rows = compared.table(FITS)
    assert list(rows) == list(ENDINGS)
    assert compared.featured(FITS) == ["Stuck"]
    descent, way = "objective above its last value (log scale)", "gap on the way (log scale)"
    words = {
        "Best": "converged",
        "Stuck": "stalled: rounding forbids further progress",
        "Hasty": "stopped: more iterations needed",
        "Exact": "converged",
    }
    gaps = {
        "Best": ("5.4e-02", f"relative {0.054322 / 12.345678:.1e}"),
        "Stuck": ("1.2e-01", "relative 1.2e-01"),
        "Hasty": ("not known", ""),
        "Exact": ("0", "relative 0"),
    }
    objectives = {"Best": "-12.3457", "Stuck": "0.25", "Hasty": "8.5", "Exact": "3"}
    starts = {"Hasty": "best of 3 starts, which ended between 8 and 9.6"}
    seconds = {"Best": "0.062", "Stuck": "3.500", "Hasty": "0.000", "Exact": "0.000"}
    for name, row in rows.items():
        curves = row.pop(descent)[0], row.pop(way)[0]
        assert row == {
            "method": (name, ""),
            "status": (words[name], ""),
            "objective": (objectives[name], starts.get(name, "")),
            "gap": gaps[name],
            "iterations": (f"{ENDINGS[name].n_iter:,}", ""),
            "seconds": (seconds[name], ""),
        }
        fell = {"Best": [19.345678, 0.345678], "Hasty": [90.5, 1.0]}.get(name, [])
        assert numbers(curves[0]) == pytest.approx(fell, rel=0.05)
        assert ("objective" in curves[0].lower()) == bool(fell)
        gap = [40.0, 0.05] if name == "Best" else []
        assert numbers(curves[1]) == pytest.approx(gap, rel=0.05)
        assert ("gap" in curves[1].lower()) == bool(gap)


def test_status_has_the_colour_of_its_meaning(compared):
    badges = [part for part in compared.root.iter("span") if "badge" in part.get("class", "")]
    assert [badge.get("class").split()[1] for badge in badges] == ["ok", "warn", "warn", "ok"]


# ---------------------------------------------------------------------- unlabelled bags and lists


def test_tiles_without_labels():
    page = Page(report(FirstFeature(), BAGS, is_key=IS_KEY, label_names=["dull", "bright"]))
    scores = np.array([BAGS.instances[row, 0] for row in highest(BAGS)])
    n_bright = int((scores > 0).sum())
    name, share = max(("bright", n_bright / 30), ("dull", 1 - n_bright / 30), key=lambda x: x[1])
    n_found, n_holding = keys_found(BAGS, IS_KEY, highest(BAGS))
    assert page.tiles == {
        "bags": ("30", "true labels not known"),
        "most frequent label": (percent(share), f"“{name}”"),
        "key instance found": (
            percent(n_found / n_holding),
            f"{n_found} of {n_holding} bags that hold one",
        ),
        "mean distance from the threshold": (
            f"{np.abs(scores).mean():.3g}",
            f"standard deviation {np.abs(scores).std():.3g}",
        ),
    }
    assert_counts(page.charts["Score of each bag"], scores, None)


def test_three_classes():
    labels = np.array(["ant", "bee", "bee", "cat", "bee"])[np.arange(30) % 5]
    best = np.array([BAGS.instances[rows].max(axis=0) for rows in map(list, rows_of(BAGS))])
    predicted = np.array(["ant", "bee", "cat"])[best.argmax(axis=1)]
    names, counts = np.unique(labels, return_counts=True)
    margins = [
        scores[code] - max(np.delete(scores, code))
        for scores, code in zip(best, np.searchsorted(["ant", "bee", "cat"], labels), strict=True)
    ]
    page = Page(report(ThreeClasses(), BAGS, labels))
    tiles = page.tiles
    assert tiles["accuracy"][0] == percent(accuracy_score(labels, predicted))
    majority = names[counts.argmax()]
    assert tiles["baseline"] == (percent(counts.max() / 30), f"always “{majority}”")
    spread = f"standard deviation {np.std(margins):.3g}"
    assert tiles["mean margin"] == (f"{np.mean(margins):.3g}", spread)
    assert_counts(page.charts["Margins"], np.array(margins), None)

    page = Page(report(ThreeClasses(), BAGS))
    lead = np.sort(best, axis=1)[:, -1] - np.sort(best, axis=1)[:, -2]
    names, counts = np.unique(predicted, return_counts=True)
    assert page.tiles == {
        "bags": ("30", "true labels not known"),
        "most frequent label": (percent(counts.max() / 30), f"“{names[counts.argmax()]}”"),
        "mean lead over the next label": (
            f"{lead.mean():.3g}",
            f"standard deviation {lead.std():.3g}",
        ),
    }
    for name, count in zip(names, counts, strict=True):
        assert f"“{name}” to {count}" in page.lead


def test_label_lists():
    truth = (np.random.default_rng(1).uniform(size=(30, 3)) < [0.2, 0.6, 0.7]).astype(int)
    scores = np.array([BAGS.instances[rows].max(axis=0) for rows in map(list, rows_of(BAGS))])
    given, top = (scores > 0).sum(axis=1), scores.max(axis=1)
    page = Page(report(LabelLists(), BAGS, truth, label_names=["ant", "bee", "cat"]))
    has_any = truth.any(axis=1)  # others have no ranking, and scikit-learn would count 1 for them
    precision = percent(label_ranking_average_precision_score(truth[has_any], scores[has_any]))
    known = {
        "bags": ("30", "true labels known"),
        "average precision": (precision, "of the ranking of labels"),
        "labels given to a bag": (f"{given.mean():.2f}", f"true ones: {truth.sum() / 30:.2f}"),
        "mean highest score": (f"{top.mean():.3g}", f"standard deviation {top.std():.3g}"),
    }
    assert page.tiles == known
    assert f"average precision is {precision}" in page.lead
    for name, column in zip(("ant", "bee", "cat"), scores.T, strict=True):
        assert f"“{name}” to {(column > 0).sum()}" in page.lead
    assert f"no label to {(given == 0).sum()} of 30 bags" in page.lead
    assert_counts(page.charts["Highest score of each bag"], top, None)
    unknown = Page(report(LabelLists(), BAGS)).tiles
    assert unknown.pop("labels given to a bag") == (known["labels given to a bag"][0], "of 3")
    assert unknown.pop("bags") == ("30", "true labels not known")
    assert unknown == {"mean highest score": known["mean highest score"]}


@pytest.mark.parametrize("model", [BothSides(), BagsOnly()])
def test_key_instances_count_towards_the_second_class(model):
    tiles = Page(report(model, BAGS, Y, is_key=IS_KEY)).tiles
    n_found, n_holding = keys_found(BAGS, IS_KEY, highest(BAGS))
    wanted = f"{n_found} of {n_holding} bags that hold one"
    assert tiles.get("key instance found", (0, None))[1] == (
        None if isinstance(model, BagsOnly) else wanted
    )


# ------------------------------------------------------------------------------ fitted estimators


@pytest.mark.parametrize(
    "model",
    [SIL(C=10, pos_label="a three"), MIKernelSVM(C=10)],
    ids=lambda model: type(model).__name__,
)
def test_fitted_estimator(model):
    train, test = (load_digit_bags(30, images=part) for part in ("train", "test"))
    words = np.array(["nothing", "a three"])
    model.fit(train.bags, words[train.y])
    page = Page(report(model, test.bags, words[test.y], is_key=test.instance_y == 3))
    tiles, fit = page.tiles, page.table(FITS)[type(model).__name__]
    accuracy = accuracy_score(words[test.y], model.predict(test.bags))
    assert tiles["accuracy"][0] == percent(accuracy)
    assert page.table(METHODS)[type(model).__name__]["accuracy"][0] == percent(accuracy)
    result = model.result_
    assert float(fit["objective"][0]) == pytest.approx(result.objective, rel=1e-5)
    assert float(fit["gap"][0]) == pytest.approx(max(0, result.gap), rel=0.06)
    assert fit["iterations"][0] == f"{result.n_iter:,}"
    assert fit["status"][0] == "converged"
    assert page.data["labels"] == ["a three", "nothing"]
    told = [page.data["labels"][bag["predicted"]] for bag in page.data["bags"]]
    assert told == model.predict(test.bags).tolist()
    assert [page.data["labels"][bag["truth"]] for bag in page.data["bags"]] == (
        words[test.y].tolist()
    )


def test_fitted_estimator_of_three_classes():
    data = make_three_class_bags(random_state=0)
    model = SIL().fit(data.bags, data.y)
    page = Page(report(model, data.bags, data.y))
    assert page.tiles["accuracy"][0] == percent(accuracy_score(data.y, model.predict(data.bags)))
    scores = model.decision_function(data.bags)
    rows = np.arange(len(scores))
    rest = np.where(np.arange(3) == data.y[:, None], -np.inf, scores).max(axis=1)
    margins = scores[rows, data.y] - rest
    np.testing.assert_allclose(
        [bag["margin"] for bag in page.data["bags"]], margins, rtol=2e-3, atol=1e-9
    )
