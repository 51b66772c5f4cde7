import csv
import io
import json

import pytest

import bagwise as library
from cli.standins import M3IC

MOLECULES = "molecules.csv --bag molecule --label active"


@pytest.fixture
def with_clusterer(monkeypatch):
    real = library.all_estimators()
    monkeypatch.setattr(library, "all_estimators", lambda: [*real, ("M3IC", M3IC)], raising=False)


def test_clusters(with_clusterer, workshop, bagwise):
    code, out, err = bagwise(f"cluster {MOLECULES} -m m3ic -k 2")
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert code == 0
    assert [row["bag"] for row in rows] == [f"m{i:02}" for i in range(24)]
    assert [int(row["cluster"]) for row in rows] == [i % 2 for i in range(24)]
    assert {row["key instance"] for row in rows[1::2]} == {"0"}
    assert "accuracy 100.0%, NMI 1.000" in err
    assert "Clusters: 0 (12 bags), 1 (12 bags)" in err


def test_json_without_labels(with_clusterer, workshop, bagwise):
    code, out, _ = bagwise(
        "cluster molecules.csv --bag molecule --read features=x1,x2 -m M3IC -p n_clusters=3 "
        "--no-scale --json -o c.csv --seed 2"
    )
    answer = json.loads(out)
    assert code == 0
    assert answer["model"] == {"name": "M3IC", "parameters": {"n_clusters": 3}, "scaled": False}
    assert answer["accuracy"] is None
    assert [part["bags"] for part in answer["clusters"]] == [8, 8, 8]
    assert answer["output"] == "c.csv"
    assert (workshop / "c.csv").read_text().startswith("bag,cluster,key instance\n")


def test_clusters_given_twice(with_clusterer, workshop, refused):
    line = refused(f"cluster {MOLECULES} -m M3IC -k 2 -p n_clusters=3")
    assert "n_clusters is given by --param and by --clusters" in line


def test_classifier_is_none(with_clusterer, workshop, refused):
    assert "SIL is no clusterer. Known: " in refused(f"cluster {MOLECULES} -m SIL")


def test_no_clusterer_at_all(workshop, refused, monkeypatch):
    from bagwise.svm import SIL

    monkeypatch.setattr(library, "all_estimators", lambda: [("SIL", SIL)], raising=False)
    line = refused(f"cluster {MOLECULES} -m M3IC")
    assert line == "bagwise: no clusterer comes with this version of bagwise."
