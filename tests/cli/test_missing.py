"""Missing values, missing labels and columns in another order, on the command line."""

import json

import numpy as np
import pytest

import bagwise as library
from bagwise import Bags
from inspection.pages import Page

HOLES = "holes.csv --bag molecule --label active"


def write_holes(path, columns=("x1", "x2"), seed=0):
    """Write 12 molecules; one conformer of m03 and both of m04 miss a value."""
    rng = np.random.default_rng(seed)
    lines = [",".join(["molecule", "active", *columns])]
    for i in range(12):
        for k in range(2):
            x1, x2 = (rng.normal(size=2) + 8 * (i % 2) * (k == 0)).tolist()
            cells = {"x1": repr(x1), "x2": repr(x2), "note": "seen"}
            if i == 4 or (i, k) == (3, 1):
                cells["x2"] = "NA"
            lines.append(",".join([f"m{i:02}", str(i % 2), *(cells[name] for name in columns)]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def holes(workshop):
    write_holes(workshop / "holes.csv")
    return workshop / "holes.csv"


COMMANDS = ["fit {} -m SIL -o a.model", "cluster {} -m BagKMeans -k 2"]


@pytest.mark.parametrize("command", COMMANDS)
def test_refused_with_the_ways_out(holes, refused, command):
    line = refused(command.format(HOLES))
    assert line.startswith("bagwise: holes.csv:9: column 'x2': the value is missing ('NA'). ")
    assert "--missing impute" in line
    assert "--missing drop" in line
    assert "allow_nan" not in line


def test_impute_is_part_of_the_model(holes, bagwise):
    code, out, err = bagwise(f"fit {HOLES} -m SIL -o a.model --missing impute --json")
    assert code == 0
    assert json.loads(out)["model"]["imputed"]
    assert "3 missing values are filled in" in err
    model = library.load("a.model")
    assert [name for name, _ in model.steps] == ["impute", "scale", "model"]
    bags = Bags.read("holes.csv", bag="molecule", label="active", allow_nan=True)
    known = bags.instances[~np.isnan(bags.instances[:, 1]), 1]
    np.testing.assert_allclose(model[0].transformer_.statistics_[1], known.mean())
    code, out, _ = bagwise(f"predict a.model {HOLES} --json")  # nothing to say any more
    assert code == 0
    scores = [bag["score"] for bag in json.loads(out)["bags"]]
    np.testing.assert_allclose(scores, model.decision_function(bags))


def test_impute_without_scaling_and_with_a_grid(holes, bagwise):
    line = f"fit {HOLES} -m SIL -o a.model --missing impute --no-scale --grid C=0.1,1 --cv 2"
    assert bagwise(line)[0] == 0
    assert [name for name, _ in library.load("a.model").steps] == ["impute", "model"]


def test_drop(holes, bagwise):
    code, out, err = bagwise(f"fit {HOLES} -m SIL -o a.model --missing drop --json")
    assert code == 0
    assert json.loads(out)["data"]["bags"] == 11
    assert "Left out: 3 instances with missing values and 1 bag that had no others." in err
    code, out, _ = bagwise(f"predict a.model {HOLES} --missing drop --json")
    assert "m04" not in [bag["bag"] for bag in json.loads(out)["bags"]]
    assert code == 0


def test_a_model_that_does_not_fill(holes, bagwise, refused):
    assert bagwise(f"fit {HOLES} -m SIL -o a.model --missing drop")[0] == 0
    assert "--missing drop" in refused(f"predict a.model {HOLES}")
    assert "fitted without --missing impute" in refused(f"predict a.model {HOLES} --missing impute")


def test_explain_and_its_report(holes, bagwise):
    assert bagwise(f"fit {HOLES} -m SIL -o a.model --missing impute")[0] == 0
    code, out, err = bagwise(f"explain a.model {HOLES} --report a.html")
    assert code == 0, err
    assert "m04" in out
    code, out, _ = bagwise(f"explain a.model {HOLES} --missing drop --report a.html")
    assert code == 0
    assert "m04" not in out
    assert "--missing drop" in (holes.parent / "a.html").read_text()  # "Reproduce this"


def test_clusters_are_filled_too(holes, bagwise):
    code, out, _ = bagwise(f"cluster {HOLES} -m BagKMeans -k 2 --missing impute --json")
    assert code == 0
    assert json.loads(out)["model"]["imputed"]
    assert len(json.loads(out)["bags"]) == 12


def test_annotate_fills_too(workshop, bagwise):
    text = (workshop / "photos.csv").read_text().splitlines()
    text[1] = ",".join([*text[1].split(",")[:-1], ""])
    (workshop / "photos.csv").write_text("\n".join(text) + "\n")
    assert bagwise("annotate photos.csv -m SIL")[0] == 2
    assert bagwise("annotate photos.csv -m SIL --missing impute")[0] == 0


def test_stores_with_missing_values(holes, bagwise, refused):
    pack = f"pack {HOLES.replace('holes.csv', 'holes.csv h.bags')}"
    assert "--read allow_nan=True" in refused(pack)
    assert bagwise(f"{pack} --read allow_nan=true")[0] == 0
    line = refused("fit h.bags -m SIL -o a.model")
    assert "bag 3 ('m03') holds NaN" in line
    assert "--missing drop" in line
    assert bagwise("fit h.bags -m SIL -o a.model --missing impute")[0] == 0
    assert "missing     3 values" in bagwise("inspect h.bags")[1]


def test_wrong_word(holes, refused):
    line = refused(f"fit {HOLES} -m SIL -o a.model --missing fill")
    assert line == "bagwise: --missing must be impute, drop or error. Got 'fill'."


def test_all_is_missing(workshop, refused):
    (workshop / "t.csv").write_text("bag,y,x\na,0,\nb,1,\n")
    assert "every instance misses a value" in refused("fit t.csv -m SIL -o a.model --missing drop")


def test_a_feature_without_any_value_stays(workshop, bagwise):
    rows = "".join(f"b{i},{i % 2},{i % 2 + i / 100},\n" for i in range(8))
    (workshop / "t.csv").write_text("bag,y,x,z\n" + rows)
    assert bagwise("fit t.csv -m SIL -o a.model --missing impute")[0] == 0
    assert bagwise("predict a.model t.csv")[0] == 0


def test_labels_that_are_missing(workshop, bagwise, refused):
    (workshop / "t.csv").write_text("bag,y,x\na,0,1\nb,1,2\nc,,3\n")
    line = refused("fit t.csv -m SIL -o a.model")
    assert line.startswith("bagwise: t.csv:4: the label is missing. ")
    assert "--read on_missing_label='drop'" in line
    assert bagwise("fit t.csv -m SIL -o a.model --read on_missing_label=drop")[0] == 0


def test_labels_that_are_words_for_missing(workshop, bagwise, refused):
    (workshop / "t.csv").write_text("bag,y,x\na,0,1\nb,1,2\nc,NA,3\n")
    line = refused("fit t.csv -m SIL -o a.model")
    assert line.startswith("bagwise: t.csv:4: the label is missing. Bag 'c' has 'NA'. ")
    assert "If 'NA' is a label, pass --read missing_words=False." in line
    code, out, _ = bagwise("fit t.csv -m SIL -o a.model --read on_missing_label=drop")
    assert (code, "bags per label: 0 1, 1 1" in out) == (0, True)
    code, out, _ = bagwise("fit t.csv -m SIL -o a.model --read missing_words=False")
    assert (code, "bags per label: 0 1, 1 1, NA 1" in out) == (0, True)


# ---------------------------------------------------------------- numbers as the file has them


@pytest.fixture
def far_last(workshop):
    """Ten bags of five; the last row of positive ones is far, and row 3 of every bag is not whole.

    Of bag 0 nothing is left. Positive bags have lists of both labels.
    """
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(50, 2))
    matrix[4::10] += 9.0
    matrix[3::5, 1] = np.nan
    y = 1 - np.arange(10) % 2
    whole = Bags(matrix, 5 * np.arange(11), labels=y, allow_nan=True)
    rest = Bags(
        np.r_[np.full((5, 2), np.nan), matrix],
        5 * np.arange(12),
        labels=np.r_[0, y],
        allow_nan=True,
    )
    whole.write("whole.bags")
    rest.write("rest.bags")
    lines = [
        f"b{i},{'a;b' if y[i] else 'a'},{x},{z}"
        for i in range(10)
        for x, z in matrix[5 * i : 5 * i + 5]
    ]
    (workshop / "lists.csv").write_text("bag,labels,x,z\n" + "\n".join(lines) + "\n")
    return y


def test_explain_numbers_instances_as_the_file_does(far_last, bagwise, workshop):
    assert bagwise("fit whole.bags -m MISVM --missing drop -o a.model")[0] == 0
    code, out, _ = bagwise(
        "explain a.model whole.bags --missing drop --top 9 --json --report r.html"
    )
    assert code == 0
    for bag, label in zip(json.loads(out)["bags"], far_last, strict=True):
        named = [bag["key"]["instance"], *(other["instance"] for other in bag["next"])]
        assert sorted(named) == [0, 1, 2, 4]
        if label:
            assert named[0] == 4
    text = bagwise("explain a.model whole.bags --missing drop")[1].splitlines()
    assert [row.split()[3] for row in text[1::2]] == ["4"] * 5
    told = Page((workshop / "r.html").read_text(encoding="utf-8")).data["bags"]
    assert [bag["places"] for bag in told] == [[0, 1, 2, 4]] * 10


def test_bags_without_names_keep_their_numbers(far_last, bagwise):
    assert bagwise("fit whole.bags -m MISVM --missing drop -o a.model")[0] == 0
    for command in ("predict", "explain"):
        code, out, _ = bagwise(f"{command} a.model rest.bags --missing drop --json")
        assert code == 0
        assert [bag["bag"] for bag in json.loads(out)["bags"]] == [str(i) for i in range(1, 11)]


def test_cluster_and_annotate_number_instances_as_the_file_does(far_last, bagwise):
    code, out, _ = bagwise("cluster whole.bags -m M3IC -k 2 --missing drop --json")
    keys = [bag["key"] for bag in json.loads(out)["bags"]]
    assert (code, 3 in keys) == (0, False)
    assert [key for key, label in zip(keys, far_last, strict=True) if label] == [4] * 5
    code, out, _ = bagwise("annotate lists.csv -m SIL --missing drop --json")
    named = json.loads(out)["instances"]
    assert code == 0
    assert [row["instance"] for row in named] == [0, 1, 2, 4] * 10


# ----------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("columns", [("x2", "x1"), ("note", "x2", "x1"), ("x1", "note", "x2")])
def test_columns_are_taken_by_name(holes, workshop, bagwise, columns):
    assert bagwise(f"fit {HOLES} -m SIL -o a.model --missing impute")[0] == 0
    write_holes(workshop / "other.csv", columns)
    other = HOLES.replace("holes.csv", "other.csv")
    assert bagwise(f"predict a.model {other}")[:2] == bagwise(f"predict a.model {HOLES}")[:2]
    assert bagwise(f"explain a.model {other}")[:2] == bagwise(f"explain a.model {HOLES}")[:2]


def test_columns_of_a_store_are_taken_by_name(workshop, bagwise):
    molecules = "molecules.csv --bag molecule --label active"
    assert bagwise(f"fit {molecules} -m SIL -o a.model")[0] == 0
    bags = Bags.read("molecules.csv", bag="molecule", label="active")
    turned = bags.map_instances(
        lambda X: np.column_stack([X[:, 1], X[:, 0], X[:, 0]]), feature_names=["x2", "x1", "more"]
    )
    turned.write("turned.bags")
    assert bagwise("predict a.model turned.bags")[1] == bagwise(f"predict a.model {molecules}")[1]


def test_a_column_that_is_not_there_is_named(holes, workshop, bagwise, refused):
    assert bagwise(f"fit {HOLES} -m SIL -o a.model --missing impute")[0] == 0
    write_holes(workshop / "other.csv", ("x1",))
    line = refused(f"predict a.model {HOLES.replace('holes.csv', 'other.csv')}")
    assert line == "bagwise: other.csv has no column 'x2', which is a feature of the model."


def test_a_decimal_comma_is_called_by_its_name(workshop, refused):
    (workshop / "t.csv").write_text("bag;y;x\na;0;1,5\n")
    line = refused("inspect t.csv")
    assert "'1,5' has a decimal comma" in line
    assert "features=" not in line


def test_all_models_are_listed(workshop, refused):
    line = refused("fit digits -m zzzz -o a.model")
    known = line.partition("Known: ")[2].rstrip(".").split(", ")
    assert known == [name for name, _ in library.all_estimators()]


def test_files_without_a_row_are_told(workshop, bagwise):
    (workshop / "slides").mkdir()
    for name in "abc":
        np.save(workshop / "slides" / f"{name}.npy", np.ones((2, 2)))
    (workshop / "slides" / "labels.csv").write_text("bag,label\na,0\nb,1\n")
    code, _, err = bagwise("fit slides -m SIL -o a.model")
    assert code == 0
    assert "left out is a file without a row in labels.csv (c.npy)" in err
