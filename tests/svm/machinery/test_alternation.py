"""The record of machines that alternate is that of the machine they return."""

import numpy as np
import pytest
from sklearn.svm import SVC

from bagwise.svm import MISVM, STMIL, MissSVM, miSVM
from bagwise.svm.machinery import _trainer
from bagwise.testing import make_toy_bags

MODELS = [MISVM(), MISVM(negative_slack="bag"), miSVM(), STMIL(), MissSVM()]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 2, 50])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_history_ends_at_the_objective(model, max_iter):
    for seed in range(3):
        bags, y = make_toy_bags(30, kind="close", random_state=seed)
        result = type(model)(**{**model.get_params(), "max_iter": max_iter}).fit(bags, y).result_
        assert len(result.history) == result.n_iter + 1 <= max_iter + 1
        assert result.history[-1] == result.objective
        assert (np.diff(result.history) <= 0).all()


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_start_that_is_best_already_is_put_into_instances(kernel):
    """The mean of equal instances is as good as they, but the model has to be made of them."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(12, 2)) + np.repeat([[1.0], [0.0]], 6, axis=0)
    bags, y = [np.repeat(point[None], 3, axis=0) for point in points], np.repeat([1, 0], 6)
    for C in (0.1, 10.0):
        model = MISVM(C, kernel=kernel, gamma=1.0, negative_slack="bag", tol=1e-9).fit(bags, y)
        ordinary = SVC(C=C, kernel=kernel, gamma=1.0, tol=1e-9).fit(points, y)
        expected = ordinary.decision_function(points)
        np.testing.assert_allclose(model.decision_function(bags), expected, atol=1e-4)
        result = model.result_
        loss = C * np.maximum(1.0 - (2 * y - 1) * model.decision_function(bags), 0.0).sum()
        assert loss <= result.objective
        assert result.history[-1] == result.objective
        assert (np.diff(result.history) <= 0).all()


def test_a_model_has_one_instance_of_each_positive_bag():
    """Also where the means of bags, which stand for them at the start, are as good."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(12, 2)) + np.repeat([[1.0], [0.0]], 6, axis=0)
    bags, y = [np.repeat(point[None], 3, axis=0) for point in points], np.repeat([1, 0], 6)
    for C in 10.0 ** np.linspace(-2.0, 2.0, 9):
        model = MISVM(C, gamma=1.0, n_init=1).fit(bags, y)
        positive = model.support_[model.support_ < 3 * 6] // 3
        assert len(np.unique(positive)) == len(positive)


@pytest.mark.parametrize(
    "model", [miSVM(gamma=0.3), STMIL(gamma=0.3), MissSVM(gamma=0.3)], ids=repr
)
def test_rounds_on_many_points_are_loose_and_the_last_is_exact(model, monkeypatch):
    monkeypatch.setattr(_trainer, "_FEW_POINTS", 0)
    asked, solve = [], _trainer.solve_svm_dual

    def noting(*arguments, tol, **settings):
        asked.append(tol)
        return solve(*arguments, tol=tol, **settings)

    monkeypatch.setattr(_trainer, "solve_svm_dual", noting)
    bags, y = make_toy_bags(40, kind="close", random_state=1)
    result = model.set_params(n_init=1).fit(bags, y).result_
    assert asked[0] == 1e-2
    assert asked[-1] == model.tol
    assert result.converged
    assert (np.diff(result.history) <= 0).all()
    if isinstance(model, miSVM):
        scores = [model.instance_decision_function([bag]) for bag in bags]
        labels = [label * ((f > 0) | (f == f.max())) for f, label in zip(scores, y, strict=True)]
        X = np.concatenate(bags)
        ordinary = SVC(C=model.C, gamma=0.3, tol=1e-9).fit(X, np.concatenate(labels))
        expected = ordinary.decision_function(X)
        np.testing.assert_allclose(np.concatenate(scores), expected, atol=1e-4)
