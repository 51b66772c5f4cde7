"""``--positive``: which of two labels a few instances decide for."""

import json

import numpy as np
import pytest

import bagwise as library
from bagwise import Bags
from cli.conftest import write_molecules
from inspection.pages import Page

FILE = "named.csv --bag molecule --label active"


@pytest.fixture
def named(workshop):
    """Molecules whose labels are words, the positive one of which sorts first."""
    write_molecules(workshop / "named.csv", seed=3)
    words = {"0": "inactive", "1": "active"}
    head, *rows = (workshop / "named.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    lines = [",".join([name, words[label], *rest]) for name, label, *rest in cells]
    (workshop / "named.csv").write_text("\n".join([head, *lines]))
    write_molecules(workshop / "coded.csv", seed=3)
    return workshop


def test_same_model_as_with_codes(named, bagwise):
    code, out, err = bagwise(f"fit {FILE} -m MISVM --positive active -o n.model --cv 4")
    assert code == 0, err
    assert "Positive label: active" in out
    assert bagwise(f"fit {FILE.replace('named', 'coded')} -m MISVM -o c.model")[0] == 0
    model, coded = library.load("n.model"), library.load("c.model")
    bags = Bags.read("named.csv", bag="molecule", label="active")
    assert model[-1].pos_label_ == "active"
    np.testing.assert_array_equal(model.decision_function(bags), -coded.decision_function(bags))
    told = json.loads(bagwise(f"explain n.model {FILE} --json")[1])
    same = json.loads(bagwise("explain c.model coded.csv --bag molecule --label active --json")[1])
    assert (told["positive"], same["positive"]) == ("active", 1)
    assert told["accuracy"] == same["accuracy"] == 1.0
    for bag, other in zip(told["bags"], same["bags"], strict=True):
        assert bag["predicted"] == ("inactive", "active")[other["predicted"]]
        assert bag["key"]["instance"] == other["key"]["instance"]
        assert bag["key"]["score"] == -other["key"]["score"]
        assert [part["instance"] for part in bag["next"]] == [
            part["instance"] for part in other["next"]
        ]


def test_positive_with_a_grid(named, bagwise):
    line = f"fit {FILE} -m SIL --positive active -o n.model --grid C=0.1,10 --cv 3 --json"
    code, out, err = bagwise(line)
    assert code == 0, err
    answer = json.loads(out)
    assert answer["model"]["positive"] == "active"
    assert set(answer["model"]["parameters"]) == {"C"}
    plain = (
        f"fit coded.csv --bag molecule --label active -m SIL -o c.model {line.split('model ')[1]}"
    )
    found, expected = answer["cross_validation"], json.loads(bagwise(plain)[1])["cross_validation"]
    assert (found["values"], found["others"]) == (expected["values"], expected["others"])


@pytest.mark.parametrize("option", ["", "--cv 3", "--grid C=1,10"])
def test_no_guess(named, refused, option):
    line = refused(f"fit {FILE} -m MISVM -o n.model {option}")
    assert "--positive active or --positive inactive" in line
    assert not (named / "n.model").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-m MISVM --positive Active", "'Active' is none of the labels active and inactive"),
        ("-m MIKernelSVM --positive toxic", "'toxic' is none of the labels"),
        ("-m MISVM --positive active -p pos_label=active", "as the parameter pos_label"),
        ("-m M3IC --positive active", "none to learn from"),
    ],
)
def test_refused(named, refused, options, words):
    assert words in refused(f"fit {FILE} {options} -o n.model")


def test_refused_with_label_lists(workshop, refused):
    line = refused("fit photos.csv -m SIL -o p.model --positive Ann")
    assert "--positive is for two labels, and there are lists of them" in line


def test_not_needed(named, bagwise):
    code, _, err = bagwise(f"fit {FILE} -m MIKernelSVM -p C=10 -o n.model")
    assert code == 0, err
    code, out, err = bagwise(
        f"fit {FILE} -m MIKernelSVM -p C=10 --positive active -o n.model --json"
    )
    assert "treats both labels alike: --positive changes nothing" in err
    assert json.loads(out)["model"]["positive"] is None
    assert bagwise(f"fit {FILE} -m SIL -p pos_label=active -o n.model")[0] == 0
    assert library.load("n.model")[-1].pos_label_ == "active"
    coded = "fit coded.csv --bag molecule --label active -m SIL -o c.model"
    assert json.loads(bagwise(f"{coded} --json")[1])["model"]["positive"] == 1


@pytest.mark.parametrize(
    ("labels", "text"), [([1, 2], "1"), ([1.0, 2.0], "1"), (["1", "2"], "1.0")]
)
def test_text_means_numbers(named, bagwise, labels, text):
    """On the command line labels are text, as they are in predictions."""
    bags = Bags.read("coded.csv", bag="molecule", label="active")
    y = np.array(labels)[1 - bags.labels]
    Bags(bags.instances, bags.offsets, labels=y).write("d.bags")
    code, _, err = bagwise(f"fit d.bags -m SIL --positive {text} -o d.model")
    assert code == 0, err
    assert library.load("d.model")[-1].pos_label_ == labels[0]


