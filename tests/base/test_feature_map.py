"""Features that stand for a kernel, and functions of them as fitted attributes."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise.base import FeatureMap, KernelParameters, expand, linear_scores, make_features
from bagwise.exceptions import MemoryLimitError
from bagwise.kernels import InstanceKernel


class Model(KernelParameters):
    def __init__(self, kernel="rbf", gamma=0.3):
        self.kernel, self.gamma, self.degree, self.coef0 = kernel, gamma, 3, 0.0


def _made(kernel, instances, approx=None, rank=5):
    rng = np.random.default_rng(0)
    return make_features(kernel, instances, approx=approx, rank=rank, rng=rng, owner="Model")


INSTANCES = np.random.default_rng(7).normal(size=(12, 4))
OTHERS = np.random.default_rng(8).normal(size=(9, 4))
COEF = np.random.default_rng(9).normal(size=(2, 12))


@pytest.mark.parametrize("approx", [None, "cholesky", "nystroem", "fourier"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_attributes_score_as_the_features_do(approx, make):
    model = Model()
    feature_map, features = _made(InstanceKernel("rbf", gamma=0.3), make(INSTANCES), approx)
    np.testing.assert_allclose(feature_map.transform(make(INSTANCES)), features, atol=1e-12)
    coef = COEF[:, : features.shape[1]]
    fitted = feature_map.attributes(coef)
    assert fitted["gamma_"] == 0.3
    scores = expand(model, make(OTHERS), fitted)
    np.testing.assert_allclose(scores, feature_map.transform(make(OTHERS)) @ coef.T, atol=1e-10)
    assert "coef_" not in vars(model)  # nothing was put into the model
    assert "dual_coef_" not in vars(model)
    vars(model).update(fitted)
    assert np.array_equal(expand(model, make(OTHERS)), scores)


def test_exact_features_have_the_kernel_as_inner_products():
    kernel = InstanceKernel("rbf", gamma=0.3)
    _, features = _made(kernel, INSTANCES)
    squares = np.square(INSTANCES[:, None] - INSTANCES).sum(axis=2)
    np.testing.assert_allclose(features @ features.T, np.exp(-0.3 * squares), atol=1e-12)


def test_the_linear_kernel_has_the_instances_as_features():
    feature_map, features = _made(InstanceKernel("linear"), INSTANCES, "nystroem")
    assert features is INSTANCES
    assert feature_map.transform(OTHERS) is OTHERS
    coef = COEF[:, :4]
    assert feature_map.attributes(coef).keys() == {"coef_"}
    np.testing.assert_allclose(
        expand(Model("linear"), OTHERS, {"coef_": coef}), OTHERS @ coef.T, rtol=1e-12
    )


def test_a_kernel_that_is_zero_everywhere_has_one_feature_that_is_zero():
    kernel = InstanceKernel("poly", gamma=1.0)
    feature_map, features = _made(kernel, np.zeros((3, 2)))
    assert features.tolist() == [[0.0], [0.0], [0.0]]
    assert feature_map.transform(np.ones((2, 2))).tolist() == [[0.0], [0.0]]
    fitted = feature_map.attributes(np.array([[5.0]]))
    assert fitted["dual_coef_"].shape == (1, 0)
    assert expand(Model("poly"), np.ones((2, 2)), fitted).tolist() == [[0.0], [0.0]]


def test_refusals(monkeypatch):
    with pytest.raises(ValueError, match="Model with approx='fourier' needs kernel='rbf'"):
        _made(InstanceKernel("poly"), INSTANCES, "fourier")
    monkeypatch.setattr("bagwise.base._feature_map.MOST_EXACT", 11)
    with pytest.raises(MemoryLimitError, match="Model with an exact kernel takes at most 11"):
        _made(InstanceKernel("rbf"), INSTANCES)
    assert isinstance(_made(InstanceKernel("rbf"), INSTANCES, "cholesky")[0], FeatureMap)


@pytest.mark.parametrize("n", [3, 5000])
def test_linear_scores_have_the_same_bits_with_any_number_of_threads(n, monkeypatch):
    rng = np.random.default_rng(0)
    rows, coef = rng.normal(size=(n, 301)).astype(np.float32), rng.normal(size=(2, 301))
    made = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("BAGWISE_NUM_THREADS", threads)
        made.append(linear_scores(rows, coef))
        np.testing.assert_array_equal(made[-1], made[0])
        np.testing.assert_array_equal(linear_scores(rows, coef, np.asarray), made[0])
    np.testing.assert_allclose(made[0], rows.astype(float) @ coef.T, atol=1e-9)
