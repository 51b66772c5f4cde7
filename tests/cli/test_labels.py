"""Labels that are text in one file and numbers in another mean the same."""

import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

import bagwise as library
from bagwise import Bags
from bagwise.svm import SIL
from inspection.pages import Page

N_BAGS = 20
#: How the two classes are written down; what is text and what is a number must not matter.
WRITTEN = {
    "integers": np.array([1, 2]),
    "text": np.array(["1", "2"]),
    "objects": np.array(["1", "2"], dtype=object),
    "decimals": np.array([1.0, 2.0]),
    "text of decimals": np.array(["1.0", "2.0"]),
}


@pytest.fixture
def bags():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2 * N_BAGS, 2)) + 6 * np.repeat(np.arange(N_BAGS) % 2, 2)[:, None]
    return Bags(values, np.arange(0, 2 * N_BAGS + 1, 2))


@pytest.fixture
def y():
    """Return codes of the labels, the last five of which no model gets right."""
    return np.arange(N_BAGS) % 2 ^ (np.arange(N_BAGS) >= 15)


def are_other_names(learned, given):
    """Return whether both are text, and not the same: then they are other labels."""
    both = [*learned, *given]
    return all(isinstance(label, str) for label in both) and set(learned) != set(given)


def learn(bags, labels):
    """Return a model of bags that have the two labels in turn, the second the positive one."""
    model = SIL(kernel="linear", pos_label=labels[1])
    return model.fit(bags, labels[np.arange(N_BAGS) % 2])


def label(bags, labels):
    return Bags(bags.instances, bags.offsets, labels=labels)


@pytest.mark.parametrize("learned", WRITTEN)
@pytest.mark.parametrize("given", [kind for kind in WRITTEN if kind != "objects"])
def test_accuracy(workshop, bagwise, bags, y, learned, given):
    model = learn(bags, WRITTEN[learned])
    library.save(model, "m.model")
    label(bags, WRITTEN[given][y]).write("d.bags")
    codes = (model.decision_function(bags) > 0).astype(int)
    accuracy = accuracy_score(y, codes)
    assert accuracy == 0.75
    if are_other_names(WRITTEN[learned], WRITTEN[given]):
        accuracy = 0.0
    for command in ("predict", "explain"):
        code, out, err = bagwise(f"{command} m.model d.bags --json")
        answer = json.loads(out)
        assert code == 0
        assert (answer["metric"], answer["accuracy"]) == ("accuracy", accuracy)
        assert f"Accuracy: {accuracy:.1%} of 20 bags" in err
        # What is predicted is a label of the model, as it learned it.
        assert [bag["predicted"] for bag in answer["bags"]] == WRITTEN[learned][codes].tolist()


@pytest.mark.parametrize(
    ("learned", "given"),
    [("integers", "text"), ("objects", "integers"), ("text", "decimals"), ("decimals", "text")],
)
def test_report(workshop, bagwise, bags, y, learned, given):
    library.save(learn(bags, WRITTEN[learned]), "m.model")
    label(bags, WRITTEN[given][y]).write("d.bags")
    code, _, err = bagwise("explain m.model d.bags --report r.html")
    assert code == 0, err
    page = Page((workshop / "r.html").read_text(encoding="utf-8"))
    assert page.tiles["accuracy"][0] == "75.0 %"
    assert [bag["truth"] for bag in page.data["bags"]] == y.tolist()


def test_column_that_is_text_because_of_one_label(workshop, bagwise, refused):
    """A file whose labels are numbers, and another where one label is none."""
    assert bagwise("fit molecules.csv --bag molecule --label active -m SIL -o m.model")[0] == 0
    text = (workshop / "molecules.csv").read_text()
    (workshop / "odd.csv").write_text(text.replace("m03,1,", "m03,unclear,"))
    options = "odd.csv --bag molecule --label active"
    whole = bagwise("predict m.model molecules.csv --bag molecule --label active --json")[1]
    answer = json.loads(bagwise(f"predict m.model {options} --json")[1])
    assert [part["label"] for part in answer["data"]["labels"]] == ["0", "1", "unclear"]
    assert answer["accuracy"] == pytest.approx(json.loads(whole)["accuracy"] - 1 / 24)
    line = refused(f"explain m.model {options} --report r.html")
    assert "not fitted on the label(s) unclear in y" in line


@pytest.mark.parametrize("learned", [np.array([False, True]), np.array(["False", "True"])])
@pytest.mark.parametrize("given", [np.array([False, True]), np.array(["False", "True"])])
def test_truth_values(workshop, bagwise, bags, y, learned, given):
    library.save(learn(bags, learned), "m.model")
    label(bags, given[y]).write("d.bags")
    assert json.loads(bagwise("predict m.model d.bags --json")[1])["accuracy"] == 0.75
