import re

import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score

from bagwise import Bags
from bagwise.inspection import MethodCard, assess, report, write_report
from bagwise.inspection._gallery import MAX_INSTANCES
from bagwise.solvers import Certificate, Status
from inspection.judges import BagsOnly, FirstFeature, LabelLists, ThreeClasses
from inspection.pages import Page

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028'\"&$title"


@pytest.fixture
def bags():
    values = np.random.default_rng(0).normal(size=(60, 3))
    return Bags(values, np.arange(0, 61, 3))


@pytest.fixture
def y(bags):
    return (np.arange(len(bags)) % 2).astype(int)


def card(name, **changes):
    certificate = Certificate(objective=2.0, status=Status.CONVERGED, n_iter=7, lower_bound=1.5)
    values = {"n_right": 15, "n_bags": 20, "n_found": 3, "n_key_bags": 4, "fit_seconds": 0.25}
    return MethodCard(name=name, certificate=certificate, **values | changes)


def test_page_is_sound_html_without_addresses(bags, y):
    text = report(FirstFeature(), bags, y, is_key=bags.instances[:, 0] > 1)
    page = Page(text)
    assert text.isprintable() or "\n" in text
    for name, value in page.attributes:
        assert name not in {"onclick", "onload", "onerror"}
        if name in {"src", "href"}:
            assert value.startswith(("data:", "#"))
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!data:image/png;base64,)", text)
    assert {"main", "h1", "h2", "svg", "table", "noscript"} <= set(page.tags)
    assert dict(page.attributes)["lang"] == "en"


def test_first_sentence_has_score_interval_and_baseline(bags, y):
    model = FirstFeature()
    own = assess(model, bags, y)
    low, high = own.interval
    text = " ".join(Page(report(model, bags, y, task="find it", bags_name="test bags")).texts)
    text = " ".join(text.split()).replace("\u202f", " ")
    assert f"learned to find it. It gives the right label to {own.accuracy:.1%}"[:-1] in text
    assert f"95 % interval {100 * low:.1f} to {100 * high:.1f} %" in text
    assert "always answering “0” would give 50.0 %" in text


def test_data_of_the_gallery(bags, y):
    model = FirstFeature()
    is_key = np.arange(bags.n_instances) % 3 == 0
    data = Page(report(model, bags, y, is_key=is_key, label_names=["no", "yes"])).data
    assert data["labels"] == ["no", "yes"]
    assert [bag["name"] for bag in data["bags"]] == [f"bag {i}" for i in range(20)]
    np.testing.assert_array_equal([bag["truth"] for bag in data["bags"]], y)
    np.testing.assert_array_equal([bag["predicted"] for bag in data["bags"]], model.predict(bags))
    np.testing.assert_array_equal([bag["key"] for bag in data["bags"]], model.key_instances(bags))
    scores = model.decision_function(bags)
    np.testing.assert_allclose([bag["score"] for bag in data["bags"]], scores, rtol=1e-3)
    np.testing.assert_allclose(data["instances"]["scores"], bags.instances[:, 0], rtol=1e-3)
    assert data["instances"]["isKey"] == "100" * 20
    assert data["content"]["columns"] == 8  # of 60 pictures


@pytest.mark.parametrize("kind", ["picture", "svg", "text"])
def test_hostile_names_stay_text(kind):
    made = {"picture": np.zeros((2, 2)), "svg": f"<svg>{HOSTILE}</svg>", "text": HOSTILE}[kind]
    bags = Bags(
        [[1.0], [-1.0]],
        [0, 1, 2],
        bag_names=[HOSTILE, "b"],
        instance_names=[HOSTILE, "b"],
        instance_labels=[HOSTILE, "b"],
    )
    page = Page(
        report(
            FirstFeature(),
            bags,
            [1, 0],
            render=lambda features, row: made,
            cards=[card(HOSTILE, parameters=HOSTILE)],
            title=HOSTILE,
            task=HOSTILE,
            bags_name=HOSTILE,
            label_names=[HOSTILE, HOSTILE + "2"],
            description=HOSTILE,
            facts={HOSTILE: HOSTILE},
        )
    )
    assert len(page.scripts) == 2
    assert "img" not in page.tags
    assert page.data["bags"][0]["name"] == HOSTILE
    assert page.data["instances"]["names"][0] == HOSTILE
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert sum(HOSTILE in text for text in page.texts) >= 6


