"""What every classifier says to input that it cannot learn from, and what it must take."""

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from bagwise import Bags, all_estimators
from bagwise.bags import _matrix
from bagwise.testing import make_toy_bags

CLASSIFIERS = {name: cls for name, cls in all_estimators() if is_classifier(cls())}
WITH_COST = [name for name, cls in CLASSIFIERS.items() if "C" in cls().get_params()]
WITH_GAMMA = [name for name, cls in CLASSIFIERS.items() if "gamma" in cls().get_params()]
WITH_MAP = [name for name, cls in CLASSIFIERS.items() if "approx" in cls().get_params()]
#: Their models are made of vectors of features: no kernel matrix can be given.
OF_VECTORS = ("SparseMI", "RandomSetSVM", "ReducedSetSVM", "MLCA", "MIMLCA")
WITH_KERNEL = [
    name
    for name, cls in CLASSIFIERS.items()
    if "kernel" in cls().get_params() and name not in OF_VECTORS
]


def takes_lists(name):
    return get_tags(CLASSIFIERS[name]()).classifier_tags.multi_label


def is_on_bags(name):
    """Tell whether a kernel matrix that is given is one between bags."""
    by_name = ("MIKernelSVM", "LabelMeanSVM", "MIGraphSVM")
    return name in by_name or "Statistic" in name or "Minimax" in name


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_is_refused(name):
    bags, _ = make_toy_bags(6)
    with pytest.raises(ValueError, match=rf"{name} needs bags of at least two classes.*'a'"):
        CLASSIFIERS[name]().fit(bags, ["a"] * 6)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_class_with_one_bag_is_learned(name):
    bags, y = make_toy_bags(12)
    y = np.where(np.arange(12) == int(np.flatnonzero(y)[0]), 1, 0)
    keep = np.flatnonzero((y == 1) | (np.arange(12) % 2 == 0))
    model = CLASSIFIERS[name]().fit([bags[i] for i in keep], y[keep])
    assert np.isfinite(model.decision_function(bags)).all()
    assert set(model.predict(bags)) <= {0, 1}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_as_many_classes_as_bags(name):
    bags, _ = make_toy_bags(5)
    model = CLASSIFIERS[name]().fit(bags, list("abcde"))
    assert model.decision_function(bags).shape == (5, 5)


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if takes_lists(name)])
def test_more_labels_than_bags(name):
    bags, _ = make_toy_bags(4)
    lists = np.random.default_rng(0).integers(0, 2, size=(4, 7))
    model = CLASSIFIERS[name]().fit(bags, lists)
    assert model.decision_function(bags).shape == (4, 7)
    assert model.predict(bags).shape == (4, 7)


@pytest.mark.parametrize("value", [0, -1.0, np.nan])
@pytest.mark.parametrize("name", WITH_COST)
def test_costs_must_be_positive(name, value):
    bags, y = make_toy_bags(6)
    with pytest.raises(ValueError, match=rf"'C' parameter of {name}"):
        CLASSIFIERS[name](C=value).fit(bags, y)


@pytest.mark.parametrize("value", [0.0, -2.0, "width", "0/d", "-1*scale"])
@pytest.mark.parametrize("name", WITH_GAMMA)
def test_gamma_must_be_positive_or_a_rule(name, value):
    bags, y = make_toy_bags(6)
    with pytest.raises(ValueError, match=rf"'gamma' parameter of {name}"):
        CLASSIFIERS[name](gamma=value).fit(bags, y)


@pytest.mark.parametrize("name", WITH_KERNEL)
def test_unknown_kernel_is_refused_with_the_list(name):
    bags, y = make_toy_bags(6)
    with pytest.raises(ValueError, match=rf"'kernel' parameter of {name}.*'rbf'"):
        CLASSIFIERS[name](kernel="gaussian").fit(bags, y)


