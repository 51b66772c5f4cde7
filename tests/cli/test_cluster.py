import json

import numpy as np
import pytest

import bagwise as library
from bagwise.datasets import load_digit_bags
from bagwise.metrics import clustering_accuracy
from cli.tables import csv_rows

MOLECULES = "molecules.csv --bag molecule --label active"
UNLABELLED = "molecules.csv --bag molecule --read features=x1,x2"


def clusters_of(rows, name="cluster"):
    return np.array([int(row[name]) for row in rows])


@pytest.mark.parametrize("model", ["", "-m m3ic", "-m M3IC -p C=2"])
def test_clusters(workshop, bagwise, model):
    code, out, err = bagwise(f"cluster {MOLECULES} -k 2 {model}")
    rows = csv_rows(out)
    assert code == 0
    assert list(rows[0]) == ["bag", "cluster", "key instance"]
    assert [row["bag"] for row in rows] == [f"m{i:02}" for i in range(24)]
    accuracy = clustering_accuracy(np.arange(24) % 2, clusters_of(rows))
    assert f"Against the labels: accuracy {accuracy:.1%}, NMI " in err
    assert accuracy >= 0.9
    assert {row["key instance"] for row in rows[1::2]} == {"0"}  # the conformer far away
    first, second = np.bincount(clusters_of(rows))
    assert f"Clusters: 0 ({first} bags), 1 ({second} bags)" in err
    assert "Certificate: converged" in err


@pytest.mark.parametrize("model", ["BAMIC", "bagkmeans", "CPM3C"])
def test_other_methods(workshop, bagwise, model):
    code, out, err = bagwise(f"cluster {MOLECULES} -m {model} -k 2")
    assert code == 0
    assert len(csv_rows(out)) == 24
    assert ("key instance" in csv_rows(out)[0]) == (model != "BAMIC")
    assert "Certificate: converged" in err


def test_digits_are_those_of_the_estimator(workshop, bagwise):
    code, out, err = bagwise("cluster digits --read n_bags=40 -m M3IC -k 3 --no-scale --seed 5")
    model = library.cluster.M3IC(3, random_state=5).fit(load_digit_bags(40).bags)
    rows = csv_rows(out)
    assert code == 0
    assert clusters_of(rows).tolist() == model.labels_.tolist()
    assert clusters_of(rows, "key instance").tolist() == model.key_instances_.tolist()
    assert "scaled" not in err


def test_json_without_labels(workshop, bagwise):
    code, out, _ = bagwise(
        f"cluster {UNLABELLED} -m BAMIC -p n_clusters=3 --no-scale --json -o c.csv --seed 2"
    )
    answer = json.loads(out)
    assert code == 0
    assert answer["model"] == {
        "name": "BAMIC",
        "parameters": {"n_clusters": 3},
        "scaled": False,
        "imputed": False,
    }
    assert answer["accuracy"] is None
    assert answer["nmi"] is None
    assert [part["cluster"] for part in answer["clusters"]] == [0, 1, 2]
    assert sum(part["bags"] for part in answer["clusters"]) == 24
    assert {bag["key"] for bag in answer["bags"]} == {None}
    assert answer["certificate"]["status"] == "converged"
    assert answer["output"] == "c.csv"
    assert (workshop / "c.csv").read_text().startswith("bag,cluster\n")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("-m M3IC -k 2 -p n_clusters=3", "n_clusters is given by --param and by --clusters"),
        ("-m SIL", "SIL is no clusterer. Known: BagKMeans, BAMIC, CPM3C, M3IC."),
        ("-m M3I", "there is no clusterer 'M3I'. Did you mean M3IC?"),
        ("-k 0", "'--clusters'"),
        ("-k 25", "n_clusters=25 bags. Got n_samples=24"),
        ("-m BAMIC -p distance=mean", "The 'distance' parameter of BAMIC must be a str among"),
        ("-m BAMIC -p balance=1", "BAMIC has no parameter 'balance'. Known: distance, init, "),
    ],
)
def test_bad_request(workshop, refused, options, part):
    assert part in refused(f"cluster {MOLECULES} {options}")


def test_no_clusterer_at_all(workshop, refused, monkeypatch):
    from bagwise.svm import SIL

    monkeypatch.setattr(library, "all_estimators", lambda: [("SIL", SIL)], raising=False)
    line = refused(f"cluster {MOLECULES}")
    assert line == "bagwise: no clusterer comes with this version of bagwise."


