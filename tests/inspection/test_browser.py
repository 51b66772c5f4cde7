"""The report in a real browser: it shows what it should, and nothing goes wrong."""

import json

import numpy as np
import pytest

from bagwise import Bags
from bagwise.inspection import write_report
from inspection.browser import Browser, find_browser
from inspection.judges import BagsOnly, FirstFeature, LabelLists

pytestmark = pytest.mark.skipif(
    find_browser() is None, reason="no Chromium is installed (Debian: apt-get install chromium)"
)

HOSTILE = "</script><img src=x onerror=document.title='broken'><b>bold</b>"
N_BAGS = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(find_browser(), tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=3 * N_BAGS), rng.uniform(size=(3 * N_BAGS, 4))])
    names = [f"bag {i}" for i in range(N_BAGS - 1)] + [HOSTILE]
    bags = Bags(
        values,
        np.arange(0, 3 * N_BAGS + 1, 3),
        bag_names=names,
        instance_names=[HOSTILE] * (3 * N_BAGS),
    )
    scores = FirstFeature().decision_function(bags)
    return bags, ((scores > 0) ^ (rng.uniform(size=N_BAGS) < 0.3)).astype(int), scores


@pytest.fixture(scope="module")
def page(tmp_path_factory, data):
    """A report whose pictures are a black left half and a white right half."""
    bags, y, _ = data
    half = np.array([[0.0, 1.0]] * 2)
    path = tmp_path_factory.mktemp("report") / "page.html"
    is_key = bags.instances[:, 0] > 1
    write_report(path, FirstFeature(), bags, y, render=lambda x, row: half, is_key=is_key)
    return path.as_uri()


def names(browser):
    return browser.run("[...document.querySelectorAll('.bag h3')].map(e => e.textContent)")


def click(browser, selector):
    browser.run(f"document.querySelector({json.dumps(selector)}).click()")


