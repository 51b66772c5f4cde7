"""MIKernelSVM is an ordinary SVM on a set kernel that is summed pair by pair."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import chi2_kernel, cosine_similarity, laplacian_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bagwise import Bags
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import MIKernelSVM
from bagwise.testing import make_toy_bags
from svm.naive import (
    assert_within_sampling_error,
    fourier_features,
    instance_kernel,
    norms,
    scale_gamma,
    scaled_bags,
    set_kernel,
    solve_dual,
)

NORMALIZATIONS = ["average", "feature_space"]
KERNELS = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.5, "degree": 3, "coef0": 1.0},
]


def kernel_name(params):
    return params["kernel"]


def as_csr(bags):
    dense = Bags.from_list(bags)
    return Bags(sparse.csr_array(dense.instances), dense.offsets)


@pytest.mark.parametrize("layout", [Bags.from_list, as_csr], ids=["dense", "csr"])
@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_equals_the_svm_of_the_naive_kernel(normalization, params, layout):
    bags, y = make_toy_bags(24, kind="close")
    new, _ = make_toy_bags(12, kind="close", random_state=1)
    K = set_kernel(bags, bags, normalization, **params)
    coef, intercept, _ = solve_dual(K, 2.0 * y - 1.0, 5.0)
    model = MIKernelSVM(5.0, normalization=normalization, tol=1e-9, **params)
    model.fit(layout(bags), y)
    for some in (bags, new):
        expected = set_kernel(some, bags, normalization, **params) @ coef + intercept
        np.testing.assert_allclose(
            model.decision_function(layout(some)), expected, rtol=0, atol=1e-6
        )


MORE_KERNELS = {
    "laplacian": ({"gamma": 0.2}, lambda X, Y: laplacian_kernel(X, Y, gamma=0.2)),
    "chi2": ({"gamma": 0.1}, lambda X, Y: chi2_kernel(X, Y, gamma=0.1)),
    "cosine": ({}, cosine_similarity),
}


@pytest.mark.parametrize("kernel", MORE_KERNELS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_other_kernels(normalization, kernel):
    bags, y = make_toy_bags(20, kind="close")
    bags = [np.abs(bag) for bag in bags]
    params, function = MORE_KERNELS[kernel]
    sums = np.array([[function(a, b).sum() for b in bags] for a in bags])
    norm = np.array([len(bag) for bag in bags])
    if normalization == "feature_space":
        norm = np.sqrt(np.diag(sums))
    K = sums / np.outer(norm, norm)
    coef, intercept, _ = solve_dual(K, 2.0 * y - 1.0, 5.0)
    model = MIKernelSVM(5.0, kernel=kernel, normalization=normalization, tol=1e-9, **params)
    scores = model.fit(bags, y).decision_function(bags)
    np.testing.assert_allclose(scores, K @ coef + intercept, rtol=0, atol=1e-5)


@pytest.mark.parametrize("approx", ["cholesky", "nystroem"])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_map_of_full_rank_is_the_kernel(normalization, approx):
    bags, y = make_toy_bags(24, kind="close")
    new, _ = make_toy_bags(12, kind="close", random_state=1)
    params = {"normalization": normalization, "gamma": 0.5, "tol": 1e-9}
    exact = MIKernelSVM(5.0, **params).fit(bags, y)
    model = MIKernelSVM(5.0, approx=approx, rank=500, random_state=0, **params).fit(bags, y)
    for some in (bags, new):
        np.testing.assert_allclose(
            model.decision_function(some), exact.decision_function(some), atol=1e-4
        )
        np.testing.assert_allclose(
            model.instance_decision_function(some),
            exact.instance_decision_function(some),
            atol=1e-4,
        )
    assert model.result_.objective == pytest.approx(exact.result_.objective, rel=1e-5)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_random_features_are_the_machine_of_their_inner_products(normalization):
    bags, y = make_toy_bags(24, kind="close")
    params = {"C": 1.0, "normalization": normalization, "gamma": 0.2, "tol": 1e-9}
    model = MIKernelSVM(approx="fourier", rank=4000, random_state=0, **params).fit(bags, y)
    assert model.coef_.shape == (1, 4000)
    features = fourier_features(model, np.concatenate(bags))
    sizes = np.cumsum([len(bag) for bag in bags])[:-1]
    rows = np.stack([part.sum(axis=0) for part in np.split(features, sizes)])
    rows /= norms(bags, normalization, kernel="rbf", gamma=0.2)[:, None]  # those of the kernel
    gram = rows @ rows.T
    expected = SVC(kernel="precomputed", tol=1e-9).fit(gram, y).decision_function(gram)
    np.testing.assert_allclose(model.decision_function(bags), expected, atol=1e-5)
    assert_within_sampling_error(features, instance_kernel(*[np.concatenate(bags)] * 2, "rbf", 0.2))


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_single_precision(normalization, params):
    bags, y = make_toy_bags(24, kind="close")
    single = [bag.astype(np.float32) for bag in bags]
    exact = MIKernelSVM(normalization=normalization, **params).fit(bags, y)
    model = MIKernelSVM(normalization=normalization, **params).fit(single, y)
    scores = model.decision_function(single)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, exact.decision_function(bags), atol=1e-4)


def test_scoring_never_holds_the_kernel_matrix():
    """3000 new instances and 3000 of the expansion: their kernel matrix would take 72 MB."""
    rng = np.random.default_rng(0)
    bags = Bags(rng.normal(size=(3000, 2)), np.arange(0, 3001, 100))
    model = MIKernelSVM(gamma=0.5).fit(bags, np.arange(30) % 2)
    assert len(model.support_vectors_) > 2000
    model.decision_function(bags)
    tracemalloc.start()
    model.decision_function(bags)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_equals_the_svm_of_the_naive_kernel_on_musk1(normalization, load_set):
    bags, y = scaled_bags(load_set("musk1"))
    K = set_kernel(bags, bags, normalization, kernel="rbf", gamma=scale_gamma(bags.instances))
    for C in (0.1, 1.0, 100.0):
        model = MIKernelSVM(C, normalization=normalization, tol=1e-9).fit(bags, y)
        scores = model.decision_function(bags) - model.intercept_shift_
        coef, intercept, _ = solve_dual(K, 2.0 * y - 1.0, C)
        np.testing.assert_allclose(scores, K @ coef + intercept, rtol=0, atol=1e-6)
        libsvm = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K, y).decision_function(K)
        np.testing.assert_allclose(scores, libsvm, rtol=0, atol=1e-4 * np.abs(libsvm).max())


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_classes_are_learned_one_against_the_rest(normalization):
    bags, y = make_toy_bags(30, n_classes=3, kind="close")
    params = {"kernel": "rbf", "gamma": 0.1}
    K = set_kernel(bags, bags, normalization, **params)
    model = MIKernelSVM(1.0, normalization=normalization, tol=1e-9, **params).fit(bags, y)
    scores = model.decision_function(bags)
    for c in range(3):
        coef, intercept, _ = solve_dual(K, np.where(y == c, 1.0, -1.0), 1.0)
        np.testing.assert_allclose(scores[:, c], K @ coef + intercept, rtol=0, atol=1e-6)


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_average_score_is_the_mean_of_the_instances(n_classes, params):
    bags, y = make_toy_bags(30, n_classes=n_classes, kind="close")
    model = MIKernelSVM(**params).fit(bags, y)
    scores = model.instance_decision_function(bags)
    offsets = Bags.from_list(bags).offsets
    means = [scores[a:b].mean(axis=0) for a, b in pairwise(offsets)]
    np.testing.assert_allclose(model.decision_function(bags), means, rtol=0, atol=1e-9)


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_instance_scores_as_the_bag_that_holds_it_alone(normalization, params):
    bags, y = make_toy_bags(20, kind="close")
    model = MIKernelSVM(normalization=normalization, **params).fit(bags, y)
    alone = [row[None, :] for bag in bags for row in bag]
    np.testing.assert_allclose(
        model.instance_decision_function(bags), model.decision_function(alone), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_two_bags_have_a_closed_form(normalization, params):
    """Half the squared norm of w is 2 over the squared distance of the two bags."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(3, 2)), rng.normal(size=(2, 2)) + 2.0]
    K = set_kernel(bags, bags, normalization, **params)
    model = MIKernelSVM(1e6, normalization=normalization, tol=1e-9, **params).fit(bags, [0, 1])
    np.testing.assert_allclose(model.decision_function(bags), [-1.0, 1.0], atol=1e-6)
    distance = K[0, 0] + K[1, 1] - 2 * K[0, 1]
    assert model.result_.objective == pytest.approx(2 / distance, rel=1e-6)
    if normalization == "feature_space":  # every bag has norm 1
        assert model.result_.objective == pytest.approx(1 / (1 - K[0, 1]), rel=1e-6)


