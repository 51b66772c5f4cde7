"""What stands for an instance on the page: a picture, a drawing or a text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._arrays import Integers
from bagwise.bags import Bags
from bagwise.inspection._sprite import Sprite, make_sprite

#: Takes the features of an instance and its number in ``bags.instances``.
Render = Callable[[NDArray[Any], int], Any]

_SPARK_HEIGHT, _SPARK_BARS, _SPARK_STEP = 20, 30, 2
_MAX_TEXT = 300


@dataclass(frozen=True)
class Contents:
    """What stands for the instances shown, in their order.

    Parameters
    ----------
    kind : {"picture", "svg", "text"}
        Which of the two below is meant, and how.
    sprite : Sprite or None
        All pictures.
    items : tuple of str
        All drawings or texts.
    """

    kind: str
    sprite: Sprite | None = None
    items: tuple[str, ...] = ()


def render_contents(bags: Bags, rows: Integers, render: Render | None) -> Contents:
    """Call the hook on instances, or draw their features as bars if there is none.

    Parameters
    ----------
    bags : Bags
        All bags.
    rows : ndarray of int
        Which rows of ``bags.instances``.
    render : callable or None
        Returns an array (a picture), a text that begins with ``<svg``, or another text.
    """
    instances = bags.instances
    dense = instances[rows].toarray() if bags.is_sparse else np.asarray(instances[rows])
    if render is None:
        return Contents("picture", make_sprite(_bar_pictures(dense)))
    made = [render(features, row) for features, row in zip(dense, rows.tolist(), strict=True)]
    if all(isinstance(item, str) for item in made):
        drawings = [item.lstrip().startswith("<svg") for item in made]
        if all(drawings):
            return Contents("svg", items=tuple(item.strip() for item in made))
        if not any(drawings):
            return Contents("text", items=tuple(map(_shortened, made)))
    elif not any(isinstance(item, str) for item in made):
        return Contents("picture", make_sprite(made))
    msg = "render must return the same for every instance: a picture, an SVG or a text."
    raise TypeError(msg)


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _bar_pictures(values: NDArray[Any]) -> Sequence[NDArray[np.uint8]]:
    """Draw each row as bars from its features, scaled by their range; many are averaged.

    What is missing has the lowest bar.
    """
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)  # not NaN where there is a number
    scaled = np.nan_to_num((values - low) / np.where(high > low, high - low, 1.0))
    groups = np.array_split(np.arange(values.shape[1]), min(_SPARK_BARS, values.shape[1]))
    means = np.stack([scaled[:, group].mean(axis=1) for group in groups], axis=1)
    heights = np.rint(1 + means * (_SPARK_HEIGHT - 1))[:, None, :]
    inside = np.arange(_SPARK_HEIGHT, 0, -1)[None, :, None] <= heights
    pictures = np.where(inside, 60, 255).astype(np.uint8)
    return list(np.repeat(pictures, _SPARK_STEP, axis=2))
