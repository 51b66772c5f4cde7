import json

import numpy as np
import pytest

import bagwise as library
from bagwise.cli._models import FittedModel
from bagwise.datasets import load_digit_bags
from bagwise.metrics import make_instance_scorer
from bagwise.svm import SIL, MIKernelSVM

DIGITS = "digits --read n_bags=30"
MOLECULES = "molecules.csv --bag molecule --label active"


@pytest.fixture
def data(workshop):
    return load_digit_bags(30)


@pytest.mark.parametrize("cls", [SIL, MIKernelSVM])
def test_key_instances_are_those_of_the_model(data, cls, bagwise):
    model = cls(C=100.0).fit(data.bags, data.y)
    library.save(model, "d.model")
    code, out, _ = bagwise(f"explain d.model {DIGITS} --top 99 --json")
    assert code == 0
    answer = json.loads(out)
    assert [bag["key"]["instance"] for bag in answer["bags"]] == model.key_instances(
        data.bags
    ).tolist()
    scorer = make_instance_scorer("key_instance_success_rate", positive=3)
    assert answer["key_success"] == pytest.approx(scorer(model, data.bags, data.y))
    scores = model.instance_decision_function(data.bags)
    for i, bag in enumerate(answer["bags"]):
        first, last = data.bags.offsets[i : i + 2]
        told = [bag["key"], *bag["next"]]
        assert sorted(part["instance"] for part in told) == list(range(last - first))
        values = [part["score"] for part in told]
        assert values in (sorted(values), sorted(values, reverse=True))
        for part in told:
            assert part["score"] == scores[first + part["instance"]]
            assert part["name"] == data.bags.instance_names[first + part["instance"]]


def test_pipeline_scores_instances(data, bagwise):
    assert bagwise(f"fit {DIGITS} -m SIL -o d.model")[0] == 0
    pipeline = library.load("d.model")
    model = FittedModel(pipeline)
    inner = pipeline[:-1].transform(data.bags)
    np.testing.assert_array_equal(
        model.instance_decision_function(data.bags),
        pipeline[-1].instance_decision_function(inner),
    )
    np.testing.assert_array_equal(
        model.decision_function(data.bags), pipeline.decision_function(data.bags)
    )
    np.testing.assert_array_equal(  # of other bags too
        model.decision_function(data.bags[5:9]), pipeline.decision_function(data.bags[5:9])
    )
    assert model.name == "SIL"


def test_text(data, bagwise):
    library.save(SIL().fit(data.bags, data.y), "d.model")
    code, out, err = bagwise(f"explain d.model {DIGITS} --top 1")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) == 31
    assert lines[0].split()[:3] == ["bag", "predicted", "score"]
    assert lines[1].startswith("bag 00  ")
    assert "image " in lines[1]
    assert all(line.count("(") <= 2 for line in lines[1:])  # the label's name and one instance
    assert "Accuracy: " in err
    assert "Key instance found in" in err


def test_label_lists(workshop, bagwise):
    assert bagwise("fit photos.csv -m SIL -o p.model -p C=10")[0] == 0
    code, out, _ = bagwise("explain p.model photos.csv --json")
    assert code == 0
    answer = json.loads(out)
    assert {bag["bag"] for bag in answer["bags"]} == {f"p{i:02}" for i in range(24)}
    assert {bag["predicted"] for bag in answer["bags"]} == {"Ann", "Bob", "Cy"}


def test_report(data, workshop, bagwise):
    library.save(SIL().fit(data.bags, data.y), "d.model")
    code, out, err = bagwise(f"explain d.model {DIGITS} --report r.html --json")
    assert code == 0
    page = (workshop / "r.html").read_text(encoding="utf-8")
    assert json.loads(out)["report"] == {"path": "r.html", "bytes": len(page.encode())}
    assert "SIL on digits" in page
    assert "bagwise explain d.model digits --read n_bags=30 --report r.html" in page
    assert "a 3" in page
    assert "Report: r.html" in err


def test_report_of_any_data(workshop, bagwise):
    assert bagwise(f"fit {MOLECULES} -m SIL -o m.model")[0] == 0
    code, _, _ = bagwise(f"explain m.model {MOLECULES} --report r.html")
    assert code == 0
    page = (workshop / "r.html").read_text(encoding="utf-8")
    assert "SIL on molecules.csv" in page
    assert "m07" in page


def test_report_without_labels(workshop, bagwise):
    assert bagwise(f"fit {MOLECULES} -m SIL -o m.model")[0] == 0
    unlabelled = "molecules.csv --bag molecule --read features=x1,x2"
    code, out, _ = bagwise(f"explain m.model {unlabelled} --report r.html --json")
    assert code == 0
    predicted = [bag["predicted"] for bag in json.loads(out)["bags"]]
    page = (workshop / "r.html").read_text(encoding="utf-8")
    for label in (0, 1):
        assert f"“{label}” to <strong>{predicted.count(label)}</strong>" in page
    assert "true labels are not known" in page


def test_report_of_label_lists(workshop, bagwise):
    assert bagwise("fit photos.csv -m SIL -o p.model -p C=10")[0] == 0
    code, out, _ = bagwise("explain p.model photos.csv --report r.html --json")
    assert code == 0
    page = (workshop / "r.html").read_text(encoding="utf-8")
    value = json.loads(out)["accuracy"]
    assert f"average precision is <strong>{100 * value:.1f}\u202f%" in page
    assert all(f"“{name}” to" in page for name in ("Ann", "Bob", "Cy"))


def test_report_of_labels_of_another_kind(workshop, bagwise, refused):
    assert bagwise("fit photos.csv -m SIL -o p.model -p C=10")[0] == 0
    line = refused(f"explain p.model {MOLECULES} --report r.html")
    assert "needs an indicator matrix of label lists" in line
    assert not (workshop / "r.html").exists()


def test_labels_that_the_model_does_not_know(workshop, bagwise, refused):
    assert bagwise(f"fit {MOLECULES} -m SIL -o m.model")[0] == 0
    text = (workshop / "molecules.csv").read_text().replace("m00,0", "m00,7")
    (workshop / "more.csv").write_text(text)
    line = refused("explain m.model more.csv --bag molecule --label active --report r.html")
    assert "not fitted on the label(s) 7" in line


def test_bad_report_path(data, refused):
    library.save(SIL().fit(data.bags, data.y), "d.model")
    line = refused(f"explain d.model {DIGITS} --report no/r.html")
    assert "of --report does not exist" in line


def test_method_without_instance_scores(data, refused, monkeypatch):
    def none(self, bags):
        raise AttributeError("no scores")

    library.save(SIL().fit(data.bags, data.y), "d.model")
    monkeypatch.setattr(SIL, "key_instances", none)
    assert "SIL scores bags only" in refused(f"explain d.model {DIGITS}")
