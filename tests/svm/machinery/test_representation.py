"""What kernels make of instances: fits anew, kernels that are no kernels, maps without features."""

import copy

import numpy as np
import pytest
from scipy import sparse

from bagwise import Bags
from bagwise.persistence import load, save
from bagwise.svm import (
    MISVM,
    SIL,
    SMIL,
    LabelMeanSVM,
    MIGraphSVM,
    MIKernelSVM,
    MissSVM,
    RegSVM,
    StatisticKernelSVM,
    miSVM,
)
from bagwise.testing import make_toy_bags

ON_INSTANCES = [SIL, MISVM, miSVM, SMIL, MissSVM]
ON_BAGS = [MIKernelSVM, LabelMeanSVM, RegSVM, MIGraphSVM, StatisticKernelSVM]
FORMS = [
    {"kernel": "rbf"},
    {"kernel": "linear"},
    {"kernel": "rbf", "approx": "cholesky"},
    {"kernel": "rbf", "approx": "fourier", "rank": 20},
]


@pytest.mark.parametrize("cls", [*ON_INSTANCES, *ON_BAGS])
def test_nothing_of_an_earlier_fit_with_another_kernel_stays(cls):
    bags, y = make_toy_bags(16, kind="close")
    default = {**cls().get_params(), "random_state": 0}
    fresh = [cls(**{**default, **form}).fit(bags, y) for form in FORMS]
    for first in fresh:
        for form, expected in zip(FORMS, fresh, strict=True):
            again = copy.deepcopy(first).set_params(**{**default, **form}).fit(bags, y)
            assert vars(again).keys() == vars(expected).keys()
            np.testing.assert_array_equal(
                again.decision_function(bags), expected.decision_function(bags)
            )


def test_a_refused_fit_leaves_the_earlier_one():
    bags, y = make_toy_bags(16)
    model = SIL(kernel="linear").fit(bags, y)
    scores = model.decision_function(bags)
    with pytest.raises(ValueError, match="two classes"):
        model.fit(bags, np.zeros(16))
    np.testing.assert_array_equal(model.decision_function(bags), scores)


def sine(a, b):
    return np.sin(3.0 * a @ b.T)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", [*ON_INSTANCES, *ON_BAGS])
def test_warning_of_an_indefinite_function_names_the_class_and_points_here(cls):
    bags, y = make_toy_bags(20, kind="close")
    match = rf"{cls.__name__}: the kernel.* is not positive semi-definite"
    with pytest.warns(UserWarning, match=match) as caught:
        cls(0.01, kernel=sine).fit(bags, y)
    [warning] = [w for w in caught if "semi-definite" in str(w.message)]
    assert warning.filename == __file__


def test_warning_of_an_indefinite_matrix_points_here():
    gram = np.eye(8)
    gram[1, 6] = gram[6, 1] = 3.0
    with pytest.warns(UserWarning, match="SIL: the precomputed kernel is not") as caught:
        SIL(kernel="precomputed").fit(gram, np.arange(8) % 2)
    assert caught[0].filename == __file__


LAYOUTS = {
    "dense": lambda X: X,
    "single": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("approx", ["cholesky", "nystroem"])
@pytest.mark.parametrize("cls", [*ON_INSTANCES, *ON_BAGS])
def test_a_kernel_that_is_zero_everywhere_has_no_landmarks(cls, approx, layout, tmp_path):
    bags = Bags(LAYOUTS[layout](np.zeros((24, 2))), np.arange(0, 25, 3))
    model = cls(kernel="poly", gamma=1.0, approx=approx).fit(bags, np.arange(8) % 2)
    assert model.support_vectors_.shape == (0, model.support_vectors_.shape[1])
    new = [np.ones((2, 2)), np.zeros((1, 2))]
    scores = model.decision_function(new)
    assert np.isfinite(scores).all()
    assert scores[0] == scores[1] or cls is SMIL  # whose threshold depends on the size
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").decision_function(new), scores)


def test_shared_slacks_without_landmarks():
    bags = Bags(np.zeros((24, 2)), np.arange(0, 25, 3))
    model = MISVM(kernel="poly", gamma=1.0, approx="cholesky", negative_slack="bag")
    assert np.isfinite(model.fit(bags, np.arange(8) % 2).decision_function(bags)).all()


@pytest.mark.parametrize("cls", [SIL, MISVM, miSVM])
def test_tags_claim_libsvm_only_where_it_has_the_kernel(cls):
    assert cls().__bagwise_tags__().supervised_analogue is not None
    for params in ({"approx": "cholesky"}, {"kernel": "laplacian"}, {"gamma": "2/d"}):
        assert cls(**params).__bagwise_tags__().supervised_analogue is None
