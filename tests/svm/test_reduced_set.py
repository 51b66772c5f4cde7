"""ReducedSetSVM: how near it comes to the machine, and what is learned afterwards."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from bagwise import Bags
from bagwise.solvers import Status
from bagwise.svm import LabelMeanSVM, RandomSetSVM, ReducedSetSVM
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel, scaled_bags

KERNELS = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
]
LAYOUTS = {
    "dense": lambda bags: Bags.from_list(bags),
    "csr": lambda bags: Bags(
        sparse.csr_array(np.concatenate(bags)), np.cumsum([0, *map(len, bags)])
    ),
}


def kernel_name(params):
    return params["kernel"]


def machine(**params):
    return LabelMeanSVM(tol=1e-8, **params)


@pytest.mark.parametrize("refit", ["intercept", "coef", None])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("params", [*KERNELS, {"kernel": "cosine"}], ids=kernel_name)
def test_enough_vectors_are_the_machine(params, layout, refit):
    bags, y = make_toy_bags(20, n_classes=3, kind="close")
    new, _ = make_toy_bags(10, kind="close", random_state=1)
    model = ReducedSetSVM(100, refit=refit, **params).fit(LAYOUTS[layout](bags), y)
    expected = machine(**params).fit(bags, y)
    tolerance = 1e-4 if refit == "coef" else 1e-6
    for call in ("decision_function", "instance_decision_function"):
        np.testing.assert_allclose(
            getattr(model, call)(LAYOUTS[layout](new)), getattr(expected, call)(new), atol=tolerance
        )
    np.testing.assert_array_equal(model.key_instances(new), expected.key_instances(new))
    assert not model.approximation_error_.any()
    assert model.result_.objective == model.result_.n_iter == 0
    assert isinstance(model.expansion_vectors_, np.ndarray)


@pytest.mark.parametrize("n_vectors", [1, 4])
@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
def test_error_is_the_distance_from_the_machine(params, n_vectors):
    """Eq. 15 of the paper, from all pairs of points."""
    bags, y = make_toy_bags(24, n_classes=3, kind="close")
    model = ReducedSetSVM(n_vectors, **params).fit(bags, y)
    dense = machine(**params).fit(bags, y)
    rows = np.vstack([dense.support_vectors_, model.expansion_vectors_])
    factors = np.hstack([dense.dual_coef_, -model.coef_])
    errors = np.einsum("ci,ij,cj->c", factors, instance_kernel(rows, rows, **params), factors)
    K = instance_kernel(dense.support_vectors_, dense.support_vectors_, **params)
    norms = np.einsum("ci,ij,cj->c", dense.dual_coef_, K, dense.dual_coef_)
    assert model.expansion_vectors_.shape == (n_vectors, 3)
    assert model.result_.objective == pytest.approx(errors.sum(), rel=1e-4)
    np.testing.assert_allclose(model.approximation_error_, errors / norms, rtol=1e-4)
    assert model.result_.lower_bound == 0
    assert model.machine_result_.objective == pytest.approx(dense.result_.objective, rel=1e-6)


def test_more_vectors_come_nearer():
    bags, y = make_toy_bags(40, 5, kind="close")
    errors = [ReducedSetSVM(n).fit(bags, y).approximation_error_[0] for n in (1, 5, 25)]
    assert 1 > errors[0] > 2 * errors[1] > 4 * errors[2] > 0


def test_scores_are_means_of_the_expansion():
    bags, y = make_toy_bags(24, kind="close")
    model = ReducedSetSVM(4, gamma=0.3).fit(bags, y)
    values = [instance_kernel(bag, model.expansion_vectors_, "rbf", 0.3) for bag in bags]
    scores = np.array([(v @ model.coef_[0]).mean() + model.intercept_[0] for v in values])
    np.testing.assert_allclose(model.decision_function(bags), scores, atol=1e-10)
    instance_scores = np.concatenate(values) @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.instance_decision_function(bags), instance_scores, atol=1e-10)


# ------------------------------------------------------------------------------- refitting


def test_without_refitting_the_intercept_is_the_machines():
    bags, y = make_toy_bags(24, kind="close")
    model = ReducedSetSVM(2, refit=None).fit(bags, y)
    expected = machine().fit(bags, y)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-6)


def test_refitted_intercept_minimises_the_loss():
    bags, y = make_toy_bags(24, kind="close")
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 24)
    kept, model = (
        ReducedSetSVM(2, C=3.0, refit=refit).fit(bags, y, weight) for refit in (None, "intercept")
    )
    np.testing.assert_array_equal(model.coef_, kept.coef_)
    scores = kept.decision_function(bags) - kept.intercept_[0]
    sign = 2.0 * y - 1.0

    def loss(b):
        return weight @ np.maximum(0.0, 1.0 - sign * (scores + b)) ** 2

    best = minimize_scalar(loss, bounds=(-5, 5), method="bounded", options={"xatol": 1e-9})
    assert model.intercept_[0] == pytest.approx(best.x, abs=1e-6)
    assert abs(model.intercept_[0] - kept.intercept_[0]) > 1e-3


def test_refitted_factors_are_those_of_a_machine_on_these_vectors():
    bags, y = make_toy_bags(24, n_classes=3, kind="close")
    model = ReducedSetSVM(4, C=3.0, gamma=0.4, refit="coef").fit(bags, y)
    expected = RandomSetSVM(4, C=3.0, gamma=0.4, init=model.expansion_vectors_).fit(bags, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-8)


# ------------------------------------------------------------------------------- special cases


def test_one_vector_is_enough_for_two_classes_and_the_linear_kernel():
    bags, y = make_toy_bags(24, kind="close")
    model = ReducedSetSVM(1, kernel="linear", C=2.0).fit(bags, y)
    expected = machine(kernel="linear", C=2.0).fit(bags, y)
    np.testing.assert_allclose(model.coef_ @ model.expansion_vectors_, expected.coef_, atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(bags), expected.decision_function(bags), atol=1e-6
    )
    assert model.approximation_error_ == 0


def test_linear_classes_share_principal_directions():
    bags, y = make_toy_bags(40, 5, n_classes=4, kind="close")
    model = ReducedSetSVM(2, kernel="linear").fit(bags, y)
    weights = machine(kernel="linear").fit(bags, y).coef_
    lengths = np.linalg.svd(weights, compute_uv=False)
    assert model.result_.objective == pytest.approx((lengths[2:] ** 2).sum(), rel=1e-4)
    assert model.expansion_vectors_.shape == (2, 5)


def test_repeated_bags_need_no_more_vectors():
    bags, y = make_toy_bags(10, kind="close")
    n_instances = sum(map(len, bags))
    model = ReducedSetSVM(n_instances).fit(bags + bags, np.concatenate([y, y]))
    assert model.approximation_error_ == 0
    assert len(model.expansion_vectors_) <= n_instances


def test_labels_that_all_bags_have_or_none_has():
    bags, y = make_toy_bags(20, kind="close")
    lists = np.column_stack([np.ones(20, int), y, np.zeros(20, int)])
    model = ReducedSetSVM(5).fit(bags, lists)
    assert not model.coef_[[0, 2]].any()
    np.testing.assert_array_equal(model.intercept_[[0, 2]], [1.0, -1.0])
    np.testing.assert_array_equal(model.approximation_error_[[0, 2]], 0.0)
    nothing = ReducedSetSVM(5).fit(bags, lists[:, [0, 2]])
    assert nothing.expansion_vectors_.shape == (0, 3)
    np.testing.assert_array_equal(nothing.predict(bags), lists[:, [0, 2]])


def test_single_precision():
    bags, y = make_toy_bags(24, kind="close")
    single = [bag.astype(np.float32) for bag in bags]
    model = ReducedSetSVM(5, gamma=0.3).fit(single, y)
    expected = ReducedSetSVM(5, gamma=0.3).fit(bags, y)
    assert model.expansion_vectors_.dtype == np.float64
    np.testing.assert_allclose(model.approximation_error_, expected.approximation_error_, rtol=1e-2)


def test_an_unfinished_machine_is_no_converged_result(monkeypatch):
    bags, y = make_toy_bags(40, kind="close")
    cut = LabelMeanSVM(max_iter=1)
    monkeypatch.setattr(ReducedSetSVM, "_machine", lambda self: cut)
    with pytest.warns(ConvergenceWarning, match="ReducedSetSVM"):
        model = ReducedSetSVM(500).fit(bags, y)
    assert model.result_.status == model.machine_result_.status == Status.MAX_ITER


@pytest.mark.parametrize(
    "change",
    [
        {"n_vectors": 0},
        {"kernel": "laplacian"},
        {"kernel": "precomputed"},
        {"n_starts": 0},
        {"refit": "all"},
        {"refine": 2},
        {"tol": 0},
    ],
    ids=lambda change: "-".join(map(str, *change.items())),
)
def test_bad_parameters(change):
    bags, y = make_toy_bags()
    with pytest.raises(ValueError, match=f"'{next(iter(change))}' parameter of ReducedSetSVM"):
        ReducedSetSVM(**change).fit(bags, y)


# ------------------------------------------------------------------------------- real data


def test_musk1_with_many_vectors_is_the_machine(load_set):
    bags, y = scaled_bags(load_set("musk1"))
    model = ReducedSetSVM(100).fit(bags, y)
    expected = machine().fit(bags, y)
    assert model.approximation_error_[0] < 0.02
    assert (model.predict(bags) == expected.predict(bags)).mean() > 0.98


def test_default_parameters_work_on_musk1(load_set):
    bags, y = scaled_bags(load_set("musk1"))
    assert cross_val_score(ReducedSetSVM(), bags, y, cv=3).mean() > 0.75
