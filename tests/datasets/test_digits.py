import numpy as np
import pytest
from sklearn.datasets import load_digits

from bagwise import Bags
from bagwise.datasets import BagDataset, load_digit_bags


def images_of(data):
    return np.array([int(name.split()[1]) for name in data.bags.instance_names])


def bags_of(data, values):
    return np.split(values, data.bags.offsets[1:-1])


def test_everything_is_aligned_with_scikit_learns_images():
    data = load_digit_bags(30, target=4, random_state=5)
    digits = load_digits()
    images = images_of(data)
    np.testing.assert_array_equal(data.bags.instances, digits.data[images])
    np.testing.assert_array_equal(data.instance_y, digits.target[images])
    np.testing.assert_array_equal(data.bags.instance_labels, data.instance_y)
    np.testing.assert_array_equal(data.bags.labels, data.y)
    assert data.bags.bag_names.tolist() == [f"bag {i:02d}" for i in range(30)]
    assert data.bags.feature_names[9] == digits.feature_names[9]


def test_positive_means_target_inside():
    data = load_digit_bags(60, target=7, positive_share=0.25)
    holds = [7 in bag for bag in bags_of(data, data.instance_y)]
    np.testing.assert_array_equal(data.y, np.array(holds, dtype=int))
    assert data.y.sum() == 15
    assert data.target == 7
    assert data.label_names == ("no 7", "a 7")


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 1.0])
def test_witness_rate(rate):
    data = load_digit_bags(40, witness_rate=rate, min_size=2, max_size=9, mean_size=5)
    for digits, label in zip(bags_of(data, data.instance_y), data.y, strict=True):
        expected = max(1, round(rate * len(digits))) if label else 0
        assert (digits == 3).sum() == expected


@pytest.mark.parametrize("mean", [3, 4.5, 6, 11.5, 12])
def test_sizes(mean):
    data = load_digit_bags(1500, mean_size=mean, min_size=3, max_size=12)
    sizes = data.bags.sizes
    assert sizes.min() >= 3
    assert sizes.max() <= 12
    # The variance of integers from 3 to 12 is at most 20.25, so this is four standard errors.
    assert abs(sizes.mean() - mean) <= 4 * np.sqrt(20.25 / 1500)


def test_sizes_are_uniform_if_the_mean_is_in_the_middle():
    sizes = load_digit_bags(4000, mean_size=6, min_size=4, max_size=8).bags.sizes
    shares = np.bincount(sizes, minlength=9)[4:] / 4000
    np.testing.assert_allclose(shares, 0.2, atol=4 * np.sqrt(0.2 * 0.8 / 4000))


def test_images_are_not_repeated_before_all_were_used():
    data = load_digit_bags(200)
    assert len(np.unique(images_of(data))) == data.bags.n_instances
    many = load_digit_bags(1000, witness_rate=0.5)
    for kind in (many.instance_y == 3, many.instance_y != 3):
        uses = np.unique(images_of(many)[kind], return_counts=True)[1]
        assert uses.max() - uses.min() <= 1
    assert "repetitions" in many.description
    assert "no image occurs twice" in data.description


def test_no_bag_holds_an_image_twice():
    data = load_digit_bags(300, min_size=1, max_size=90, mean_size=60, witness_rate=0.9)
    for images in bags_of(data, images_of(data)):
        assert len(np.unique(images)) == len(images)


@pytest.mark.parametrize("multilabel", [False, True])
def test_train_and_test_share_no_image(multilabel):
    sets = [
        set(images_of(load_digit_bags(400, images=part, random_state=seed, multilabel=multilabel)))
        for seed, part in enumerate(["train", "test"])
    ]
    assert not sets[0] & sets[1]
    assert len(sets[0] | sets[1]) == 1797


def test_same_seed_same_bags():
    one, two = (load_digit_bags(50, random_state=3) for _ in range(2))
    other = load_digit_bags(50, random_state=4)
    np.testing.assert_array_equal(one.bags.instances, two.bags.instances)
    np.testing.assert_array_equal(one.y, two.y)
    assert images_of(one).tolist() != images_of(other).tolist()
    generators = [np.random.default_rng(3), np.random.default_rng(3)]
    three, four = (load_digit_bags(50, random_state=rng) for rng in generators)
    np.testing.assert_array_equal(three.bags.instances, four.bags.instances)


def test_key_instances_stand_anywhere():
    data = load_digit_bags(400, min_size=5, max_size=5, mean_size=5, witness_rate=0)
    places = [np.flatnonzero(bag == 3)[0] for bag in bags_of(data, data.instance_y) if 3 in bag]
    shares = np.bincount(places, minlength=5) / 200
    np.testing.assert_allclose(shares, 0.2, atol=4 * np.sqrt(0.2 * 0.8 / 200))


def test_label_lists():
    data = load_digit_bags(80, multilabel=True, mean_size=3, min_size=1, max_size=9)
    assert data.y.shape == (80, 10)
    assert data.label_names == tuple("0123456789")
    assert data.target is None
    for digits, row in zip(bags_of(data, data.instance_y), data.y, strict=True):
        assert np.flatnonzero(row).tolist() == sorted(set(digits))


def test_bags_and_labels_alone():
    bags, y = load_digit_bags(10, return_X_y=True)
    assert isinstance(bags, Bags)
    np.testing.assert_array_equal(y, load_digit_bags(10).y)


def test_repr_counts_labels():
    data = load_digit_bags(10, positive_share=0)
    assert isinstance(data, BagDataset)
    assert "labels {'no 3': 10, 'a 3': 0}" in repr(data)
    assert "'3': " in repr(load_digit_bags(10, multilabel=True))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"n_bags": 0}, "n_bags must be a whole number, at least 1. Got 0."),
        ({"n_bags": 2.5}, "n_bags must be a whole number, at least 1. Got 2.5."),
        ({"target": 10}, "target must be a digit from 0 to 9. Got 10."),
        ({"target": "9"}, "target must be a digit from 0 to 9. Got '9'."),
        ({"min_size": 0}, "min_size must be a whole number, at least 1. Got 0."),
        ({"max_size": 3}, "max_size must be a whole number, at least 4. Got 3."),
        ({"mean_size": 9}, "mean_size must be from min_size=4 to max_size=8. Got 9."),
        ({"mean_size": float("nan")}, "mean_size must be from min_size=4 to max_size=8. Got nan."),
        ({"witness_rate": 1.5}, "witness_rate must be a number from 0 to 1. Got 1.5."),
        ({"positive_share": -0.1}, "positive_share must be a number from 0 to 1. Got -0.1."),
        ({"images": "valid"}, "images must be 'all', 'train' or 'test'. Got 'valid'."),
    ],
)
def test_bad_request(request_, message):
    with pytest.raises(ValueError, match=" must be ") as caught:
        load_digit_bags(**request_)
    assert str(caught.value) == message


def test_more_images_than_there_are():
    with pytest.raises(ValueError, match=r"images='test' has 91 images of a 3, and a bag of \d+"):
        load_digit_bags(
            20, images="test", witness_rate=1, min_size=100, mean_size=150, max_size=200
        )
    with pytest.raises(ValueError, match="has 1797 images, and a bag of 1800"):
        load_digit_bags(1, multilabel=True, min_size=1800, mean_size=1800, max_size=1800)
