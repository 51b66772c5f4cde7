import json

import numpy as np
import pytest

from bagwise.base import BagTags
from bagwise.datasets import load_digit_bags
from bagwise.metric import MIMLCA
from bagwise.svm import SIL
from cli.tables import csv_rows


def test_faces_are_named(workshop, bagwise):
    code, out, err = bagwise("annotate photos.csv -m SIL")
    assert code == 0
    given = csv_rows((workshop / "photos.csv").read_text())
    rows = csv_rows(out)
    assert [row["label"] for row in rows] == [row["instance_label"] for row in given]
    assert [row["name"] for row in rows] == [row["instance"] for row in given]
    assert [row["bag"] for row in rows] == [row["bag"] for row in given]
    assert "Right: 100.0% of the instances" in err
    assert "Certificate: converged" in err


def test_rejection(workshop, bagwise):
    _, out, _ = bagwise("annotate photos.csv -m SIL --json")
    scores = [one["score"] for one in json.loads(out)["instances"]]
    threshold = float(np.median(scores))
    code, out, _ = bagwise(f"annotate photos.csv -m SIL --json --reject {threshold}")
    answer = json.loads(out)
    assert code == 0
    for one in answer["instances"]:
        assert (one["label"] is None) == (one["score"] < threshold)
    assert answer["rejected"] == sum(score < threshold for score in scores)
    assert answer["named"] + answer["rejected"] == 30
    assert answer["reject"] == threshold


def test_list_of_the_bag_limits_the_labels(workshop, bagwise):
    line = "annotate digits -m SIL --read n_bags=40 --json"
    data = load_digit_bags(40, multilabel=True)
    _, out, _ = bagwise(line)
    bag = np.repeat(np.arange(40), data.bags.sizes)
    named = np.array([int(one["label"]) for one in json.loads(out)["instances"]])
    assert data.y[bag, named].all()
    model_scores = [one["score"] for one in json.loads(out)["instances"]]
    code, out, _ = bagwise(f"{line} --any-label")
    assert code == 0
    free = [one["score"] for one in json.loads(out)["instances"]]
    assert np.all(np.array(free) >= model_scores)
    accuracy = np.mean(named == data.instance_y)
    _, out, _ = bagwise(line)
    assert json.loads(out)["instance_accuracy"] == pytest.approx(accuracy)


def test_what_mimlca_found_is_kept(workshop, bagwise):
    """A label of a list goes to one instance at most, and the others get none."""
    code, out, _ = bagwise("annotate digits -m MIMLCA --read n_bags=40 --json --no-scale")
    assert code == 0
    data = load_digit_bags(40, multilabel=True)
    model = MIMLCA(random_state=0).fit(data.bags, data.y)
    named = [one["label"] for one in json.loads(out)["instances"]]
    expected = [None if column < 0 else str(column) for column in model.assignments_]
    assert named == expected
    assert None in named
    _, out, _ = bagwise("annotate digits -m MIMLCA --read n_bags=40 --json --no-scale --any-label")
    assert None not in [one["label"] for one in json.loads(out)["instances"]]


def test_bag_without_labels_gets_none(workshop, bagwise):
    (workshop / "few.csv").write_text("bag,label,x\na,A;B,0\na,A;B,5\nb,A,0.1\nc,B,5.1\nd,,5\n")
    code, out, err = bagwise("annotate few.csv -m SIL -o named.csv")
    assert (code, out) == (0, "")
    rows = csv_rows((workshop / "named.csv").read_text())
    assert (rows[-1]["bag"], rows[-1]["label"], rows[-1]["score"]) == ("d", "", "")
    assert "1 none of these" in err


def test_needs_lists(workshop, refused):
    line = refused("annotate molecules.csv --bag molecule --label active -m SIL")
    assert "annotate needs bags with lists of labels" in line
    assert "has no labels" in refused(
        "annotate molecules.csv --bag molecule --read features=x1 -m SIL"
    )


def test_needs_instance_scores(workshop, refused, monkeypatch):
    monkeypatch.setattr(SIL, "__bagwise_tags__", lambda self: BagTags(instance_scores=False))
    assert "SIL scores bags only" in refused("annotate photos.csv -m SIL")
