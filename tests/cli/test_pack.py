import json

import numpy as np
import pytest

from bagwise import Bags
from bagwise.cli._pack import _by_steps
from bagwise.datasets import load_digit_bags

MOLECULES = "molecules.csv --bag molecule --label active"


def test_file(workshop, bagwise):
    code, out, _ = bagwise(f"pack molecules.csv m.bags{MOLECULES.removeprefix('molecules.csv')}")
    assert code == 0
    assert out.startswith("m.bags: 24 bags, 72 instances, 2 features, float64, labels; ")
    store = Bags.open("m.bags")
    wanted = np.loadtxt("molecules.csv", delimiter=",", skiprows=1, usecols=(2, 3))
    np.testing.assert_array_equal(store.instances, wanted)
    assert store.labels.tolist() == [i % 2 for i in range(24)]


def test_set(workshop, bagwise):
    code, out, _ = bagwise("pack digits d.bags --read n_bags=7 --json")
    answer = json.loads(out)
    assert code == 0
    assert answer["store"]["bags"] == 7
    assert answer["store"]["labels"]
    np.testing.assert_array_equal(Bags.open("d.bags").instances, load_digit_bags(7).bags.instances)


def test_store_to_store_and_sparse(workshop, bagwise):
    (workshop / "a.svm").write_text("1 qid:a 1:2 3:4\n0 qid:b 2:1\n")
    assert bagwise("pack a.svm a.bags")[0] == 0
    code, out, _ = bagwise("pack a.bags b.bags --json")
    assert code == 0
    assert json.loads(out)["store"]["sparse"]
    assert Bags.open("b.bags").instances.toarray().tolist() == [[2, 0, 4], [0, 1, 0]]


def test_overwrite(workshop, bagwise, refused):
    assert bagwise("pack digits d.bags --read n_bags=7")[0] == 0
    line = refused("pack digits d.bags")
    assert line == "bagwise: d.bags exists. Choose another name, or replace it with --overwrite."
    assert len(Bags.open("d.bags")) == 7
    assert bagwise("pack digits d.bags --read n_bags=9 --overwrite")[0] == 0
    assert len(Bags.open("d.bags")) == 9


def test_what_is_no_store_is_left_alone(workshop, refused):
    (workshop / "mine").mkdir()
    (workshop / "mine" / "thesis.txt").write_text("precious")
    assert "is not a store of bags" in refused("pack digits mine --overwrite")
    assert "is a file" in refused("pack digits photos.csv --overwrite")
    assert (workshop / "mine" / "thesis.txt").read_text() == "precious"


@pytest.mark.parametrize("target", ["no/m.bags", "photos.csv/m.bags"])
def test_bad_target(workshop, refused, target):
    assert "does not exist" in refused(f"pack digits {target}")


@pytest.mark.parametrize("cell", ["nan", "inf", "", "much"])
@pytest.mark.parametrize("last", ["a", "c"])  # bags in pieces, and whole
def test_bad_cell_is_named_with_file_and_line(workshop, refused, cell, last):
    (workshop / "t.csv").write_text(f"bag,y,x\na,0,1\nb,1,2\nb,1,{cell}\n{last},0,3\n")
    assert refused("pack t.csv t.bags").startswith("bagwise: t.csv:4: column 'x'")
    assert not (workshop / "t.bags").exists()


def test_bad_bag_is_named_with_its_file(workshop, refused):
    np.savez("t.npz", instances=[[1.0], [np.nan]], offsets=[0, 1, 2], bag_names=["a", "b"])
    line = refused("pack t.npz t.bags")
    assert line.startswith("bagwise: t.npz: ")
    assert "bag 1 ('b') holds NaN" in line


def test_bag_that_does_not_fit_the_store_is_named_with_its_folder(workshop, refused):
    (workshop / "slides").mkdir()
    np.save("slides/a.npy", np.ones((2, 2), dtype=np.float32))
    np.save("slides/b.npy", np.ones((1, 2)))
    line = refused("pack slides t.bags")
    assert line.startswith("bagwise: slides: ")
    assert "bag 1 is float64" in line


def test_steps_of_progress_add_up():
    steps = []
    tell = _by_steps(steps.append)
    for done in (3, 5, 2, 9):  # a file that is read again begins again
        tell(done)
    assert np.cumsum(steps).tolist() == [3, 5, 2, 9]