def test_empty_cluster_is_one_line(workshop, bagwise):
    (workshop / "same.csv").write_text("bag,x\n" + "a,1\nb,1\nc,1\n")
    code, _, err = bagwise("cluster same.csv --bag bag -m BAMIC -k 2")
    assert code == 0
    assert err.count("warning: BAMIC put bags into 1 of n_clusters=2 clusters") == 1


# ----------------------------------------------------------------------------- saved clusterers


@pytest.fixture
def saved(workshop, bagwise):
    code, out, err = bagwise(f"fit {MOLECULES} -m M3IC -o m.model -p n_clusters=2")
    assert code == 0, err
    return out


def test_fit_needs_no_labels(saved, workshop, bagwise, refused):
    labels = library.load("m.model")[-1].labels_
    first, second = np.bincount(labels)
    assert f"Clusters: 0 ({first} bags), 1 ({second} bags)" in saved
    assert "Certificate: converged" in saved
    assert "Accuracy" not in saved
    code, out, _ = bagwise(f"fit {UNLABELLED} -m M3IC -o u.model -p n_clusters=2 --json")
    assert code == 0
    assert [part["bags"] for part in json.loads(out)["clusters"]] == [first, second]
    np.testing.assert_array_equal(library.load("u.model")[-1].labels_, labels)
    assert "learns without labels" in refused(f"fit {MOLECULES} -m M3IC -o m.model --cv 3")
    assert "learns without labels" in refused(f"fit {MOLECULES} -m M3IC -o m.model --grid C=1,2")


def test_predict(saved, workshop, bagwise):
    code, out, err = bagwise(f"predict m.model {MOLECULES}")
    model, rows = library.load("m.model"), csv_rows(out)
    assert code == 0
    assert list(rows[0]) == ["bag", "predicted", "score 0", "score 1"]
    predicted = clusters_of(rows, "predicted")
    np.testing.assert_array_equal(predicted, model[-1].labels_)
    scores = np.array([[float(row["score 0"]), float(row["score 1"])] for row in rows])
    np.testing.assert_array_equal(scores.argmax(axis=1), predicted)
    accuracy = clustering_accuracy(np.arange(24) % 2, predicted)
    assert f"Clustering accuracy: {accuracy:.1%} of 24 bags" in err
    answer = json.loads(bagwise(f"predict m.model {UNLABELLED} --json")[1])
    assert answer["classes"] == [0, 1]
    assert (answer["accuracy"], answer["metric"]) == (None, None)
    assert [bag["predicted"] for bag in answer["bags"]] == predicted.tolist()


def test_explain(saved, workshop, bagwise, refused):
    code, out, _ = bagwise(f"explain m.model {MOLECULES} --top 1 --json")
    answer, model = json.loads(out), library.load("m.model")[-1]
    assert code == 0
    assert answer["metric"] == "clustering accuracy"
    assert answer["key_success"] is None
    assert [bag["predicted"] for bag in answer["bags"]] == model.labels_.tolist()
    assert [bag["key"]["instance"] for bag in answer["bags"]] == model.key_instances_.tolist()
    assert all(bag["key"]["score"] >= bag["next"][0]["score"] for bag in answer["bags"])
    assert bagwise(f"explain m.model {MOLECULES}")[0] == 0
    line = refused(f"explain m.model {MOLECULES} --report r.html")
    assert line == "bagwise: m.model holds a M3IC, which is a clusterer: reports are about " + (
        "classifiers."
    )
    assert not (workshop / "r.html").exists()


def test_clusters_have_no_names_of_classes(workshop, bagwise):
    code, _, err = bagwise("fit digits --read n_bags=30 -m M3IC -o d.model -p n_clusters=2")
    assert code == 0, err
    code, out, _ = bagwise("explain d.model digits --read n_bags=30")
    assert code == 0
    assert not any(f"({name})" in out for name in load_digit_bags(30).label_names)


def test_bag_clusterer_explains_nothing(workshop, bagwise, refused):
    assert bagwise(f"fit {MOLECULES} -m BAMIC -o b.model")[0] == 0
    assert bagwise(f"predict b.model {MOLECULES}")[0] == 0
    assert "BAMIC scores bags only" in refused(f"explain b.model {MOLECULES}")


def test_annotate_wants_a_classifier(workshop, refused):
    line = refused("annotate photos.csv -m M3IC")
    assert "M3IC is no classifier. Known: " in line
