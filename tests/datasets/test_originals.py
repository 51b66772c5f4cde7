"""Small files in the layouts of the public copies; the copies themselves: test_fetch.py."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.io import savemat

from bagwise.datasets import info
from bagwise.datasets._originals import _LAYOUTS, read_original
from bagwise.datasets._registry import parse_registry
from bagwise.exceptions import BagFileError

ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]])  # two bags: two rows, one row


def _entry(layout, *, class_ids=(), label_counts=(1, 1)):
    names = [f"label{j}" for j in range(len(label_counts))]
    return parse_registry(
        f"""
[toy]
title = "Toy"
task = "classification"
citation = "Nobody 1999"
licence = "None"
bags = 2
instances = 3
features = 2
label_names = {names}
label_counts = {list(label_counts)}
[toy.origin]
repository = "nobody/toys"
commit = "{"1" * 40}"
layout = "{layout}"
class_ids = {list(class_ids)}
"""
    )["toy"]


def _write(folder, **texts):
    paths = []
    for name, text in texts.items():
        paths.append(folder / name)
        paths[-1].write_text(text)
    return paths


def _check(arrays, y, **more):
    assert_array_equal(arrays["X"], ROWS)
    assert arrays["X"].dtype == np.float32  # exact
    assert_array_equal(arrays["offsets"], [0, 2, 3])
    assert_array_equal(arrays["y"], y)
    assert set(arrays) == {"X", "offsets", "y", *more}
    for name, values in more.items():
        assert_array_equal(arrays[name], values)


def test_c45(tmp_path):
    paths = _write(tmp_path, toy="M-1,m1_1,1,2,0.\nM-1,m1_2,3,4,0.\nM-2,m2_1,5,6.5,1.\n")
    _check(read_original(_entry("c45"), paths), [0, 1], bag_names=["M-1", "M-2"])


def test_numbers_that_float32_does_not_hold_stay_float64(tmp_path):
    paths = _write(tmp_path, toy="M-1,m1_1,1,2,0.\nM-1,m1_2,3,4,0.\nM-2,m2_1,5,6.1,1.\n")
    instances = read_original(_entry("c45"), paths)["X"]
    assert instances.dtype == np.float64
    assert instances[2, 1] == 6.1


def test_miml_arff(tmp_path):
    text = r"""@relation toy
@attribute id {7,8}
@attribute bag relational
  @attribute f1 numeric
  @attribute f2 numeric
@end bag
@attribute label0 {0,1}
@attribute label1 {0,1}
@data
7,"1,2\n3,4",1,1
8,"5,6.5",0,1
"""
    arrays = read_original(_entry("miml_arff"), _write(tmp_path, toy=text))
    _check(arrays, [[1, 1], [0, 1]], bag_names=["7", "8"])
    assert arrays["y"].dtype == np.int8


def _matlab(folder, marks):
    savemat(folder / "X.mat", {"X": ROWS})
    savemat(folder / "Bag2.mat", {"Bag2": [[4], [4], [9]]})
    savemat(folder / "BagI.mat", {"bagI": marks})
    return [folder / name for name in ("X.mat", "Bag2.mat", "BagI.mat")]


def test_milpy(tmp_path):
    _check(read_original(_entry("milpy"), _matlab(tmp_path, [[0], [1]])), [0, 1])


def test_milpy_blocks(tmp_path):
    entry = _entry("milpy_blocks")
    _check(read_original(entry, _matlab(tmp_path, [[1], [0]])), [0, 1])
    with pytest.raises(BagFileError, match="the first class are not where they should be"):
        read_original(entry, _matlab(tmp_path, [[0], [1]]))


def test_mcil_puts_bags_in_the_order_of_their_numbers(tmp_path):
    text = "3 2\n0:121:1 1:5 2:6.5\n1:60:0 1:1 2:2\n2:60:0 1:3 2:4\n"
    arrays = read_original(_entry("mcil", class_ids=(0, 2)), _write(tmp_path, toy=text))
    _check(arrays, [0, 1], bag_names=["60", "121"])  # the numbers 1-60 and 121-180


def test_mcil_leaves_out_zeros(tmp_path):
    text = "1 3\n0:1:1 2:4\n"
    arrays = read_original(_entry("mcil", class_ids=(0, 2)), _write(tmp_path, toy=text))
    assert_array_equal(arrays["X"], [[0, 4, 0]])


BIRDS = {
    "features": "bag_id,f1,f2\n3,1,2\n3,3,4\n5,5,6.5\n",
    "bag_labels": "bag_id,label,list\n5,2\n3,1,2\n",
    "instance_labels": "bag_id,label\n3,2\n3,0\n5,2\n",
}


def test_birds(tmp_path):
    arrays = read_original(_entry("birds"), _write(tmp_path, **BIRDS))
    _check(arrays, [[1, 1], [0, 1]], bag_names=["3", "5"], instance_y=[1, -1, 1])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"features": "bag_id,f1,f2\n3,1,2\n5,3,4\n3,5,6.5\n"}, "not next to each other"),
        ({"instance_labels": "bag_id,label\n3,2\n5,0\n5,2\n"}, "not of the same bags"),
        ({"bag_labels": "bag_id,label,list\n5,2\n"}, "'3'"),
    ],
)
def test_birds_that_do_not_fit(tmp_path, change, problem):
    with pytest.raises(BagFileError, match=f"not the original of toy .*{problem}"):
        read_original(_entry("birds"), _write(tmp_path, **{**BIRDS, **change}))


def test_letter(tmp_path):
    path = tmp_path / "toy.mat"
    signs, marks = np.array([[1, -1], [-1, 1]]), np.array([[1, 0], [1, 0], [0, 1]])
    savemat(path, {"DD": {"X": ROWS, "XtB": [[1], [1], [2]], "YB": signs, "YR": marks}})
    arrays = read_original(_entry("letter"), [path])
    _check(arrays, [[1, 0], [0, 1]], bag_names=["1", "2"], instance_y=[0, 0, 1])


def test_every_layout_is_tested():
    assert {f"test_{layout}" for layout in _LAYOUTS if layout != "mcil"} <= set(globals())


def test_no_files():
    with pytest.raises(BagFileError, match="news_sci_med has no original files"):
        read_original(info("news_sci_med"), [])
