import json
import os
from dataclasses import replace

import pytest

from bagwise.datasets import _registry, available, info

WITHOUT_ADDRESS = [
    name for name in available() if not info(name).derived and not info(name).origin.files
]


def test_list(workshop, bagwise):
    code, out, err = bagwise("datasets list")
    lines = out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines] == ["name", *available()]
    assert lines[0].split()[-1] == "where"
    assert lines[1].split() == ["musk1", "classification", "92", "476", "166", "2", "download"]
    assert "0 of 27 sets here" in err


def test_list_of_a_task_as_json(workshop, bagwise):
    code, out, _ = bagwise("datasets list --task multilabel --json")
    sets = json.loads(out)["sets"]
    assert code == 0
    assert [one["name"] for one in sets] == available("multilabel")
    for one in sets:
        assert set(one) == {
            *("name", "task", "bags", "instances", "features", "classes", "found", "path"),
        }
        assert one["instances"] == info(one["name"]).n_instances


def test_unknown_task(workshop, refused):
    assert "Did you mean multilabel?" in refused("datasets list --task multilable")


def test_where_sets_are_found(workshop, bagwise, monkeypatch):
    folder, cache = workshop / "data", workshop / "cache"
    folder.mkdir()
    (folder / "fox.npz").touch()
    (cache / "originals" / "musk1").mkdir(parents=True)
    (cache / "originals" / "musk1" / "musk1.data").touch()
    (cache / "tiger.npz").touch()
    (cache / "elephant.npz").touch()
    monkeypatch.setenv("BAGWISE_DATA", str(folder))
    _, out, _ = bagwise("datasets list --json")
    found = {one["name"]: (one["found"], one["path"]) for one in json.loads(out)["sets"]}
    assert found["fox"] == ("folder", str(folder / "fox.npz"))
    assert found["tiger"] == ("cache", str(cache / "tiger.npz"))
    assert found["musk1"] == ("cache", str(cache / "originals" / "musk1"))
    assert found["corel3"] == ("cache", None)  # of a folder and the cache, the less certain
    assert found["musk2"] == ("download", None)
    for name in WITHOUT_ADDRESS:
        assert found[name] == ("none", None)


def test_show(workshop, bagwise):
    code, out, _ = bagwise("datasets show musk1")
    assert code == 0
    flat = " ".join(out.split())
    for part in (info("musk1").title, info("musk1").licence, "musk (47 bags)", "Dietterich"):
        assert " ".join(part.split()) in flat
    assert info("musk1").origin.files[0].url in out
    _, out, _ = bagwise("datasets show news_sci_med")
    assert "multi-instance/text-categorization.rar" in out
    code, out, _ = bagwise("datasets show corel3 --json")
    assert json.loads(out)["set"]["made_of"] == ["fox", "tiger", "elephant"]


@pytest.mark.parametrize("name", available())
def test_every_set_can_be_shown(workshop, bagwise, name):
    code, out, _ = bagwise(f"datasets show {name}")
    assert code == 0
    assert info(name).citation.split()[0] in out


@pytest.mark.parametrize("command", ["show", "fetch"])
def test_unknown_name(workshop, refused, command):
    assert "there is no data set 'musk11'. Did you mean musk1?" in refused(
        f"datasets {command} musk11"
    )
    assert "'digits' is embedded" in refused(f"datasets {command} digits")


def test_fetch(workshop, bagwise, monkeypatch):
    """Downloaded into the cache, read and verified."""
    text = b"a,a_1,1,2,0.\na,a_2,3,4,0.\nb,b_1,5,6.5,1.\n"

    def download(entry, file, folder):
        folder.mkdir(parents=True)
        (folder / file.name).write_bytes(text)

    small = replace(
        info("musk1"), sha256=None, n_bags=2, n_instances=3, n_features=2, label_counts=(1, 1)
    )
    entries = {**_registry.registry(), "musk1": small}
    monkeypatch.setattr(_registry, "registry", lambda: entries)
    monkeypatch.setattr("bagwise.datasets._fetch._download", download)
    code, out, _ = bagwise("datasets fetch musk1 --json")
    answer = json.loads(out)
    assert code == 0
    assert answer["set"]["found"] == "cache"
    assert answer["set"]["path"] == str(workshop / "cache" / "originals" / "musk1")
    code, out, err = bagwise("datasets fetch musk1")
    assert code == 2  # the file is not the one that the registry knows
    assert "SHA-256" in err


def test_fetch_of_what_is_here(bagwise, load_set):
    load_set("musk1")
    code, out, _ = bagwise("datasets fetch musk1")
    assert code == 0
    assert "was here already" in out
    assert os.environ["BAGWISE_DATA"] in out


def test_set_that_is_nowhere(workshop, refused):
    line = refused(f"datasets fetch {WITHOUT_ADDRESS[0]}")
    assert "is not on this machine" in line
    assert "BAGWISE_DATA" in line


def test_group_alone_shows_its_help(bagwise):
    code, out, _ = bagwise("datasets")
    assert code == 0
    assert "fetch" in out
