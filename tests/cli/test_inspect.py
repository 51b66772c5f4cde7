import json
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from bagwise import Bags


def test_json(workshop, bagwise):
    (workshop / "t.csv").write_text(
        "bag,y,x,c,z\na,1,1,5,0\na,1,1,5,-0\nb,0,3,5,1\na,1,2,5,2\nc,0,1,5,0\n"
    )
    code, out, err = bagwise("inspect t.csv --json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert set(answer) == {
        *("schema", "command", "path", "format", "compression", "bytes", "guessed", "bags"),
        *("instances", "features", "dtype", "sparse", "bag_sizes", "labels", "label_lists"),
        *("feature_names", "bag_names", "instance_names", "instance_labels"),
        *("constant_features", "duplicate_instances", "missing_values"),
    }
    assert (answer["bags"], answer["instances"], answer["features"]) == (3, 5, 3)
    assert answer["bytes"] == (workshop / "t.csv").stat().st_size
    assert answer["bag_sizes"] == {
        "smallest": 1,
        "median": 1.0,
        "largest": 3,
        "histogram": [
            {"from": 1, "to": 1, "bags": 2},
            {"from": 2, "to": 2, "bags": 0},
            {"from": 3, "to": 3, "bags": 1},
        ],
    }
    assert answer["labels"] == [
        {"label": 0, "name": None, "bags": 2},
        {"label": 1, "name": None, "bags": 1},
    ]
    assert answer["constant_features"] == ["c"]
    assert answer["duplicate_instances"] == 2
    assert answer["missing_values"] == 0
    assert answer["feature_names"] == ["x", "c", "z"]


def test_text(workshop, bagwise):
    code, out, _ = bagwise("inspect photos.csv")
    assert code == 0
    for part in ("csv, ", "bag: column 'bag'", "24 bags, 30 instances", "lists; bags with each"):
        assert part in out
    assert out.rstrip().endswith("#")
    assert "Ann: 10, Bob: 10, Cy: 10" in out


def test_large_file_is_not_kept(workshop, bagwise, monkeypatch):
    _, out, _ = bagwise("inspect photos.csv --json")
    whole = json.loads(out)
    monkeypatch.setattr("bagwise.cli._inspect._WHOLE_BYTES", 10)
    monkeypatch.setattr("bagwise.io.BagFile.read", None)
    code, out, _ = bagwise("inspect photos.csv --json")
    passed = json.loads(out)
    assert code == 0
    for key in ("constant_features", "duplicate_instances", "missing_values"):
        assert passed[key] is None
    assert passed["bag_sizes"] == {**whole["bag_sizes"], "histogram": None}
    differing = {"constant_features", "duplicate_instances", "missing_values", "bag_sizes"}
    for key in set(whole) - differing:
        assert passed[key] == whole[key]
    assert bagwise("inspect photos.csv")[0] == 0


def test_wide_histogram(workshop, bagwise):
    sizes = np.r_[1, 100, 57, 57]
    Bags(np.zeros((sizes.sum(), 1)), np.append(0, sizes.cumsum())).write("w.bags")
    _, out, _ = bagwise("inspect w.bags --json")
    histogram = json.loads(out)["bag_sizes"]["histogram"]
    assert len(histogram) == 10
    assert (histogram[0]["from"], histogram[-1]["to"]) == (1, 100)
    assert sum(part["bags"] for part in histogram) == 4
    for before, after in pairwise(histogram):
        assert after["from"] == before["to"] + 1
    for part in histogram:
        assert part["bags"] == np.sum((sizes >= part["from"]) & (sizes <= part["to"]))


def test_sparse(workshop, bagwise):
    matrix = sparse.csr_array(np.array([[0.0, 2, 1], [0, 2, 0], [0, 2, 3]]))
    Bags(matrix, [0, 1, 3]).write("s.bags")
    code, out, _ = bagwise("inspect s.bags --json")
    answer = json.loads(out)
    assert code == 0
    assert answer["sparse"]
    assert answer["constant_features"] == [0, 1]
    assert answer["duplicate_instances"] is None
    assert answer["labels"] is None


@pytest.mark.parametrize("data", ["digits", "digits --read multilabel=true"])
def test_named_data(workshop, bagwise, data):
    code, out, _ = bagwise(f"inspect {data}")
    assert code == 0
    assert "200 bags" in out
    assert "instance labels" in out
