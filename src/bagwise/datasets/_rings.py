"""The two synthetic examples of the SparseMI paper (Fu et al. 2010, section 4.1)."""

from typing import Any

import numpy as np

from bagwise.datasets._dataset import BagDataset
from bagwise.datasets._drawing import (
    build_bags,
    check_count,
    check_length,
    check_share,
    check_sizes,
    draw_chosen,
    draw_sizes,
    shuffled_inside,
)

_CENTERS = np.array([[-2.0, 2.0], [2.0, 2.0], [2.0, -2.0], [-2.0, -2.0]])


def make_ring_bags(
    n_bags: int = 100,
    *,
    min_size: int = 3,
    max_size: int = 8,
    radius: float = 3.0,
    width: float = 0.25,
    key_rate: float = 0.2,
    positive_share: float = 0.5,
    random_state: Any = 0,
) -> BagDataset:
    """Make bags in the plane: the positive ones have an instance in the center of a ring.

    All other instances lie on the ring, so one expansion vector, in the center, is enough to tell
    positive from negative bags, while no line is.

    Parameters
    ----------
    n_bags : int
        Number of bags.
    min_size, max_size : int
        Limits of the number of instances in a bag; sizes are spread evenly between them.
    radius : float
        Radius of the ring.
    width : float
        Standard deviation of the distance from the ring, and of both coordinates in the center.
    key_rate : float
        A positive bag has one instance in the center, and each further instance is there too with
        this chance.
    positive_share : float
        Share of positive bags, from 0 to 1.
    random_state : int, numpy.random.Generator or None
        Seed of the drawing; None draws anew at each call.

    Returns
    -------
    dataset : BagDataset
        ``instance_y`` is 1 in the center and 0 on the ring; ``instance_names`` say so too.

    Notes
    -----
    The paper shows this set in Figure 1(a) and gives no numbers; the defaults are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.datasets import make_ring_bags
    >>> data = make_ring_bags(40)
    >>> data.y.sum(), data.bags.n_features
    (np.int64(20), 2)
    >>> distance = np.linalg.norm(data.bags.instances, axis=1)
    >>> bool(distance[data.instance_y == 1].max() < distance[data.instance_y == 0].min())
    True
    """
    check_sizes(n_bags, min_size, max_size)
    check_length("radius", radius)
    check_length("width", width)
    check_share("key_rate", key_rate)
    check_share("positive_share", positive_share)
    rng = np.random.default_rng(random_state)
    sizes = draw_sizes(rng, n_bags, min_size, max_size)
    positive = draw_chosen(rng, n_bags, positive_share)
    n_keys = np.where(positive, 1 + rng.binomial(sizes - 1, key_rate), 0)
    is_key = shuffled_inside(rng, sizes) < np.repeat(n_keys, sizes)

    angle = rng.uniform(0.0, 2 * np.pi, size=len(is_key))
    distance = rng.normal(radius, width, size=len(is_key))
    ring = distance[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    center = rng.normal(0.0, width, size=ring.shape)
    y, instance_y = positive.astype(np.int64), is_key.astype(np.int64)
    bags = build_bags(
        np.where(is_key[:, None], center, ring),
        sizes,
        y,
        instance_y,
        ("ring", "center"),
        instance_y,
    )
    return BagDataset(
        bags=bags,
        y=y,
        label_names=("ring only", "center"),
        instance_y=instance_y,
        description=(
            f"{n_bags} bags in the plane, with {bags.n_instances} instances on a ring of radius "
            f"{radius:g} and, in positive bags only, at least one in its center (the first example "
            "in section 4.1 of Fu et al. 2010)."
        ),
        target=1,
    )


def make_three_class_bags(
    n_bags: int = 150,
    *,
    min_size: int = 3,
    max_size: int = 8,
    width: float = 0.25,
    key_rate: float = 0.2,
    random_state: Any = 0,
) -> BagDataset:
    r"""Make bags of three classes out of four Gaussians at the corners of a square.

    The Gaussians are :math:`N(\mu_i, \sigma^2)` with :math:`\mu_1 = (-2, 2)`,
    :math:`\mu_2 = (2, 2)`, :math:`\mu_3 = (2, -2)`, :math:`\mu_4 = (-2, -2)`. Bags of the first
    class have at least one instance of the first Gaussian, those of the second class at least one
    of the third; all other instances, and all those of the third class, are of the second or
    fourth. Two expansion vectors, at :math:`\mu_1` and :math:`\mu_3`, tell the classes apart.

    Parameters
    ----------
    n_bags : int
        Number of bags, spread over the classes as evenly as can be.
    min_size, max_size : int
        Limits of the number of instances in a bag; sizes are spread evenly between them.
    width : float
        The standard deviation :math:`\sigma`; 0.25 in the paper.
    key_rate : float
        A bag of the first two classes has one key instance, and each further instance is one too
        with this chance.
    random_state : int, numpy.random.Generator or None
        Seed of the drawing; None draws anew at each call.

    Returns
    -------
    dataset : BagDataset
        ``y`` is 0, 1, 2 for the paper's classes 1, 2, 3. ``instance_y`` is 0 or 1 for key
        instances of these classes and 2 for the others; ``instance_names`` say which Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise.datasets import make_three_class_bags
    >>> data = make_three_class_bags(60)
    >>> np.bincount(data.y).tolist()
    [20, 20, 20]
    >>> data.bags.instances[data.instance_y == 0].mean(axis=0).round().tolist()
    [-2.0, 2.0]
    """
    check_count("n_bags", n_bags, 3)
    check_sizes(n_bags, min_size, max_size)
    check_length("width", width)
    check_share("key_rate", key_rate)
    rng = np.random.default_rng(random_state)
    sizes = draw_sizes(rng, n_bags, min_size, max_size)
    y = rng.permutation(np.arange(n_bags) % 3)
    n_keys = np.where(y < 2, 1 + rng.binomial(sizes - 1, key_rate), 0)
    is_key = shuffled_inside(rng, sizes) < np.repeat(n_keys, sizes)

    instance_y = np.where(is_key, np.repeat(y, sizes), 2)
    background = rng.choice([1, 3], size=len(is_key))
    gaussian = np.where(is_key, 2 * instance_y, background)
    instances = rng.normal(_CENTERS[gaussian], width)
    names = ("Gaussian 1", "Gaussian 2", "Gaussian 3", "Gaussian 4")
    bags = build_bags(instances, sizes, y, instance_y, names, gaussian)
    return BagDataset(
        bags=bags,
        y=y,
        label_names=("class 1", "class 2", "class 3"),
        instance_y=instance_y,
        description=(
            f"{n_bags} bags of three classes in the plane, with {bags.n_instances} instances of "
            "four Gaussians, two of which mark a class (the second example in section 4.1 of Fu "
            "et al. 2010)."
        ),
    )
