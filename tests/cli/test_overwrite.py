"""No command replaces what is the user's own, unless told to."""

import pytest

import bagwise as library

MOLECULES = "molecules.csv --bag molecule --label active"

#: A command, the option that names its output, and what else it reads.
WRITERS = [
    (f"fit {MOLECULES} -m SIL", "-o"),
    (f"predict sil.model {MOLECULES}", "-o"),
    (f"explain sil.model {MOLECULES}", "--report"),
    ("annotate photos.csv -m SIL", "-o"),
    (f"cluster {MOLECULES} -m BagKMeans -k 2", "-o"),
]


@pytest.fixture
def model(workshop, bagwise):
    assert bagwise(f"fit {MOLECULES} -m SIL -o sil.model")[0] == 0
    return workshop / "sil.model"


@pytest.mark.parametrize(("command", "option"), WRITERS)
def test_inputs_and_other_files_are_kept(model, workshop, bagwise, refused, command, option):
    (workshop / "thesis.txt").write_text("precious")
    (workshop / "link.csv").symlink_to(workshop / "molecules.csv")
    before = {path.name: path.read_bytes() for path in workshop.iterdir() if path.is_file()}
    for name in ("molecules.csv", "photos.csv", "link.csv", "thesis.txt"):
        line = refused(f"{command} {option} {name}")
        assert name in line
        assert "--overwrite" in line
    assert before == {path.name: path.read_bytes() for path in workshop.iterdir() if path.is_file()}
    assert bagwise(f"{command} {option} thesis.txt --overwrite")[0] == 0
    assert (workshop / "thesis.txt").read_bytes() != b"precious"
    assert bagwise(f"{command} {option} thesis.txt")[0] == 0  # of its kind now


@pytest.mark.parametrize(("command", "option"), WRITERS[1:3])
def test_the_model_is_an_input(model, refused, command, option):
    before = model.read_bytes()
    assert "sil.model is read by this command" in refused(f"{command} {option} ./sil.model")
    assert model.read_bytes() == before


def test_the_label_table_is_an_input(workshop, bagwise, refused):
    import numpy as np

    (workshop / "slides").mkdir()
    for i in range(4):
        np.save(workshop / "slides" / f"s{i}.npy", [[i % 2, 0], [1, i % 2]])
    rows = "".join(f"s{i},{i % 2}\n" for i in range(4))
    (workshop / "truth.csv").write_text("bag,cluster\n" + rows)
    command = "cluster slides -m BagKMeans -k 2 --label cluster --read label_table=truth.csv -o"
    assert "truth.csv is read by this command" in refused(f"{command} truth.csv")
    assert bagwise(f"{command} new.csv")[0] == 0


def test_a_model_replaces_a_model(model, bagwise):
    assert bagwise(f"fit {MOLECULES} -m MILES -o sil.model")[0] == 0
    assert type(library.load(model)[-1]).__name__ == "MILES"


def test_demo_keeps_other_pages(workshop, refused):
    (workshop / "index.html").write_text("<!doctype html><p>mine")
    assert "index.html exists and is not a report" in refused("demo -o index.html")


def test_a_data_set_has_no_file(workshop, bagwise):
    (workshop / "digits").write_text("")  # the name of the set is not this file
    assert bagwise("predict nothing.model digits -o digits")[0] == 2
    assert bagwise("fit digits -m SIL -o digits --read n_bags=10")[0] == 0


def test_nothing_is_written_into_a_store_that_is_read(workshop, bagwise, refused):
    assert bagwise(f"pack {MOLECULES} tr.bags")[0] == 0
    before = sorted(path.name for path in (workshop / "tr.bags").iterdir())
    line = refused("fit tr.bags -m SIL -o tr.bags/x.model")
    assert "tr.bags/x.model is inside tr.bags, which this command reads" in line
    assert "TARGET tr.bags/x.bags is inside tr.bags" in refused("pack tr.bags tr.bags/x.bags")
    assert sorted(path.name for path in (workshop / "tr.bags").iterdir()) == before


def test_answers_that_were_corrected_are_kept(model, workshop, bagwise, refused):
    command = f"predict sil.model {MOLECULES} -o hand.csv"
    assert bagwise(command)[0] == 0
    assert bagwise(command)[0] == 0
    head, first, *rest = (workshop / "hand.csv").read_text().splitlines()
    bag, label, score = first.split(",")
    edited = "\n".join([head, f"{bag},{1 - int(label)},{score}", *rest, ""])
    (workshop / "hand.csv").write_text(edited)
    assert "hand.csv exists and is not a table as 'bagwise predict' writes it" in refused(command)
    assert (workshop / "hand.csv").read_text() == edited


def test_tables_of_another_command_are_kept(model, bagwise, refused):
    predict = f"predict sil.model {MOLECULES} -o"
    cluster = f"cluster {MOLECULES} -m BagKMeans -k 2 -o"
    annotate = "annotate photos.csv -m SIL -o"
    for mine in (predict, cluster, annotate):
        assert bagwise(f"{mine} t.csv --overwrite")[0] == 0
        for other in {predict, cluster, annotate} - {mine}:
            assert "t.csv exists and is not a table as" in refused(f"{other} t.csv")
        assert bagwise(f"{mine} t.csv")[0] == 0
