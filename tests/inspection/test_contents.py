import numpy as np
import pytest
from scipy import sparse

from bagwise import Bags
from bagwise.inspection._contents import render_contents

BAGS = Bags([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]], [0, 1, 3])


def test_hook_gets_features_and_row():
    seen = []
    rows = np.array([2, 0])
    render_contents(BAGS, rows, lambda features, row: seen.append((features.tolist(), row)) or "x")
    assert seen == [([2.0, 5.0], 2), ([0.0, 5.0], 0)]


def test_texts_are_shortened():
    contents = render_contents(BAGS, np.arange(3), lambda features, row: "ab" * (100 + 100 * row))
    assert contents.kind == "text"
    assert [len(item) for item in contents.items] == [200, 300, 300]
    assert contents.items[1].endswith("…")


def test_drawings():
    contents = render_contents(BAGS, np.arange(3), lambda features, row: f" <svg id='{row}'/>")
    assert contents.kind == "svg"
    assert contents.items[2] == "<svg id='2'/>"


@pytest.mark.parametrize("others", ["text", np.zeros((2, 2))])
def test_mixed_kinds_are_refused(others):
    with pytest.raises(TypeError, match="the same for every instance"):
        render_contents(BAGS, np.arange(3), lambda features, row: "<svg/>" if row == 1 else others)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_features_are_bars_by_default(convert):
    bags = Bags(convert(np.array([[0.0, 7.0], [0.5, 7.0], [1.0, 7.0]])), [0, 1, 3])
    contents = render_contents(bags, np.arange(3), None)
    assert contents.kind == "picture"
    assert contents.sprite.is_ink
    assert contents.sprite.height == 20
    assert contents.sprite.width == 4  # two bars