def test_feature_space_does_not_see_the_length_of_a_bag():
    bags, y = make_toy_bags(20, kind="close")
    model = MIKernelSVM(normalization="feature_space", kernel="linear").fit(bags, y)
    longer = [7.0 * bag for bag in bags]
    np.testing.assert_allclose(
        model.decision_function(longer), model.decision_function(bags), atol=1e-9
    )


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_repeating_all_instances_of_a_bag_changes_nothing(normalization):
    bags, y = make_toy_bags(20, kind="close")
    twice = [np.concatenate([bag, bag]) for bag in bags]
    model = MIKernelSVM(normalization=normalization, gamma=0.2).fit(bags, y)
    other = MIKernelSVM(normalization=normalization, gamma=0.2).fit(twice, y)
    scores = model.decision_function(bags)
    np.testing.assert_allclose(model.decision_function(twice), scores, atol=1e-9)
    np.testing.assert_allclose(other.decision_function(bags), scores, atol=1e-5)


def test_bag_of_norm_zero_scores_the_intercept():
    bags, y = make_toy_bags(20, kind="close")
    bags[3] = np.array([[1.0, -2.0, 0.5], [-1.0, 2.0, -0.5]])
    model = MIKernelSVM(normalization="feature_space", kernel="linear").fit(bags, y)
    scores = model.decision_function(bags)
    assert np.isfinite(scores).all()
    assert scores[3] == pytest.approx(model.intercept_[0], abs=1e-12)


