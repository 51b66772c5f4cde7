"""Machines on statistics of bags are ordinary SVMs on these vectors."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from bagwise import Bags
from bagwise.exceptions import ModelFileError
from bagwise.persistence import load, save
from bagwise.svm import MinimaxKernelSVM, StatisticKernelSVM
from bagwise.testing import make_toy_bags
from svm.naive import (
    assert_within_sampling_error,
    fourier_features,
    instance_kernel,
    scale_gamma,
    scaled_bags,
    solve_dual,
)

KERNELS = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
]
VECTORS = {
    "minmax": lambda bag: np.concatenate([bag.min(axis=0), bag.max(axis=0)]),
    "mean": lambda bag: bag.mean(axis=0),
    "mean_std": lambda bag: np.concatenate([bag.mean(axis=0), bag.std(axis=0)]),
}


def as_sparse(bags):
    dense = Bags.from_list(bags)
    return Bags(sparse.csr_array(dense.instances), dense.offsets)


def kernel_name(params):
    return params["kernel"]


def vectors(bags, statistic="minmax"):
    return np.array([VECTORS[statistic](bag) for bag in bags])


@pytest.mark.parametrize("layout", [Bags.from_list, as_sparse], ids=["dense", "csr"])
@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("statistic", VECTORS)
def test_equals_the_svm_on_naive_statistics(statistic, params, layout):
    bags, y = make_toy_bags(24, kind="close")
    new, _ = make_toy_bags(12, kind="close", random_state=1)
    rows = vectors(bags, statistic)
    coef, intercept, objective = solve_dual(instance_kernel(rows, rows, **params), 2.0 * y - 1, 2.0)
    model = StatisticKernelSVM(2.0, statistic=statistic, tol=1e-9, **params).fit(layout(bags), y)
    assert model.result_.objective == pytest.approx(objective, rel=1e-7)
    for some in (bags, new):
        K = instance_kernel(vectors(some, statistic), rows, **params)
        scores = model.decision_function(layout(some))
        np.testing.assert_allclose(scores, K @ coef + intercept, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("degree", "C"), [(1, 0.5), (2, 0.05), (5, 1e-6)])
def test_minimax_kernel_by_hand(degree, C):
    bags, y = make_toy_bags(24, kind="close")
    rows = vectors(bags)
    K = (rows @ rows.T / 3 + 1.0) ** degree
    coef, intercept, _ = solve_dual(K, 2.0 * y - 1.0, C)
    model = MinimaxKernelSVM(C, degree=degree, gamma="2/d", tol=1e-9).fit(bags, y)
    assert model.gamma_ == pytest.approx(1 / 3)
    scores = model.decision_function(bags)
    np.testing.assert_allclose(scores, K @ coef + intercept, rtol=1e-5, atol=1e-5)


def test_two_presets_of_one_machine():
    bags, y = make_toy_bags(24, kind="close")
    minimax = MinimaxKernelSVM().fit(bags, y)
    params = minimax.get_params()
    other = StatisticKernelSVM(statistic="minmax", **params).fit(bags, y)
    np.testing.assert_array_equal(minimax.decision_function(bags), other.decision_function(bags))
    assert "statistic" not in params


@pytest.mark.parametrize("statistic", VECTORS)
def test_gamma_is_read_off_the_statistics(statistic):
    bags, y = make_toy_bags(20, kind="close")
    rows = vectors(bags, statistic)
    model = StatisticKernelSVM(statistic=statistic).fit(bags, y)
    assert model.gamma_ == pytest.approx(scale_gamma(rows))
    weight = np.arange(20) % 3
    model.fit(bags, y, sample_weight=weight)
    assert model.gamma_ == pytest.approx(scale_gamma(np.repeat(rows, weight, axis=0)))


@pytest.mark.parametrize("params", [{"gamma": 0.3}, {"kernel": "linear"}], ids=repr)
def test_bags_of_one_are_vectors_twice(params):
    bags, y = make_toy_bags(30, kind="close", max_size=1)
    X = np.concatenate(bags)
    doubled = np.hstack([X, X])
    expected = SVC(tol=1e-8, **params).fit(doubled, y).decision_function(doubled)
    scores = StatisticKernelSVM(C=1.0, **params, tol=1e-8).fit(X, y).decision_function(X)
    np.testing.assert_allclose(scores, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("params", "has_analogue"),
    [
        ({}, True),
        ({"gamma": 0.5}, False),
        ({"statistic": "mean", "gamma": 0.5}, True),
        ({"statistic": "mean_std"}, False),
        ({"kernel": "linear"}, False),
    ],
)
def test_tags_claim_libsvm_only_where_it_is_true(params, has_analogue):
    tags = StatisticKernelSVM(**params).__bagwise_tags__()
    assert (tags.supervised_analogue is not None) is has_analogue
    assert not tags.instance_scores


@pytest.mark.parametrize("cls", [StatisticKernelSVM, MinimaxKernelSVM])
@pytest.mark.parametrize("approx", ["cholesky", "nystroem"])
def test_map_of_full_rank_is_the_kernel(cls, approx):
    bags, y = make_toy_bags(24, kind="close")
    exact = cls(tol=1e-9).fit(bags, y)
    model = cls(tol=1e-9, approx=approx, rank=100, random_state=0).fit(bags, y)
    np.testing.assert_allclose(
        model.decision_function(bags), exact.decision_function(bags), atol=1e-4
    )


def test_random_features_are_the_machine_of_their_inner_products():
    bags, y = make_toy_bags(24, kind="close")
    params = {"C": 1.0, "gamma": 0.1, "tol": 1e-9}
    model = StatisticKernelSVM(approx="fourier", rank=4000, random_state=0, **params).fit(bags, y)
    assert model.fourier_weights_.shape == (6, 4000)
    statistics = np.stack([np.append(bag.min(axis=0), bag.max(axis=0)) for bag in bags])
    rows = fourier_features(model, statistics)
    gram = rows @ rows.T
    expected = SVC(kernel="precomputed", tol=1e-9).fit(gram, y).decision_function(gram)
    np.testing.assert_allclose(model.decision_function(bags), expected, atol=1e-5)
    assert_within_sampling_error(rows, instance_kernel(statistics, statistics, "rbf", 0.1))


def test_single_precision_stays():
    bags, y = make_toy_bags(24, kind="close")
    single = [bag.astype(np.float32) for bag in bags]
    model = StatisticKernelSVM().fit(single, y)
    assert model.support_vectors_.dtype == np.float32
    exact = StatisticKernelSVM().fit(bags, y)
    np.testing.assert_allclose(
        model.decision_function(single), exact.decision_function(bags), atol=1e-4
    )


@pytest.mark.parametrize(
    "model",
    [
        StatisticKernelSVM(),
        StatisticKernelSVM(kernel="linear"),
        StatisticKernelSVM(statistic="mean", approx="fourier", rank=20, random_state=0),
        MinimaxKernelSVM(approx="cholesky", rank=10),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_saved_model_decides_the_same(model, n_classes, tmp_path):
    bags, y = make_toy_bags(24, n_classes=n_classes, kind="close")
    model = type(model)(**model.get_params()).fit(bags, y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))


@pytest.mark.parametrize("params", [{}, {"kernel": "linear"}], ids=repr)
def test_model_of_another_number_of_statistics_is_not_saved(params, tmp_path):
    bags, y = make_toy_bags(24, kind="close")
    model = StatisticKernelSVM(**params).fit(bags, y)
    name = "coef_" if params else "support_vectors_"
    setattr(model, name, getattr(model, name)[:, :5].copy())
    with pytest.raises(ModelFileError, match="must be the number of statistics, or half of it"):
        save(model, tmp_path / "model")


@pytest.mark.parametrize(
    ("cls", "params", "name"),
    [
        (StatisticKernelSVM, {"statistic": "median"}, "statistic"),
        (StatisticKernelSVM, {"gamma": 0.0}, "gamma"),
        (MinimaxKernelSVM, {"degree": 0}, "degree"),
        (MinimaxKernelSVM, {"C": 0.0}, "C"),
    ],
)
def test_bad_parameters(cls, params, name):
    bags, y = make_toy_bags()
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {cls.__name__}"):
        cls(**params).fit(bags, y)


@pytest.mark.parametrize("cls", [StatisticKernelSVM, MinimaxKernelSVM])
def test_default_parameters_work_on_musk1(cls, load_set):
    bags, y = scaled_bags(load_set("musk1"))
    assert cross_val_score(cls(), bags, y, cv=5).mean() > 0.75