def test_report_and_key_instances(named, bagwise):
    """Instances that are marked with the positive label are the key instances to be found."""
    bags = Bags.read("named.csv", bag="molecule", label="active")
    marks = np.full(bags.n_instances, "inactive")
    marks[bags.offsets[:-1][bags.labels == "active"]] = "active"  # the first conformer
    Bags(bags.instances, bags.offsets, labels=bags.labels, instance_labels=marks).write("d.bags")
    assert bagwise("fit d.bags -m MISVM --positive active -o d.model")[0] == 0
    code, out, err = bagwise("explain d.model d.bags --report r.html --json")
    assert code == 0, err
    assert "Positive label: active" in err
    assert "Key instance found in 12 of the 12 bags" in err
    assert json.loads(out)["key_success"] == 1.0
    page = Page((named / "r.html").read_text(encoding="utf-8"))
    assert page.facts["Positive class"] == "active"
    assert page.tiles["key instance found"][0] == "100.0 %"


@pytest.fixture
def mixed(workshop):
    """Molecules of which a third cannot be told apart, three with the label 0 for each 1."""
    rng = np.random.default_rng(5)
    code = (np.arange(36) % 4 == 0).astype(int)
    matrix = rng.normal(size=(108, 2))
    matrix[::3] += 3.0 * (code * (np.arange(36) % 3 > 0))[:, None]
    offsets = 3 * np.arange(37)
    for name, labels in {"coded": (0, 1), "words": ("z", "a"), "numbers": (1, 2)}.items():
        Bags(matrix, offsets, labels=np.array(labels)[code]).write(f"{name}.bags")
    return workshop


@pytest.mark.parametrize(
    "scoring", ["f1", "precision", "recall", "jaccard", "average_precision", "roc_auc"]
)
@pytest.mark.parametrize("model", ["MISVM", "MIKernelSVM"])
def test_scores_follow_the_positive_label(mixed, bagwise, scoring, model):
    def values(data, *more):
        code, out, err = bagwise(
            f"fit {data}.bags -m {model} --cv 3 --scoring {scoring} --json", *more
        )
        assert code == 0, err
        return json.loads(out)["cross_validation"]["values"]

    expected = values("coded")
    assert values("words", "--positive", "a") == pytest.approx(expected)
    assert values("numbers", "--positive", "2") == pytest.approx(expected)
    if model == "MIKernelSVM" and scoring != "roc_auc":
        assert values("numbers", "--positive", "1") != pytest.approx(expected)


def test_choosing_follows_the_positive_label(mixed, bagwise):
    line = "-m MIKernelSVM --grid C=0.01,1,100 --scoring f1 --json -o x.model"
    answers = [
        json.loads(bagwise(f"fit {data} {line}")[1])
        for data in ("coded.bags", "words.bags --positive a", "numbers.bags --positive 2")
    ]
    for answer in answers[1:]:
        assert answer["model"]["parameters"] == answers[0]["model"]["parameters"]
        assert answer["search"]["mean"] == pytest.approx(answers[0]["search"]["mean"])


def test_the_scored_label_is_said(mixed, bagwise):
    line = "-m MIKernelSVM --cv 3 --scoring f1 --positive z"
    code, out, err = bagwise(f"fit words.bags {line}")
    assert (code, "changes nothing" in err) == (0, False)
    assert "Positive label: z" in out


@pytest.mark.parametrize("data", ["words", "numbers"])
@pytest.mark.parametrize("option", ["--cv 3", "--grid C=1,10 -o x.model"])
def test_a_score_does_not_guess(mixed, refused, data, option):
    first, second = ("a", "z") if data == "words" else ("1", "2")
    line = refused(f"fit {data}.bags -m MIKernelSVM --scoring f1 {option}")
    assert f"--scoring f1 is about one of the labels {first} and {second}" in line
    assert f"--positive {first} or --positive {second}" in line


def test_scores_of_probabilities_are_refused(mixed, refused):
    line = refused("fit coded.bags -m MISVM --cv 3 --scoring neg_brier_score")
    assert "'neg_brier_score' needs predict_proba, which MISVM does not have" in line


def test_scores_for_two_labels_are_refused_with_three(workshop, refused):
    bags = Bags.read("molecules.csv", bag="molecule", label="active")
    y = np.arange(len(bags)) % 3
    Bags(bags.instances, bags.offsets, labels=y).write("three.bags")
    line = refused("fit three.bags -m SIL --cv 3 --scoring f1")
    assert "f1 is about one of two labels, and there are 3 labels: choose f1_macro" in line
