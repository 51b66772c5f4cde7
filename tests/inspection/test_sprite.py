import io

import numpy as np
import pytest
from matplotlib.image import imread

from bagwise.inspection._sprite import MAX_SIDE, make_sprite


def pixels_of(sprite):
    return imread(io.BytesIO(sprite.png), format="png")


def cell(sprite, number):
    row, column = divmod(number, sprite.columns)
    top, left = row * sprite.height, column * sprite.width
    return pixels_of(sprite)[top : top + sprite.height, left : left + sprite.width]


def test_grey_pictures_become_ink_on_transparent_paper():
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (7, 5, 4), dtype=np.uint8)
    sprite = make_sprite(list(pictures))
    assert sprite.is_ink
    assert (sprite.columns, sprite.rows, sprite.width, sprite.height) == (3, 3, 4, 5)
    for number, picture in enumerate(pictures):
        found = cell(sprite, number)
        np.testing.assert_array_equal(found[..., :3], 0.0)
        np.testing.assert_allclose(found[..., 3], 1 - picture / 255, atol=1e-6)
    np.testing.assert_array_equal(cell(sprite, 8)[..., 3], 0.0)  # an empty cell


def test_floats_are_from_black_to_white():
    found = cell(make_sprite([np.array([[0.0, 0.5, 1.0, 7.0, -3.0, np.nan]])]), 0)
    np.testing.assert_allclose(found[0, :, 3], [1, 127 / 255, 0, 0, 1, 1], atol=1e-6)


@pytest.mark.parametrize("channels", [3, 4])
def test_colours(channels):
    rng = np.random.default_rng(1)
    pictures = rng.integers(0, 256, (3, 6, 5, channels), dtype=np.uint8)
    sprite = make_sprite(list(pictures))
    assert not sprite.is_ink
    for number, picture in enumerate(pictures):
        found = cell(sprite, number)
        np.testing.assert_allclose(found[..., :channels], picture / 255, atol=1e-6)
        if channels == 3:
            np.testing.assert_array_equal(found[..., 3], 1.0)


def test_mixed_pictures_are_centred():
    white = np.full((4, 4, 3), 255, dtype=np.uint8)
    sprite = make_sprite([white, np.full((2, 2), 128, dtype=np.uint8)])
    expected = np.zeros((4, 4, 4))
    expected[1:3, 1:3] = [128 / 255] * 3 + [1]
    np.testing.assert_allclose(cell(sprite, 1), expected, atol=1e-6)


def test_large_pictures_are_averaged():
    picture = np.repeat(np.repeat(np.arange(50.0).reshape(5, 10) / 50, 20, 0), 20, 1)
    sprite = make_sprite([picture])  # 100 x 200, so blocks of 4 x 4
    assert max(sprite.width, sprite.height) <= MAX_SIDE
    assert (sprite.height, sprite.width) == (25, 50)
    np.testing.assert_allclose(1 - cell(sprite, 0)[..., 3], picture[::4, ::4], atol=1 / 255)


@pytest.mark.parametrize("shape", [(3,), (3, 3, 2), (0, 3), (2, 2, 3, 1)])
def test_not_a_picture(shape):
    with pytest.raises(ValueError, match="A picture must have the shape"):
        make_sprite([np.zeros(shape)])