@pytest.mark.parametrize("kernel", ["poly", "cosine", "chi2", np.dot])
@pytest.mark.parametrize("name", WITH_MAP)
def test_kernel_without_fourier_features(name, kernel):
    bags, y = make_toy_bags(6)
    bags = [abs(bag) for bag in bags]
    with pytest.raises(
        ValueError, match=rf"{name} with approx='fourier' needs kernel=.*Got kernel"
    ):
        CLASSIFIERS[name](kernel=kernel, approx="fourier").fit(bags, y)


@pytest.mark.parametrize("name", WITH_KERNEL)
def test_precomputed_kernel_of_the_wrong_shape(name):
    _, y = make_toy_bags(8)
    with pytest.raises(ValueError, match=rf"{name}.*square.*\(8, 7\)"):
        CLASSIFIERS[name](kernel="precomputed").fit(np.eye(8)[:, :7], y)
    model = CLASSIFIERS[name](kernel="precomputed").fit(np.eye(8), y)
    with pytest.raises(ValueError, match=r"8 features"):
        model.predict(np.eye(7))


@pytest.mark.parametrize("name", WITH_KERNEL)
def test_precomputed_kernel_that_is_not_symmetric(name):
    if name == "MICA":
        pytest.skip("the columns of its linear programme need not be a symmetric matrix")
    _, y = make_toy_bags(8)
    gram = np.eye(8)
    gram[1, 6] = 0.25
    with pytest.raises(ValueError, match=rf"{name}: the precomputed kernel must be symmetric"):
        CLASSIFIERS[name](kernel="precomputed").fit(gram, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", WITH_KERNEL)
def test_precomputed_kernel_that_is_indefinite(name):
    if name == "MICA":
        pytest.skip("the columns of its linear programme need not be a definite matrix")
    _, y = make_toy_bags(8)
    gram = np.eye(8)
    gram[1, 6] = gram[6, 1] = 3.0  # eigenvalues 4 and -2
    model = CLASSIFIERS[name](kernel="precomputed")
    squares = ("LabelMeanSVM", "InsKISVM", "BagKISVM", "ODM", "MIODM")
    squared = name in squares  # of slacks: there is no optimum
    refuses = pytest.raises(ValueError, match="semi-definite") if squared else nullcontext()
    warns = pytest.warns(UserWarning, match=r"not positive semi-definite.*-0\.5 times the largest")
    with warns, refuses:
        model.fit(gram, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", WITH_KERNEL)
def test_a_precomputed_kernel_may_be_larger_than_a_chunk(name, make, monkeypatch):
    """Rows of scattered bags are then read block by block, in a fit and by predictions."""
    monkeypatch.setattr(_matrix, "_CHUNK_BYTES", 1000)
    made, y = make_toy_bags(12)
    bags = Bags.from_list(made)
    offsets = np.arange(13) if is_on_bags(name) else bags.offsets
    X = np.asarray(bags.instances)[: offsets[-1]]
    given = Bags(make(X @ X.T), offsets)
    model = CLASSIFIERS[name](kernel="precomputed").fit(given, y)
    order = np.random.default_rng(0).permutation(12)
    scores, copied = (model.decision_function(b) for b in (given[order], given[order].compact()))
    np.testing.assert_allclose(scores, copied, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scores, model.decision_function(given)[order], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in WITH_KERNEL if is_on_bags(name)])
def test_bags_of_several_rows_are_no_kernel_between_bags(name):
    _, y = make_toy_bags(4)
    with pytest.raises(ValueError, match=rf"{name} takes a matrix with one row for each bag"):
        CLASSIFIERS[name](kernel="precomputed").fit(Bags(np.eye(8), [0, 2, 4, 6, 8]), y)


@pytest.mark.parametrize("name", OF_VECTORS[:3])
def test_expansions_take_no_matrix(name):
    _, y = make_toy_bags(8)
    with pytest.raises(ValueError, match=rf"'kernel' parameter of {name}.*precomputed"):
        CLASSIFIERS[name](kernel="precomputed").fit(np.eye(8), y)
