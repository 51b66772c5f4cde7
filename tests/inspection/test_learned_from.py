"""What an estimator says of the bags that it learned from."""

import numpy as np
import pytest
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import bagwise
from bagwise import all_estimators
from bagwise.datasets import load_digit_bags
from bagwise.inspection import assess, learned_from, report
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL
from bagwise.testing import make_toy_bags
from inspection.pages import Page

ESTIMATORS = dict(all_estimators())
DATA = load_digit_bags(60)
TRAIN, Y = DATA.bags[:40], DATA.y[:40]
SEEN = np.arange(60) < 40


def halved(bags):
    return bags.map_instances(lambda rows: rows / 2)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_knows_its_bags_again(name, tmp_path):
    bags, y = make_toy_bags(30)
    model = ESTIMATORS[name]().fit(bags[5:25], y[5:25])
    expected = [False] * 5 + [True] * 20 + [False] * 5
    assert learned_from(model, bags).tolist() == expected
    bagwise.save(model, tmp_path / "m.model")
    assert learned_from(bagwise.load(tmp_path / "m.model"), bags).tolist() == expected
    assert not learned_from(model.fit(bags[:5], y[:5]), bags[5:]).any()


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(InstanceTransformer(StandardScaler()), SIL()),
        make_pipeline(InstanceTransformer(PCA(8, random_state=0)), SIL()),
        make_pipeline(FunctionTransformer(halved), InstanceTransformer(StandardScaler()), SIL()),
        BagGridSearchCV(SIL(), {"C": [1.0]}, cv=2),
    ],
    ids=["scaler", "projection", "foreign step", "search"],
)
def test_through_pipelines_and_searches(model):
    assert learned_from(model.fit(TRAIN, Y), DATA.bags).tolist() == SEEN.tolist()


def test_whoever_keeps_nothing_cannot_tell():
    model = CalibratedClassifierCV(SIL(), cv=2).fit(TRAIN, Y)
    assert learned_from(model, TRAIN) is None


def page_on(bags, y, model=None):
    return Page(report(SIL(C=100.0).fit(TRAIN, Y) if model is None else model, bags, y))


def test_report_on_the_training_bags_has_no_interval():
    page = page_on(TRAIN, Y)
    assert "These are the bags it learned from: expect less on others." in page.lead
    assert "interval" not in page.lead
    text = " ".join("".join(page.texts).split())
    assert "The bar shows the accuracy; the thin mark is the baseline." in text
    assert "interval" not in text
    assert page.tiles["accuracy"][1] == "learned from all of them"
    assert (
        page.table("How well each method does")["SIL"]["accuracy"][1] == "learned from all of them"
    )


def test_report_on_new_bags_has_one():
    page = page_on(DATA.bags[40:], DATA.y[40:])
    assert "learned from" not in page.lead
    assert "95 % interval" in page.lead
    assert "The bar shows the accuracy with its 95 % interval; the" in "".join(page.texts)


def test_report_on_some_of_each_counts_the_new_ones_apart():
    page = page_on(DATA.bags, DATA.y)
    model = SIL(C=100.0).fit(TRAIN, Y)
    n_right = int((model.predict(DATA.bags[40:]) == DATA.y[40:]).sum())
    low, high = stats.binomtest(n_right, 20).proportion_ci(method="wilson")
    assert "40 of these are bags it learned from" in page.lead
    assert (
        f"Of the 20 others it labels {5 * n_right:.1f} % right "
        f"(95 % interval {100 * low:.1f} to {100 * high:.1f} %)."
    ) in page.lead
    assert page.tiles["accuracy"][1] == "learned from 40 of them"


def test_report_on_lists_of_labels():
    lists = np.stack([Y, 1 - Y], axis=1)
    page = page_on(TRAIN, lists, SIL().fit(TRAIN, lists))
    assert "These are the bags it learned from" in page.lead


def test_card():
    model = SIL(C=100.0).fit(TRAIN, Y)
    assert assess(model, TRAIN, Y).interval is None
    new = assess(model, DATA.bags[40:], DATA.y[40:])
    expected = stats.binomtest(new.n_right, 20).proportion_ci(method="wilson")
    assert new.interval == pytest.approx(expected, rel=1e-12)
