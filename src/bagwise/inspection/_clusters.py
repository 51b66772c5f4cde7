"""Pictures of clusters: the bags of each, with their key instances framed."""

from importlib import import_module
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from bagwise._arrays import Integers
from bagwise.bags import Bags

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_clusters(
    bags: Bags,
    labels: Any,
    *,
    image_shape: tuple[int, int],
    key_instances: Any = None,
    scores: Any = None,
    n_bags: int = 6,
    cluster_names: Any = None,
    cmap: str = "gray_r",
) -> "Figure":
    """Draw bags of pictures, a row for each cluster.

    Parameters
    ----------
    bags : Bags
        Bags whose instances are grey pictures: the features are the pixels, row after row.
    labels : array-like of int of shape (n_bags,)
        Clusters of the bags, as in ``labels_``.
    image_shape : tuple of int
        Height and width of the pictures.
    key_instances : array-like of int of shape (n_bags,), optional
        Place inside each bag of the instance to frame, as in ``key_instances_``.
    scores : array-like of shape (n_bags,), optional
        How surely a bag is in its cluster. The bags shown are evenly spread from the highest to the
        lowest score of the cluster; by default from its first bag to its last.
    n_bags : int
        Most bags of a cluster to show.
    cluster_names : sequence of str, optional
        Words beside the rows, one for each cluster that has bags. By default their numbers and
        sizes.
    cmap : str
        Colours of the pixels, from the lowest value to the highest of all bags.

    Returns
    -------
    figure : matplotlib.figure.Figure
        The pictures. Needs matplotlib: ``pip install 'bagwise[plots]'``.

    Examples
    --------
    >>> from bagwise import Bags
    >>> from bagwise.inspection import plot_clusters
    >>> bags = Bags.from_list([[[0, 1, 1, 0]], [[1, 0, 0, 1], [0, 0, 0, 0]]])
    >>> figure = plot_clusters(bags, [0, 1], image_shape=(2, 2), key_instances=[0, 0])
    >>> len(figure.axes)
    2
    """
    labels = _checked("labels", labels, bags)
    keys = None if key_instances is None else _checked_keys(key_instances, bags)
    order = np.arange(len(bags)) if scores is None else -_checked("scores", scores, bags)
    _check_shape(image_shape, bags)
    if n_bags < 1:
        msg = f"n_bags of plot_clusters must be at least 1. Got {n_bags}."
        raise ValueError(msg)
    clusters = np.unique(labels)
    chosen = [_spread(np.flatnonzero(labels == cluster), order, n_bags) for cluster in clusters]
    names = _names(cluster_names, labels, clusters)
    n_columns = max(len(row) for row in chosen)
    limits = {"vmin": bags.instances.min(), "vmax": bags.instances.max()}

    figure = _pyplot().figure(figsize=(1.6 * n_columns, 1.3 * len(clusters)), layout="constrained")
    for row, (places, name) in enumerate(zip(chosen, names, strict=True)):
        for column, bag in enumerate(places):
            axes = figure.add_subplot(len(clusters), n_columns, row * n_columns + column + 1)
            _draw_bag(axes, _pictures(bags, int(bag), image_shape), cmap, limits)
            if keys is not None:
                _frame(axes, int(keys[bag]), int(bags.sizes[bag]), image_shape)
            if column == 0:
                axes.set_ylabel(name, rotation=0, ha="right", va="center")
    return figure


def _pyplot() -> Any:
    try:
        return import_module("matplotlib.pyplot")
    except ImportError as error:
        msg = "plot_clusters needs matplotlib: pip install 'bagwise[plots]'"
        raise ImportError(msg) from error


def _checked(name: str, values: Any, bags: Bags) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (len(bags),):
        msg = f"{name} of plot_clusters must have one entry for each of the {len(bags)} bags. "
        msg += f"Got shape {array.shape}."
        raise ValueError(msg)
    return array


def _checked_keys(values: Any, bags: Bags) -> NDArray[Any]:
    keys = _checked("key_instances", values, bags)
    outside = np.flatnonzero((keys < 0) | (keys >= bags.sizes))
    if len(outside):
        bag = int(outside[0])
        msg = (
            f"key_instances of plot_clusters must be places inside the bags; bag {bag} has "
            f"{bags.sizes[bag]} instances. Got {keys[bag]}."
        )
        raise ValueError(msg)
    return keys


def _check_shape(image_shape: tuple[int, int], bags: Bags) -> None:
    if len(image_shape) != 2 or image_shape[0] * image_shape[1] != bags.n_features:
        msg = (
            "image_shape of plot_clusters must be a height and a width whose product is the "
            f"number of features, {bags.n_features}. Got {image_shape}."
        )
        raise ValueError(msg)


def _names(given: Any, labels: NDArray[Any], clusters: NDArray[Any]) -> list[str]:
    if given is None:
        return [f"cluster {c}\n{np.sum(labels == c)} bags " for c in clusters]
    names = [str(name) for name in given]
    if len(names) != len(clusters):
        msg = (
            f"cluster_names of plot_clusters must name the {len(clusters)} clusters that have "
            f"bags. Got {len(names)} names."
        )
        raise ValueError(msg)
    return names


def _spread(members: Integers, order: NDArray[Any], n_bags: int) -> Integers:
    """Return up to ``n_bags`` members, evenly from the first to the last in the order."""
    ranked = members[np.argsort(order[members], kind="stable")]
    places = np.linspace(0, len(ranked) - 1, min(n_bags, len(ranked)))
    return ranked[places.round().astype(np.int64)]


def _pictures(bags: Bags, bag: int, image_shape: tuple[int, int]) -> NDArray[Any]:
    first, last = bags.offsets[bag : bag + 2]
    instances: Any = bags.instances[first:last]
    dense = instances.toarray() if issparse(instances) else np.asarray(instances)
    return dense.reshape(-1, *image_shape)


def _n_columns(n_pictures: int) -> int:
    return ceil(sqrt(n_pictures))


def _draw_bag(axes: "Axes", pictures: NDArray[Any], cmap: str, limits: dict[str, Any]) -> None:
    """Draw the pictures of a bag as one image, a pixel apart."""
    n, height, width = pictures.shape
    n_columns = _n_columns(n)
    n_rows = ceil(n / n_columns)
    canvas = np.full((n_rows * (height + 1) - 1, n_columns * (width + 1) - 1), np.nan)
    for place, picture in enumerate(pictures):
        row, column = divmod(place, n_columns)
        top, left = row * (height + 1), column * (width + 1)
        canvas[top : top + height, left : left + width] = picture
    axes.set_facecolor("0.75")  # what is between the pictures
    axes.imshow(canvas, cmap=cmap, **limits)
    axes.set(xticks=[], yticks=[])


def _frame(axes: "Axes", place: int, n_pictures: int, image_shape: tuple[int, int]) -> None:
    height, width = image_shape
    row, column = divmod(place, _n_columns(n_pictures))
    corner = (column * (width + 1) - 1, row * (height + 1) - 1)  # half a pixel around the picture
    frame = import_module("matplotlib.patches").Rectangle(
        corner, width + 1, height + 1, fill=False, edgecolor="tab:red", linewidth=2, clip_on=False
    )
    axes.add_patch(frame)
