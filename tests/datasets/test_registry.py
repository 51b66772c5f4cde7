"""The registry: complete, pinned, and with the counts that papers print."""

import re

import numpy as np
import pytest

from bagwise.datasets import available, info

# Table 3 of the M3IC paper: categories, features, bags, instances, bags per class (min, max, mean).
# Its last three numbers for Reuters5 cannot be of 1,061 bags in four classes (89.3 x 4 = 357): they
# belong to another set, and only the bags and instances are compared.
TABLE_3 = {
    "corel3": (3, 230, 300, 1953, 100, 100, 100),
    "scene1": (3, 15, 949, 8541, 268, 341, 316.3),
    "scene2": (3, 15, 935, 8415, 216, 378, 311.7),
    "scene3": (3, 15, 824, 7416, 216, 340, 274.7),
    "scene4": (5, 15, 1543, 13887, 216, 378, 308.6),
    "reuters1": (3, 243, 1316, 3726, 81, 798, 438.7),
    "reuters2": (4, 243, 385, 1779, 73, 109, 96.3),
    "reuters3": (3, 243, 627, 2171, 81, 437, 209),
    "reuters4": (3, 243, 640, 2393, 94, 437, 213.3),
    "reuters5": (4, 243, 1061, 3140, None, None, None),
    "reuters6": (2, 243, 1235, 3409, 437, 798, 617.5),
}
# Table 2, with the class that Reuters5 must have instead of trade.
TABLE_2 = {
    "corel3": "fox tiger elephant",
    "scene1": "desert mountains sea",
    "scene2": "sea sunset trees",
    "scene3": "desert mountains sunset",
    "scene4": "desert mountains sea sunset trees",
    "reuters1": "earn acq money-fx",
    "reuters2": "crude grain trade interest",
    "reuters3": "acq money-fx grain",
    "reuters4": "acq crude trade",
    "reuters5": "earn money-fx crude interest",
    "reuters6": "earn acq",
}


@pytest.mark.parametrize("name", TABLE_3)
def test_derived_sets_have_the_counts_of_the_paper(name):
    entry = info(name)
    classes, features, bags, instances, least, most, mean = TABLE_3[name]
    assert (entry.n_classes, entry.n_features) == (classes, features)
    assert (entry.n_bags, entry.n_instances) == (bags, instances)
    if mean is not None:
        assert (min(entry.label_counts), max(entry.label_counts)) == (least, most)
        assert np.mean(entry.label_counts) == pytest.approx(mean, abs=0.051)


@pytest.mark.parametrize("name", TABLE_2)
def test_derived_sets_have_the_classes_of_the_paper(name):
    assert " ".join(info(name).label_names) == TABLE_2[name]
    assert info(name).task == "clustering"


@pytest.mark.parametrize("name", available())
def test_every_entry_is_complete(name):
    entry = info(name)
    assert all((entry.title, entry.citation, entry.licence))
    assert len(entry.label_counts) == entry.n_classes
    total = sum(entry.label_counts)
    assert total >= entry.n_bags if entry.task == "multilabel" else total == entry.n_bags
    assert (entry.origin is None) == (entry.derived is not None)
    assert entry.description.endswith(entry.licence)


@pytest.mark.parametrize("name", available())
def test_every_address_is_pinned_and_every_file_has_a_checksum(name):
    entry = info(name)
    if entry.sha256 is not None:
        assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
    else:
        assert entry.derived is not None
    if entry.origin is None:
        return
    assert re.fullmatch(r"[0-9a-f]{40}", entry.origin.commit)
    if not entry.origin.files:
        assert "no address" in entry.origin.note
    base = f"https://raw.githubusercontent.com/{entry.origin.repository}/{entry.origin.commit}/"
    for file in entry.origin.files:
        assert file.url == base + file.path
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
    names = [file.name for file in entry.origin.files]
    assert len(set(names)) == len(names)


def test_sets_without_address_are_those_in_archives():
    absent = [n for n in available() if info(n).origin is not None and not info(n).origin.files]
    assert absent == [
        "news_alt_atheism",
        "news_comp_graphics",
        "news_rec_sport_hockey",
        "news_sci_med",
    ]


def test_available_by_task():
    assert set(available("clustering")) == set(TABLE_3)
    assert available("multilabel") == ["miml_scene", "miml_reuters", "birds_hja", "letter_carroll"]
    with pytest.raises(ValueError, match="task must be one of"):
        available("regression")


def test_unknown_names():
    with pytest.raises(ValueError, match=r"no data set 'elefant'. Did you mean 'elephant'\?"):
        info("elefant")
    with pytest.raises(ValueError, match=r"no data set 'qqqqqq'. bagwise.datasets.available\(\)"):
        info("qqqqqq")