def test_only_our_script_may_run(bags, y):
    from base64 import b64encode
    from hashlib import sha256

    page = Page(report(FirstFeature(), bags, y))
    (policy,) = (value for name, value in page.attributes if name == "content" and "src" in value)
    code = page.scripts[1][1]
    assert f"script-src 'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert len(code.encode()) <= 15_000


def test_large_data_are_sampled_and_it_is_said():
    rng = np.random.default_rng(0)
    n_bags = 1200
    bags = Bags(rng.normal(size=(5 * n_bags, 40)), np.arange(0, 5 * n_bags + 1, 5))
    y = rng.integers(0, 2, n_bags)
    text = report(FirstFeature(), bags, y, max_bags=1000, max_bytes=200_000)
    assert len(text.encode()) <= 200_000
    data = Page(text).data
    assert f"shows {len(data['bags']):,} of the 1,200 bags" in text
    margins = np.array([bag["margin"] for bag in data["bags"]])
    every = FirstFeature().decision_function(bags) * np.where(y == 1, 1, -1)
    np.testing.assert_allclose(
        [margins.min(), margins.max()], [every.min(), every.max()], rtol=1e-3
    )
    np.testing.assert_allclose(np.median(margins), np.median(every), atol=0.05)


def test_large_bags_show_their_key_and_strongest_instances():
    values = np.concatenate([np.linspace(-1, 0.5, 499), [9.0]])
    bags = Bags(values[:, None], [0, 500])
    data = Page(report(FirstFeature(), bags, [1])).data
    (bag,) = data["bags"]
    assert (bag["size"], bag["shown"]) == (500, MAX_INSTANCES)
    assert data["instances"]["scores"][bag["key"]] == 9.0
    kept = np.sort(np.abs(values))[-MAX_INSTANCES:]
    np.testing.assert_allclose(np.sort(np.abs(data["instances"]["scores"])), kept, rtol=1e-3)
    np.testing.assert_allclose(data["instances"]["scores"], values[bag["places"]], rtol=1e-3)


def test_tables_of_methods(bags, y):
    endless = Certificate(
        objective=1.0, status=Status.MAX_ITER, n_iter=9, history=np.geomspace(5, 1, 20)
    )
    cards = [
        card("Good", parameters="C = 1", cv_accuracy=0.9),
        MethodCard(name="Slow", n_right=10, n_bags=20, certificate=endless),
    ]
    text = report(FirstFeature(), bags, y, cards=cards)
    page = " ".join(" ".join(Page(text).texts).split())
    for part in ("Good", "C = 1", "75.0", "90.0", "0.250", "converged", "5.0e-01", "not known"):
        assert part in page
    assert "stopped: more iterations needed" in page
    assert "objective above its last value" in page


def test_card_of_the_estimator_is_not_doubled(bags, y):
    cards = [card("FirstFeature"), card("Other")]
    text = report(FirstFeature(), bags, y, cards=cards)
    assert text.count("<th scope='row'>FirstFeature") == 2  # once in each table
    assert "75.0" in text


@pytest.mark.parametrize("known", [True, False])
def test_name_of_the_estimator(bags, y, known):
    text = report(FirstFeature(), bags, y if known else None, name="Wrapped")
    assert "Wrapped" in " ".join(Page(text).texts)
    assert "FirstFeature" not in text


def test_three_classes(bags):
    labels = np.array(["ant", "bee", "cat"])[np.arange(len(bags)) % 3]
    page = Page(report(ThreeClasses(), bags, labels))
    assert page.data["labels"] == ["ant", "bee", "cat"]
    assert not page.data["binary"]
    assert sum(name == "class" and value == "chart" for name, value in page.attributes) == 1


def test_method_without_instance_scores(bags, y):
    data = Page(report(BagsOnly(), bags, y, is_key=np.zeros(60, bool))).data
    assert data["instances"]["scores"] is None
    assert {bag["key"] for bag in data["bags"]} == {-1}


@pytest.mark.parametrize("value", [0.0, 1e-150, 1e150])
def test_extreme_scores(value):
    bags = Bags([[value], [-value], [value]], [0, 1, 2, 3])
    Page(report(FirstFeature(), bags, [1, 0, 0]))