def test_weights_multiply_the_cost():
    bags, y = make_toy_bags(30, kind="close")
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(bags))
    K = set_kernel(bags, bags, "average", kernel="rbf", gamma=0.3)
    coef, intercept, _ = solve_dual(K, 2.0 * y - 1.0, 4.0 * weight * np.where(y == 1, 2.0, 1.0))
    model = MIKernelSVM(4.0, gamma=0.3, class_weight={0: 1.0, 1: 2.0}, tol=1e-9)
    model.fit(bags, y, sample_weight=weight)
    np.testing.assert_allclose(
        model.decision_function(bags), K @ coef + intercept, rtol=0, atol=1e-6
    )


def test_objective_is_the_one_in_the_docstring():
    bags, y = make_toy_bags(24, kind="close")
    K = set_kernel(bags, bags, "average", kernel="rbf", gamma=0.2)
    _, _, objective = solve_dual(K, 2.0 * y - 1.0, 3.0)
    result = MIKernelSVM(3.0, gamma=0.2, tol=1e-9).fit(bags, y).result_
    assert result.objective == pytest.approx(objective, rel=1e-8)


def test_expansion_is_what_the_attributes_say():
    bags, y = make_toy_bags(24, kind="close")
    model = MIKernelSVM().fit(bags, y)
    rows = np.concatenate([bags[i] for i in model.support_])
    np.testing.assert_array_equal(model.support_vectors_, rows)
    K = instance_kernel(np.concatenate(bags), rows, "rbf", gamma=model.gamma_)
    expected = K @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.instance_decision_function(bags), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("params", "has_analogue"),
    [
        ({}, True),
        ({"kernel": "linear"}, True),
        ({"normalization": "feature_space"}, True),
        ({"normalization": "feature_space", "kernel": "linear"}, False),
    ],
)
def test_tags_claim_libsvm_only_where_it_is_true(params, has_analogue):
    analogue = MIKernelSVM(**params).__bagwise_tags__().supervised_analogue
    assert (analogue is not None) is has_analogue


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_default_parameters_work_on_musk1(normalization, load_set):
    arrays = load_set("musk1")
    bags = Bags(arrays["X"].astype(np.float64), arrays["offsets"])
    model = make_pipeline(
        InstanceTransformer(StandardScaler()), MIKernelSVM(normalization=normalization)
    )
    assert cross_val_score(model, bags, arrays["y"], cv=5).mean() > 0.7
