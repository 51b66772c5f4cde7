"""Reports on pipelines and searches say of instances what their last step does."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagwise.datasets import load_digit_bags
from bagwise.inspection import Answers, assess, report
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL
from inspection.pages import Page

TRAIN = load_digit_bags(40, images="train")
TEST = load_digit_bags(30, images="test")
IS_KEY = TEST.instance_y == 3
METHODS = ("predict", "decision_function", "instance_decision_function", "key_instances")


def pipeline():
    return make_pipeline(InstanceTransformer(StandardScaler()), SIL(C=100.0))


@pytest.fixture(scope="module")
def plain():
    """Return the bags after the scaler, and the machine fitted on them alone."""
    scaler = InstanceTransformer(StandardScaler()).fit(TRAIN.bags)
    return scaler, SIL(C=100.0).fit(scaler.transform(TRAIN.bags), TRAIN.y)


@pytest.mark.parametrize(
    "make",
    [pipeline, lambda: BagGridSearchCV(pipeline(), {"sil__C": [100.0]}, cv=2)],
    ids=["pipeline", "search"],
)
def test_report_and_card(make, plain):
    scaler, model = plain
    wrapped = make().fit(TRAIN.bags, TRAIN.y)
    expected = assess(model, scaler.transform(TEST.bags), TEST.y, is_key=IS_KEY)
    card = assess(wrapped, TEST.bags, TEST.y, is_key=IS_KEY)
    assert (card.name, card.n_right) == ("SIL", expected.n_right)
    assert (card.n_found, card.n_key_bags) == (expected.n_found, expected.n_key_bags)
    assert card.certificate.objective == pytest.approx(expected.certificate.objective)
    page = Page(report(wrapped, TEST.bags, TEST.y, is_key=IS_KEY))
    assert page.lead.startswith("SIL gives the right label to ")
    assert f"In {expected.n_found} of the {expected.n_key_bags} bags" in page.lead
    assert "key instance found" in page.tiles


def test_other_bags_get_answers_of_their_own(plain):
    scaler, model = plain
    answers = Answers(pipeline().fit(TRAIN.bags, TRAIN.y))
    for bags in (TRAIN.bags, TEST.bags, TRAIN.bags):
        for method in METHODS:
            expected = getattr(model, method)(scaler.transform(bags))
            np.testing.assert_allclose(getattr(answers, method)(bags), expected)
    with pytest.raises(AttributeError, match="Answers has no attribute 'other_'"):
        _ = answers.other_
