import json

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import bagwise as library
from bagwise import Bags
from bagwise.datasets import load_digit_bags, make_three_class_bags
from bagwise.svm import SIL
from cli.tables import csv_rows

DIGITS = "digits --read n_bags=20"
LEARNED_FROM = "These are the bags it learned from"
MOLECULES = "molecules.csv --bag molecule --label active"


def save_sil(path, bags, y):
    library.save(SIL().fit(bags, y), path)


@pytest.fixture
def digits_model(workshop):
    data = load_digit_bags(20)
    save_sil("d.model", data.bags, data.y)
    return data


def test_two_classes(digits_model, bagwise):
    code, out, err = bagwise(f"predict d.model {DIGITS}")
    model = library.load("d.model")
    rows = csv_rows(out)
    assert code == 0
    assert [row["bag"] for row in rows] == digits_model.bags.bag_names.tolist()
    assert [int(row["predicted"]) for row in rows] == model.predict(digits_model.bags).tolist()
    scores = [float(row["score"]) for row in rows]
    assert scores == model.decision_function(digits_model.bags).tolist()
    accuracy = f"{model.score(digits_model.bags, digits_model.y):.1%} of 20 bags"
    assert err == f"Accuracy: {accuracy}. {LEARNED_FROM}: expect less on others.\n"


def test_three_classes_and_a_file(workshop, bagwise):
    data = make_three_class_bags(random_state=0)
    names = np.array(["a", "b", "c"])[data.y]
    Bags(data.bags.instances, data.bags.offsets, labels=names).write("t.bags")
    save_sil("t.model", data.bags, names)
    code, out, err = bagwise("predict t.model t.bags -o p.csv")
    assert (code, out) == (0, "")
    assert "Wrote p.csv" in err
    rows = csv_rows((workshop / "p.csv").read_text())
    assert list(rows[0]) == ["bag", "predicted", "score a", "score b", "score c"]
    for row in rows:
        scores = {name: float(row[f"score {name}"]) for name in "abc"}
        assert row["predicted"] == max(scores, key=scores.get)


def test_json(digits_model, workshop, bagwise):
    code, out, _ = bagwise(f"predict d.model {DIGITS} --json -o p.csv")
    answer = json.loads(out)
    assert code == 0
    assert set(answer) == {
        *("schema", "command", "model", "data", "classes", "accuracy", "metric", "bags", "output"),
        "learned_from",
    }
    assert answer["classes"] == [0, 1]
    assert answer["output"] == "p.csv"
    rows = csv_rows((workshop / "p.csv").read_text())
    assert [bag["score"] for bag in answer["bags"]] == [float(row["score"]) for row in rows]


@pytest.mark.parametrize(
    ("data", "n_seen", "said"),
    [
        ("known.bags", 20, f". {LEARNED_FROM}: expect less on others."),
        ("both.bags", 20, ". 20 of these are bags it learned from: expect less on others."),
        ("new.bags", 0, ""),
    ],
)
@pytest.mark.parametrize("scale", ["--scale", "--no-scale"])
def test_bags_it_learned_from(workshop, bagwise, data, n_seen, said, scale):
    bags = load_digit_bags(30).bags
    bags[5:25].write("known.bags")
    bags.write("both.bags")
    bags[25:].write("new.bags")
    assert bagwise(f"fit known.bags -m SIL -o d.model {scale}")[0] == 0
    _, out, err = bagwise(f"predict d.model {data} --json")
    assert json.loads(out)["learned_from"] == n_seen
    assert err.rstrip("\n").endswith(f" bags{said}")


def test_a_model_that_cannot_tell(digits_model, workshop, bagwise):
    model = library.load("d.model")
    del model._bag_digests
    library.save(model, "d.model")
    _, out, err = bagwise(f"predict d.model {DIGITS} --json")
    assert json.loads(out)["learned_from"] is None
    assert err.endswith(" of 20 bags\n")
    assert bagwise(f"explain d.model {DIGITS} --report r.html")[0] == 0
    assert "does not tell which bags" in (workshop / "r.html").read_text()


def test_label_lists(workshop, bagwise):
    assert bagwise("fit photos.csv -m SIL -o p.model")[0] == 0
    code, out, err = bagwise("predict p.model photos.csv")
    assert code == 0
    assert "Labels are named as in photos.csv" in err
    rows = csv_rows(out)
    assert list(rows[0]) == ["bag", "predicted", "score Ann", "score Bob", "score Cy"]
    for row in rows:
        wanted = [name for name in ("Ann", "Bob", "Cy") if float(row[f"score {name}"]) > 0]
        assert row["predicted"] == ";".join(wanted)
    code, out, err = bagwise(
        "predict p.model photos.csv --read label=false --read features=x1,x2 --json"
    )
    assert code == 0
    assert "counted from 0" in err
    assert json.loads(out)["classes"] == ["0", "1", "2"]
    assert json.loads(out)["accuracy"] is None


def test_hostile_bag_names(workshop, bagwise):
    names = ['=HYPERLINK("x")', "two\nlines", "a,b", "\x1b[31mred"]
    bags = Bags(np.arange(4.0)[:, None], [0, 1, 2, 3, 4], bag_names=names, labels=[0, 0, 1, 1])
    bags.write("h.bags")
    save_sil("h.model", bags, bags.labels)
    _, out, _ = bagwise("predict h.model h.bags")
    assert [row["bag"] for row in csv_rows(out)] == [f"'{names[0]}", *names[1:]]
    _, out, _ = bagwise("explain h.model h.bags")
    assert "\x1b" not in out
    assert len(out.splitlines()) == 5


def test_width_of_the_data(workshop, digits_model, refused):
    np.savez("two.npz", X=np.ones((3, 2)), offsets=[0, 1, 3])
    line = refused("predict d.model two.npz")
    assert line == "bagwise: the model takes instances with 64 features, and two.npz has 2."
    assert "molecules.csv has no column 'pixel_0_0'" in refused(f"predict d.model {MOLECULES}")


def test_names_of_the_features(workshop, bagwise, refused):
    assert bagwise(f"fit {MOLECULES} -m SIL -o m.model")[0] == 0
    bags = Bags.read("molecules.csv", bag="molecule", label="active")
    bags.map_instances(lambda X: X, feature_names=["x1", "z2"]).write("other.bags")
    assert "feature 1 was 'x2' and is 'z2'" in refused("predict m.model other.bags")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "is not a bagwise model file"),
        (b"bag,y,x\na,1,2\n", "is not a bagwise model file"),
        (bytes(1000), "'no.model' has a header that is not JSON"),
    ],
)
def test_model_file_that_is_none(workshop, refused, content, part):
    (workshop / "no.model").write_bytes(content)
    assert part in refused(f"predict no.model {DIGITS}")


def test_damaged_model_file(digits_model, workshop, refused):
    whole = (workshop / "d.model").read_bytes()
    (workshop / "d.model").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "'d.model'" in refused(f"predict d.model {DIGITS}")
    (workshop / "d.model").write_bytes(whole[:-1])
    assert "'d.model'" in refused(f"predict d.model {DIGITS}")


def test_other_models(workshop, refused):
    library.save(StandardScaler().fit([[0.0], [1.0]]), "s.model")
    line = refused(f"predict s.model {DIGITS}")
    assert "holds a StandardScaler, which is neither classifier nor clusterer" in line
    library.save(SIL(), "u.model")
    assert "holds a SIL that has not been fitted" in refused(f"predict u.model {DIGITS}")


def test_missing_model_file(workshop, refused):
    assert refused(f"predict no.model {DIGITS}") == "bagwise: no.model: No such file or directory"
