"""What the machines on bags as wholes share: given kernels, functions as kernels, expansions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

from bagwise.persistence import load, save
from bagwise.svm import (
    LabelMeanSVM,
    MIGraphSVM,
    MIKernelSVM,
    MinimaxKernelSVM,
    StatisticKernelSVM,
)
from bagwise.testing import make_toy_bags
from svm.naive import set_kernel, solve_dual

HINGE = [
    MIKernelSVM(),
    MIKernelSVM(normalization="feature_space"),
    StatisticKernelSVM(),
    MinimaxKernelSVM(),
    MIGraphSVM(),
    MIGraphSVM(graph="edges"),
]
FAMILY = [*HINGE, LabelMeanSVM()]


def given(estimator, **params):
    params = {**estimator.get_params(), "tol": 1e-9, "kernel": "precomputed", **params}
    return type(estimator)(**params)


def gram(n_bags=24):
    bags, y = make_toy_bags(n_bags, kind="close")
    return set_kernel(bags, bags, "average", kernel="rbf", gamma=0.3), y


@pytest.mark.parametrize("estimator", HINGE, ids=repr)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_given_kernel_is_that_of_an_ordinary_svm(estimator, layout):
    K, y = gram()
    coef, intercept, objective = solve_dual(K, 2.0 * y - 1.0, 3.0)
    model = given(estimator, C=3.0).fit(layout(K), y)
    np.testing.assert_allclose(model.decision_function(layout(K)), K @ coef + intercept, atol=1e-6)
    assert model.result_.objective == pytest.approx(objective, rel=1e-8)
    assert not hasattr(model, "instance_decision_function")
    assert not hasattr(model, "support_vectors_")


@pytest.mark.parametrize("estimator", FAMILY, ids=repr)
def test_given_kernel_with_weights_of_zero(estimator, tmp_path):
    K, y = gram()
    weight = np.ones(len(y))
    weight[[0, 5, 6, 23]] = 0.0
    kept = np.flatnonzero(weight)
    model = given(estimator).fit(K, y, sample_weight=weight)
    expected = given(estimator).fit(K[np.ix_(kept, kept)], y[kept])
    scores = model.decision_function(K)
    np.testing.assert_allclose(scores, expected.decision_function(K[:, kept]), atol=1e-6)
    assert np.isin(model.support_, kept).all()
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").decision_function(K), scores)


@pytest.mark.parametrize("estimator", FAMILY, ids=repr)
def test_given_kernel_in_model_selection(estimator):
    """Splitters must take columns along with rows."""
    K, y = gram(30)
    model = given(estimator)
    search = GridSearchCV(model, {"C": [0.1, 10.0]}, cv=3).fit(K, y)
    assert search.predict(K).shape == y.shape
    scores = cross_val_score(model, K, y, cv=3)
    if estimator in HINGE:
        ordinary = SVC(C=model.C, kernel="precomputed", tol=1e-8)
        np.testing.assert_array_equal(scores, cross_val_score(ordinary, K, y, cv=3))


@pytest.mark.parametrize("estimator", FAMILY, ids=repr)
def test_matrices_that_are_no_kernel(estimator):
    K, y = gram()
    name = type(estimator).__name__
    model = given(estimator)
    with pytest.raises(ValueError, match=rf"{name}.fit needs a square matrix.* \(24, 20\)"):
        model.fit(K[:, :20], y)
    lopsided = K.copy()
    lopsided[3, 7] += 0.5
    with pytest.raises(
        ValueError, match=rf"{name}: the precomputed kernel must be symmetric.*0\.5"
    ):
        model.fit(lopsided, y)
    with pytest.raises(
        ValueError, match=rf"{name} takes a matrix with one row for each bag.*2 rows"
    ):
        model.fit([K[:2], *(row[None, :] for row in K[2:])], y[1:])
    model.fit(K, y)
    with pytest.raises(ValueError, match=r"20 features.*expecting 24"):
        model.decision_function(K[:, :20])
    with pytest.raises(ValueError, match="one row for each bag"):
        model.decision_function([K[:2]])


@pytest.mark.parametrize("estimator", FAMILY, ids=repr)
def test_indefinite_matrix_warns_and_says_by_how_much(estimator):
    K, y = gram()
    values, vectors = np.linalg.eigh(K)
    values[0] = -0.25 * values[-1]
    indefinite = vectors * values @ vectors.T
    with pytest.warns(UserWarning, match=r"not positive semi-definite.* -0\.25 times"):
        given(estimator, C=0.1, tol=1e-3).fit((indefinite + indefinite.T) / 2, y)


def test_squared_hinge_may_have_no_optimum():
    """The dual grows without bound along an eigenvector that 1 / (2 C) does not make up for."""
    K = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [2.0, 0.0, 1.0]])
    model = LabelMeanSVM(0.1, kernel="precomputed")
    with pytest.warns(UserWarning, match=r"-0\.33 times"):
        model.fit(K, [0, 0, 1])
    match = r"LabelMeanSVM: the kernel between bags, with 1 / \(2 C\).*no optimum.* -0\.14 times"
    with pytest.warns(UserWarning, match="semi-definite"), pytest.raises(ValueError, match=match):
        model.set_params(C=1.0).fit(K, [0, 0, 1])


@pytest.mark.parametrize("estimator", FAMILY, ids=repr)
def test_given_kernel_in_single_precision(estimator):
    K, y = gram()
    model = given(estimator).fit(K.astype(np.float32), y)
    expected = given(estimator).fit(K, y).decision_function(K)
    np.testing.assert_allclose(model.decision_function(K.astype(np.float32)), expected, atol=1e-4)


@pytest.mark.parametrize("estimator", FAMILY, ids=repr)
def test_function_as_kernel(estimator):
    bags, y = make_toy_bags(20, kind="close")
    params = {**estimator.get_params(), "gamma": 0.5, "degree": 2, "coef0": 1.0, "tol": 1e-9}
    named = type(estimator)(**{**params, "kernel": "poly"}).fit(bags, y)
    called = type(estimator)(**{**params, "kernel": lambda a, b: (0.5 * a @ b.T + 1.0) ** 2})
    scores = called.fit(bags, y).decision_function(bags)
    np.testing.assert_allclose(scores, named.decision_function(bags), atol=1e-5)


@pytest.mark.parametrize("estimator", FAMILY, ids=repr)
def test_function_that_is_no_kernel_warns(estimator):
    bags, y = make_toy_bags(20, kind="close")

    def sine(a, b):
        return np.sin(3.0 * a @ b.T)

    model = type(estimator)(**{**estimator.get_params(), "kernel": sine, "C": 0.01})
    with pytest.warns(UserWarning, match="is not positive semi-definite"):
        model.fit(bags, y)


@pytest.mark.parametrize(
    "estimator", [MIKernelSVM(), LabelMeanSVM(), StatisticKernelSVM(), MIGraphSVM()], ids=repr
)
def test_tags_claim_libsvm_only_where_it_has_the_kernel(estimator):
    for params in ({"approx": "nystroem"}, {"kernel": "laplacian"}, {"gamma": "2/d"}):
        changed = type(estimator)(**{**estimator.get_params(), **params})
        assert changed.__bagwise_tags__().supervised_analogue is None
