import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.patches import Rectangle
from scipy.sparse import csr_matrix

from bagwise import Bags
from bagwise.inspection import plot_clusters

mpl.use("Agg")
SHAPE = (2, 3)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    mpl.pyplot.close("all")


@pytest.fixture
def bags():
    sizes = [1, 5, 2, 3, 4, 2]
    instances = np.random.default_rng(0).uniform(size=(sum(sizes), 6))
    return Bags(instances, np.append(0, np.cumsum(sizes)))


def canvas(axes):
    return np.ma.filled(axes.images[0].get_array().astype(float), np.nan)


def frame(axes):
    (found,) = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return found


def inside(axes):
    """Return the pixels whose centres are inside the frame."""
    (left, top), box = frame(axes).get_xy(), frame(axes)
    image = canvas(axes)
    rows = [i for i in range(image.shape[0]) if top < i < top + box.get_height()]
    columns = [j for j in range(image.shape[1]) if left < j < left + box.get_width()]
    return image[np.ix_(rows, columns)]


def test_a_row_for_each_cluster_and_all_of_its_bags(bags):
    figure = plot_clusters(bags, [1, 0, 1, 1, 0, 1], image_shape=SHAPE)
    spots = [axes.get_subplotspec() for axes in figure.axes]
    assert [spot.rowspan.start for spot in spots] == [0, 0, 1, 1, 1, 1]
    assert [spot.colspan.start for spot in spots] == [0, 1, 0, 1, 2, 3]
    assert figure.axes[0].get_ylabel() == "cluster 0\n2 bags "
    assert not figure.axes[1].get_ylabel()
    assert all(not axes.patches for axes in figure.axes)
    shown = np.concatenate([canvas(axes)[~np.isnan(canvas(axes))] for axes in figure.axes])
    np.testing.assert_array_equal(np.sort(shown), np.sort(bags.instances.ravel()))


def test_the_frame_is_around_the_key_instance(bags):
    keys = [0, 4, 1, 2, 3, 0]
    figure = plot_clusters(bags, np.zeros(6, int), image_shape=SHAPE, key_instances=keys)
    for bag, (axes, key) in enumerate(zip(figure.axes, keys, strict=True)):
        np.testing.assert_array_equal(inside(axes), bags[bag][key].reshape(SHAPE))


def test_bags_are_spread_from_the_highest_score_to_the_lowest(bags):
    scores = np.array([0.3, 0.9, 0.1, 0.5, 0.2, 0.7])
    figure = plot_clusters(bags, np.zeros(6, int), image_shape=SHAPE, scores=scores, n_bags=2)
    first, last = (canvas(axes) for axes in figure.axes)
    np.testing.assert_array_equal(first[:2, :3], bags[1][0].reshape(SHAPE))
    np.testing.assert_array_equal(last[:2, :3], bags[2][0].reshape(SHAPE))


def test_names_and_gaps_in_the_numbers(bags):
    labels = [7, 7, 2, 2, 2, 7]
    figure = plot_clusters(bags, labels, image_shape=SHAPE, cluster_names=["two", "seven"])
    assert [axes.get_ylabel() for axes in figure.axes] == ["two", "", "", "seven", "", ""]


def test_all_pictures_have_the_same_scale(bags):
    figure = plot_clusters(bags, np.arange(6) % 2, image_shape=SHAPE)
    limits = {axes.images[0].get_clim() for axes in figure.axes}
    assert limits == {(bags.instances.min(), bags.instances.max())}


def test_sparse_instances_look_the_same(bags):
    sparse = Bags(csr_matrix(bags.instances), bags.offsets)
    labels = np.arange(6) % 3
    dense_axes = plot_clusters(bags, labels, image_shape=SHAPE).axes
    sparse_axes = plot_clusters(sparse, labels, image_shape=SHAPE).axes
    for one, other in zip(dense_axes, sparse_axes, strict=True):
        np.testing.assert_array_equal(canvas(one), canvas(other))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": [0, 1]}, r"labels .* 6 bags. Got shape \(2,\)"),
        ({"key_instances": [0]}, r"key_instances .* 6 bags. Got shape \(1,\)"),
        ({"scores": np.zeros((6, 2))}, r"scores .* 6 bags. Got shape \(6, 2\)"),
        ({"image_shape": (2, 2)}, r"image_shape .* features, 6. Got \(2, 2\)"),
        ({"cluster_names": ["one"]}, r"cluster_names .* 2 clusters .* Got 1 names"),
        ({"n_bags": 0}, r"n_bags .* at least 1. Got 0"),
        ({"key_instances": [0, 5, 0, 0, 0, 0]}, r"key_instances .* bag 1 .* 5 instances. Got 5"),
        ({"key_instances": [-1, 0, 0, 0, 0, 0]}, r"key_instances .* bag 0 .* 1 instances. Got -1"),
    ],
    ids=["labels", "keys", "scores", "shape", "names", "n_bags", "key_high", "key_low"],
)
def test_errors_name_the_parameter(bags, change, words):
    options = {"labels": [0, 0, 0, 1, 1, 1], "image_shape": SHAPE} | change
    with pytest.raises(ValueError, match=words):
        plot_clusters(bags, options.pop("labels"), **options)


def test_without_matplotlib_the_error_says_what_to_install(bags, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"bagwise\[plots\]"):
        plot_clusters(bags, np.zeros(6, int), image_shape=SHAPE)