def show_all(browser):
    browser.run("while (!document.getElementById('more').hidden) more.click()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_opens_in_peace(browser, page, scheme):
    browser.open(page, scheme=scheme)
    assert len(names(browser)) == 24
    assert browser.complaints() == []
    assert browser.requests() == [page]
    colour = browser.run("getComputedStyle(document.body).backgroundColor")
    levels = [int(part) for part in colour.strip("rgb()").split(",")]
    assert (min(levels) > 200) if scheme == "light" else (max(levels) < 60)
    overflow = browser.run("document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0


def test_pictures_show(browser, page):
    browser.open(page)
    pixels = browser.picture(".picture")
    assert pixels.shape == (40, 40, 3)
    np.testing.assert_allclose(pixels[10:30, 4:16], 0.0, atol=0.02)  # ink
    assert pixels[10:30, 24:36].min() > 0.2  # paper, in the colour of the score
    label = browser.run("document.querySelector('.picture').getAttribute('aria-label')")
    assert "score" in label


def test_key_instance_is_framed(browser, page, data):
    bags, _, _ = data
    browser.open(page)
    show_all(browser)
    framed = browser.run(
        "Object.fromEntries([...document.querySelectorAll('.bag')].map(bag => "
        "[bag.querySelector('h3').textContent, "
        "[...bag.querySelectorAll('.instance')].findIndex(e => e.matches('.key'))]))"
    )
    expected = FirstFeature().key_instances(bags).tolist()
    assert framed == dict(zip(bags.bag_names.tolist(), expected, strict=True))
    style = "getComputedStyle(document.querySelector('.key > .face')).outlineStyle"
    assert browser.run(style) == "solid"


def test_instances_are_numbered_by_their_place_in_the_bag(browser, tmp_path):
    values = np.zeros((500, 1))
    values[[7, 499], 0] = -3.0, 9.0
    path = tmp_path / "page.html"
    write_report(path, FirstFeature(), Bags(values, [0, 499, 500]), [0, 1])
    browser.open(path.as_uri() + "#sort=name")
    titles = "[...document.querySelectorAll('.instance')].map(e => e.title)"
    large = [title for title in browser.run(titles) if "score \u22123.00" in title]
    assert large == ["instance 7, score \u22123.00"]
    assert browser.run(titles)[-1] == "instance 0, score +9.00, key instance"


@pytest.mark.parametrize("way", ["click", "address", "keyboard"])
def test_filters(browser, page, data, way):
    bags, y, scores = data
    right = (scores > 0) == y
    unsure = np.abs(scores) <= np.sort(np.abs(scores))[(N_BAGS - 1) // 10]
    for kind, mask in (("right", right), ("wrong", ~right), ("unsure", unsure)):
        browser.open(page + (f"#show={kind}" if way == "address" else ""))
        if way == "click":
            click(browser, f"[data-show={kind}]")
        elif way == "keyboard":
            browser.run(f"document.querySelector('[data-show={kind}]').focus()")
            browser.press("Enter", 13)
        show_all(browser)
        assert set(names(browser)) == set(bags.bag_names[mask].tolist())
        pressed = browser.run("document.querySelector('[aria-pressed=true]').textContent")
        assert pressed.lower() == f"{kind} {mask.sum()}"
    assert browser.complaints() == []


def test_sorting(browser, page, data):
    bags, y, scores = data
    margins = np.where(y == 1, scores, -scores)
    orders = {"best": -margins, "worst": margins, "score": -scores, "name": np.arange(N_BAGS)}
    browser.open(page)
    show_all(browser)
    for kind, key in orders.items():
        browser.run(
            f"sort.value = '{kind}'; sort.dispatchEvent(new Event('change')); "
            "while (!more.hidden) more.click()"
        )
        assert names(browser) == bags.bag_names[np.argsort(key)].tolist()


def test_bars_show_their_bags(browser, page, data):
    bags, _, _ = data
    browser.open(page)
    bars = browser.run("document.querySelectorAll('.bar').length")
    seen = []
    for bar in range(bars):
        browser.run(f"document.querySelectorAll('.bar')[{bar}].focus()")
        browser.press("Enter", 13)
        title = browser.run(f"document.querySelectorAll('.bar title')[{bar}].textContent")
        show_all(browser)
        found = names(browser)
        assert title.startswith(f"{len(found)} bag")
        seen += found
    assert sorted(seen) == sorted(bags.bag_names.tolist())
    click(browser, "#range")
    assert browser.run("document.getElementById('count').textContent") == "Showing 24 of 60 bags."


@pytest.fixture
def show(browser, tmp_path):
    """Open a report, and show all of its bags."""

    def show(model, bags, y=None, **options):
        path = tmp_path / "page.html"
        write_report(path, model, bags, y, **options)
        browser.open(path.as_uri())
        show_all(browser)

    return show


def test_without_labels(browser, show, data):
    bags, _, scores = data
    show(FirstFeature(), bags, label_names=["no", "yes"])
    assert names(browser) == bags.bag_names[np.argsort(-np.abs(scores), kind="stable")].tolist()
    assert browser.run("document.querySelectorAll('.verdict, .bad').length") == 0
    labels = browser.run("[...document.querySelectorAll('.bag .labels')].map(e => e.textContent)")
    assert sorted(labels) == sorted(np.where(scores > 0, "“yes”", "“no”").tolist())
    for key, text, mask in (("label-1", "“yes”", scores > 0), ("label-0", "“no”", scores <= 0)):
        click(browser, f"[data-show={key}]")
        show_all(browser)
        assert set(names(browser)) == set(bags.bag_names[mask].tolist())
        pressed = browser.run("document.querySelector('[aria-pressed=true]').textContent")
        assert pressed == f"{text} {mask.sum()}"
    seen = []
    for bar in range(browser.run("document.querySelectorAll('.bar').length")):
        browser.run(f"document.querySelectorAll('.bar')[{bar}].focus()")
        browser.press("Enter", 13)
        show_all(browser)
        seen += names(browser)
    assert sorted(seen) == sorted(bags.bag_names.tolist())
    assert browser.complaints() == []


def test_address_of_what_is_not_offered(browser, show, data):
    show(FirstFeature(), data[0])
    browser.run("location.hash = 'show=wrong&sort=worst'")
    browser.run("new Promise(done => setTimeout(done, 50))")
    state = "[document.querySelector('[aria-pressed=true]').dataset.show, sort.value]"
    assert browser.run(state) == ["all", "best"]
    assert browser.complaints() == []


def test_label_lists(browser, show):
    bags = Bags([[1.0, 2, -3], [0.5, 3, -2], [-4, -1, -2], [-3, -2, -5], [1, 2, 3]], [0, 2, 4, 5])
    show(LabelLists(), bags, [[1, 0, 1], [0, 0, 0], [1, 1, 1]], label_names=["ant", "bee", "cat"])
    text = "[...document.querySelectorAll('.bag {}')].map(e => e.textContent)"
    # The bags, highest score first: two with 3.00, then the one that gets no label.
    assert browser.run(text.format(".labels")) == [
        "is “ant”, “cat”, was labelled “ant”, “bee”",
        "“ant”, “bee”, “cat”",
        "no label",
    ]
    assert browser.run(text.format(".score")) == ["“bee” +3.00", "“cat” +3.00", "“bee” \u22121.00"]
    keys = "[...document.querySelectorAll('.bag .key')].map(e => e.title)"
    assert [title.split(",")[0] for title in browser.run(keys)] == [
        "instance 1",
        "instance 0",
        "instance 0",
    ]
    click(browser, "[data-show=label-2]")
    assert names(browser) == ["bag 2"]
    assert browser.run("document.querySelectorAll('.verdict, .bad').length") == 0
    assert browser.complaints() == []


def test_hostile_names_are_only_text(browser, page):
    browser.open(page)
    show_all(browser)
    assert HOSTILE in names(browser)
    assert browser.run("document.querySelectorAll('img, b').length") == browser.run(
        "document.querySelectorAll('.tile b').length"
    )
    assert browser.run("document.title") == "What was learned"
    assert browser.complaints() == []


@pytest.mark.parametrize("model", [FirstFeature(), BagsOnly()])
@pytest.mark.parametrize("kind", ["svg", "text", "bars"])
def test_other_contents(browser, tmp_path, data, kind, model):
    bags, y, _ = data
    square = (
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'>"
        "<rect width='9' height='9'/><script>document.title='broken'</script></svg>"
    )
    render = {"svg": lambda x, row: square, "text": lambda x, row: HOSTILE, "bars": None}[kind]
    path = tmp_path / "page.html"
    write_report(path, model, bags, y, render=render)
    browser.open(path.as_uri())
    if kind == "svg":
        loaded = "[...document.querySelectorAll('.face img')].every(i => i.naturalWidth > 0)"
        waited = "Promise.all([...document.images].map(i => i.decode())).then(() => true)"
        assert browser.run(waited)
        assert browser.run(loaded)
    elif kind == "text":
        assert browser.run("document.querySelector('.face.text').textContent") == HOSTILE
    else:
        pixels = browser.picture(".picture")
        assert pixels.min() < 0.4
        assert pixels.max() > 0.6
    assert browser.run("document.title") == "What was learned"
    assert browser.complaints() == []


def test_trouble_would_be_seen(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<script>console.error('x'); nowhere()</script><img src='missing.png'>")
    browser.open(path.as_uri())
    assert len(browser.complaints()) >= 2
    assert browser.requests() == [path.as_uri(), (tmp_path / "missing.png").as_uri()]