def test_without_labels(bags):
    certified = FirstFeature()
    certified.result_ = card("any").certificate
    page = Page(report(certified, bags, label_names=["no", "yes"], facts={"Seed": "7"}))
    text = page.words
    n_yes = int(certified.predict(bags).sum())
    assert 10 < n_yes < 20  # so that it is told first
    assert f"FirstFeature gives “yes” to {n_yes} and “no” to {20 - n_yes} of 20 bags." in text
    assert "true labels are not known" in text
    for word in ("accuracy", "baseline", "margin", "All methods", "Right", "Wrong"):
        assert word not in text
    for part in ("converged", "5.0e-01", "Seed", "Data (SHA-256)"):
        assert part in text
    shows = [value for name, value in page.attributes if name == "data-show"]
    assert shows == ["all", "label-0", "label-1", "unsure"]
    assert {bag["truth"] for bag in page.data["bags"]} == {None}
    assert not page.data["judged"]
    assert sum(name == "class" and value == "chart" for name, value in page.attributes) == 1


def test_true_key_instances_without_labels(bags):
    is_key = bags.instances[:, 0] > 1
    n_holding = int(np.logical_or.reduceat(is_key, bags.offsets[:-1]).sum())
    text = Page(report(FirstFeature(), bags, is_key=is_key)).words
    assert f"In {n_holding} of the {n_holding} bags that hold a true key instance" in text


def test_three_classes_without_labels(bags):
    page = Page(report(ThreeClasses(), bags))
    predicted = ThreeClasses().predict(bags)
    for label in ("ant", "bee", "cat"):
        assert f"“{label}” to {(predicted == label).sum()}" in page.words
    np.testing.assert_array_equal(
        [page.data["labels"][bag["predicted"]] for bag in page.data["bags"]], predicted
    )


def test_many_classes_have_no_buttons():
    model = ThreeClasses()
    model.classes_ = np.arange(12)
    page = Page(report(model, Bags(np.eye(12), np.arange(13))))
    assert [value for name, value in page.attributes if name == "data-show"] == ["all", "unsure"]
    assert "“5” to 1 of 12 bags (6 other labels are given as well)." in page.words


@pytest.mark.parametrize("known", [True, False])
def test_label_lists(bags, known):
    model = LabelLists()
    y = np.arange(60).reshape(20, 3) % 2
    page = Page(report(model, bags, y if known else None, label_names=["ant", "bee", "cat"]))
    text = page.words
    predicted, scores = model.predict(bags), model.decision_function(bags)
    top = scores.argmax(axis=1)
    for label, count in zip(("ant", "bee", "cat"), predicted.sum(axis=0), strict=True):
        assert f"“{label}” to {count}" in text
    precision = label_ranking_average_precision_score(y, scores)
    assert (f"average precision is {100 * precision:.1f} %" in text) == known
    assert ("true labels are not known" in text) == (not known)
    told = page.data["bags"]
    assert [bag["predicted"] for bag in told] == [np.flatnonzero(row).tolist() for row in predicted]
    truth = [np.flatnonzero(row).tolist() if known else None for row in y]
    assert [bag["truth"] for bag in told] == truth
    assert [bag["top"] for bag in told] == top.tolist()
    keys = model.key_instances(bags)[np.arange(20), top]
    assert [bag["key"] for bag in told] == keys.tolist()
    np.testing.assert_allclose(
        page.data["instances"]["scores"],
        bags.instances[np.arange(60), np.repeat(top, 3)],
        rtol=1e-3,
    )


@pytest.mark.parametrize("model", [FirstFeature(), LabelLists()])
def test_hostile_labels_stay_text_without_truth(bags, model):
    names = [f"{HOSTILE}{i}" for i in range(len(model.classes_))]
    page = Page(report(model, bags, label_names=names, task=HOSTILE, bags_name=HOSTILE))
    assert len(page.scripts) == 2
    assert "img" not in page.tags
    assert page.data["labels"] == names


def test_nothing_to_show(bags, y):
    with pytest.raises(ValueError, match="Got 0 bags"):
        report(FirstFeature(), bags[:0], y[:0])


def test_file_is_replaced_when_complete(tmp_path, bags, y, monkeypatch):
    path = tmp_path / "r.html"
    size = write_report(path, FirstFeature(), bags, y)
    assert path.stat().st_size == size
    assert path.read_text(encoding="utf-8") == report(FirstFeature(), bags, y)

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_report(path, FirstFeature(), bags, y, title="never")
    assert [file.name for file in tmp_path.iterdir()] == ["r.html"]
    assert path.stat().st_size == size


def test_places_are_one_for_each_instance():
    bags = Bags(np.arange(6.0)[:, None], [0, 2, 6])
    with pytest.raises(
        ValueError, match=r"one number for each of the 6 instances\. Got shape \(2,"
    ):
        report(FirstFeature(), bags, [0, 1], places=[0, 1])
