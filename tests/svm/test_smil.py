"""sMIL, stMIL and sbMIL: objectives by their formulas, optima by an interior-point method."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from bagwise import Bags
from bagwise.solvers import remembered, solve_qp
from bagwise.svm import SBMIL, SIL, SMIL, STMIL
from bagwise.svm._sbmil import best_share
from bagwise.svm._stmil import _TransductiveProblem
from bagwise.svm.machinery._problem import constant_solution
from bagwise.svm.machinery._sides import Sides
from bagwise.svm.machinery._trainer import LinearTrainer
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel, scale_gamma, scaled_bags, solve_dual

TRAINERS = {
    "rbf": {},
    "linear": {"kernel": "linear"},
    "nystroem": {"approx": "nystroem", "rank": 20, "random_state": 0},
    "cholesky": {"approx": "cholesky", "rank": 20},
    "fourier": {"approx": "fourier", "rank": 50, "random_state": 0},
    "cache": {"cache_size": 0.001},
}


def toy(n_bags=40, kind="close", **settings):
    bags, y = make_toy_bags(n_bags, kind=kind, **settings)
    return Bags.from_list(bags), y


def half_norm(model):
    if hasattr(model, "coef_"):
        return 0.5 * float(model.coef_[0] @ model.coef_[0])
    K = instance_kernel(model.support_vectors_, model.support_vectors_, "rbf", gamma=model.gamma_)
    return 0.5 * float(model.dual_coef_[0] @ K @ model.dual_coef_[0])


def mean_sizes(bags, y):
    """Return the mean sizes of negative and of positive bags."""
    return [bags.sizes[y == side].mean() for side in (0, 1)]


def smil_loss(C, scores, bags, y, weight=None):
    """Return sMIL's loss, one bag after the other."""
    weight = np.ones(len(y)) if weight is None else weight
    size, _ = mean_sizes(bags, y)
    total = 0.0
    for i, (a, b) in enumerate(pairwise(bags.offsets)):
        if y[i] == 1:
            total += size * weight[i] * max(2 / (b - a) - 1 - scores[a:b].mean(), 0.0)
        else:
            total += weight[i] * np.maximum(1 + scores[a:b], 0.0).sum()
    return C * total


def stmil_loss(C, scores, bags, y):
    negative_size, positive_size = mean_sizes(bags, y)
    either = np.maximum(1 - np.abs(scores[np.repeat(y, bags.sizes) == 1]), 0.0)
    return smil_loss(C, scores, bags, y) + C * negative_size / positive_size * either.sum()


def smil_matrix(bags, y):
    """Return the matrix that takes instances to the rows of sMIL, with signs and targets."""
    sizes = bags.sizes
    blocks = []
    for i, (a, b) in enumerate(pairwise(bags.offsets)):
        block = np.zeros((1 if y[i] else b - a, bags.n_instances))
        block[:, a:b] = 1.0 / (b - a) if y[i] else np.eye(b - a)
        blocks.append(block)
    repeats = np.where(y == 1, 1, sizes)
    sign = np.repeat(np.where(y == 1, 1.0, -1.0), repeats)
    target = np.repeat(np.where(y == 1, 2.0 / sizes - 1.0, 1.0), repeats)
    return np.vstack(blocks), sign, target


def solve_rows(K, sign, target, cost):
    """Return scores of the rows without intercept, and the optimum, by the conic solver."""
    n = len(sign)
    result = solve_qp(
        K * np.outer(sign, sign),
        -target,
        A_eq=sign[None, :],
        b_eq=np.zeros(1),
        lower=np.zeros(n),
        upper=cost,
        tol=1e-11,
    )
    return K @ (sign * result.x), -result.objective


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("kind", ["close", "witness"])
def test_smil_has_the_objective_of_the_docstring(trainer, kind):
    bags, y = toy(kind=kind, max_size=6)
    model = SMIL(C=0.3, **TRAINERS[trainer]).fit(bags, y)
    value = half_norm(model) + smil_loss(0.3, model.instance_decision_function(bags), bags, y)
    assert model.result_.objective == pytest.approx(value, rel=1e-5)
    assert model.result_.converged


@pytest.mark.parametrize("kind", ["close", "witness"])
@pytest.mark.parametrize("C", [0.05, 10.0])
def test_smil_is_the_optimum_of_the_conic_solver(kind, C):
    bags, y = toy(24, kind)
    model = SMIL(C=C, tol=1e-9).fit(bags, y)
    S, sign, target = smil_matrix(bags, y)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=scale_gamma(bags.instances))
    cost = np.where(sign > 0, C * bags.sizes[y == 0].mean(), C)
    margin, objective = solve_rows(S @ K @ S.T, sign, target, cost)
    assert model.result_.objective == pytest.approx(objective, rel=1e-6)
    got = S @ model.instance_decision_function(bags)
    np.testing.assert_allclose(got - got.mean(), margin - margin.mean(), atol=1e-4)


@pytest.mark.parametrize("C", [0.05, 10.0])
def test_balanced_classes_are_the_costs_of_the_paper(C):
    """There, each side is a mean: C / N_- for a negative instance, C / m_+ for a positive bag."""
    bags, y = toy(36, max_size=6)
    bags, y = bags[6:], y[6:] * (np.arange(30) % 3 > 0)  # few positive ones
    n_negative = bags.sizes[y == 0].sum()
    costs = {0: C, 1: C * n_negative / (y == 1).sum()}
    S, sign, target = smil_matrix(bags, y)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=scale_gamma(bags.instances))
    _, objective = solve_rows(S @ K @ S.T, sign, target, np.where(sign > 0, costs[1], costs[0]))
    converted = 2 * (y == 0).sum() / (len(y) * n_negative) * (C * n_negative)
    model = SMIL(C=converted, class_weight="balanced", tol=1e-9).fit(bags, y)
    assert model.result_.objective == pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize("C", [0.2, 5.0])
def test_smil_of_single_instances_is_an_svm(C):
    bags, y = toy(30, max_size=1)
    y = np.where(np.arange(30) < 10, 1, y)
    model = SMIL(C=C, tol=1e-9).fit(bags, y)
    svc = SVC(C=C, tol=1e-9).fit(bags.instances, y)
    optimum = model.decision_function(bags) - model.intercept_shift_
    np.testing.assert_allclose(optimum, svc.decision_function(bags.instances), atol=2e-4)


def test_smil_scores_bags_by_their_mean_and_size():
    bags, y = toy(30, n_classes=3, max_size=6)
    model = SMIL().fit(bags, y)
    scores = model.instance_decision_function(bags)
    for i, (a, b) in enumerate(pairwise(bags.offsets)):
        expected = scores[a:b].mean(axis=0) - (1 / (b - a) - 1)
        np.testing.assert_allclose(model.decision_function(bags)[i], expected, atol=1e-12)


def test_class_weight_multiplies_the_costs_of_smil():
    bags, y = toy(30)
    model = SMIL(C=0.2, class_weight={0: 0.5, 1: 3.0}).fit(bags, y)
    scores = model.instance_decision_function(bags)
    loss = smil_loss(0.2, scores, bags, y, np.array([0.5, 3.0])[y])
    assert model.result_.objective == pytest.approx(half_norm(model) + loss, rel=1e-5)


@pytest.mark.parametrize("cls", [SMIL, STMIL, SBMIL])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_weights_are_repetitions(cls, kernel):
    bags, y = make_toy_bags(20, kind="close")
    weight = np.random.default_rng(1).integers(0, 4, 20)
    repeated = [bag for bag, times in zip(bags, weight, strict=True) for _ in range(times)]
    params = {"kernel": kernel, "C": 5.0, "tol": 1e-9}
    weighted = cls(**params).fit(bags, y, sample_weight=weight)
    twice = cls(**params).fit(repeated, np.repeat(y, weight))
    assert weighted.result_.objective == pytest.approx(twice.result_.objective, rel=1e-7)
    np.testing.assert_allclose(
        weighted.decision_function(bags), twice.decision_function(bags), atol=1e-5
    )


# ---------------------------------------------------------------------------------------- stMIL


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("kind", ["close", "witness"])
def test_stmil_has_the_objective_of_the_docstring_and_it_falls(trainer, kind):
    bags, y = toy(kind=kind, max_size=6)
    model = STMIL(C=0.3, **TRAINERS[trainer]).fit(bags, y)
    value = half_norm(model) + stmil_loss(0.3, model.instance_decision_function(bags), bags, y)
    assert model.result_.objective == pytest.approx(value, rel=1e-5)
    assert model.result_.converged
    history = model.result_.history
    assert len(history) == model.n_iter_ + 1
    assert (np.diff(history) <= 1e-9 * history[0]).all()
    assert history[-1] == pytest.approx(model.result_.objective, rel=1e-6)


def test_stmil_starts_at_smil():
    bags, y = toy(30)
    smil = SMIL(C=0.3).fit(bags, y)
    start = half_norm(smil) + stmil_loss(0.3, smil.instance_decision_function(bags), bags, y)
    assert STMIL(C=0.3).fit(bags, y).result_.history[0] == pytest.approx(start, rel=1e-6)


def test_stmil_ends_where_its_own_labels_are_best():
    """The convex problem with the signs of the final scores has the model as its solution."""
    bags, y = toy(24)
    C = 0.2
    model = STMIL(C=C, tol=1e-9).fit(bags, y)
    scores = model.instance_decision_function(bags)
    S, sign, target = smil_matrix(bags, y)
    free = np.flatnonzero(np.repeat(y, bags.sizes) == 1)
    negative_size, positive_size = mean_sizes(bags, y)
    cost = np.where(sign > 0, C * negative_size, C)
    rows = np.vstack([S, np.eye(bags.n_instances)[free]])
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=scale_gamma(bags.instances))
    _, objective = solve_rows(
        rows @ K @ rows.T,
        np.concatenate([sign, np.where(scores[free] >= 0, 1.0, -1.0)]),
        np.concatenate([target, np.ones(len(free))]),
        np.concatenate([cost, np.full(len(free), C * negative_size / positive_size)]),
    )
    assert model.result_.objective == pytest.approx(objective, rel=1e-6)


def test_stmil_from_many_starts_finds_what_enumeration_finds():
    rng = np.random.default_rng(7)
    bags = Bags.from_list([rng.normal(size=(2, 2)) + (i < 3) * 0.9 for i in range(6)])
    y = (np.arange(6) < 3).astype(int)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=0.5)
    S, sign, target = smil_matrix(bags, y)
    rows = np.vstack([S, np.eye(12)[:6]])
    cost = np.concatenate([np.where(sign > 0, 2.0 * 1.5, 1.5), np.full(6, 1.5)])
    values = [
        solve_rows(
            rows @ K @ rows.T,
            np.concatenate([sign, labels]),
            np.concatenate([target, np.ones(6)]),
            cost,
        )[1]
        for labels in product([1.0, -1.0], repeat=6)
    ]
    many = STMIL(C=1.5, gamma=0.5, tol=1e-9, n_init=60, random_state=0).fit(bags, y)
    assert many.result_.objective == pytest.approx(min(values), rel=1e-6)


@pytest.mark.parametrize("seed", [4, 8])
def test_order_does_not_matter_to_stmil_where_scores_are_zero(seed):
    """On a grid, the linear kernel gives many instances a score that is 0 but for rounding."""
    bags, y = make_toy_bags(24, kind="witness", max_size=5, random_state=seed)
    bags = [np.round(2.0 * bag) / 2.0 for bag in bags]
    rng = np.random.default_rng(seed)
    order = rng.permutation(24)
    shuffled = [rng.permutation(bags[i]) for i in order]
    objective = STMIL(kernel="linear").fit(bags, y).result_.objective
    other = STMIL(kernel="linear").fit(shuffled, y[order]).result_.objective
    assert other == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize("n_positive", [0, 1, 2])
def test_multipliers_of_means_give_way_to_those_of_instances(n_positive):
    """The weights stay, the dual rises as far as the bounds permit."""
    bags, y = toy(8)
    sides, C = Sides.of(bags.offsets, np.where(y == 1, 1.0, -1.0)), 0.7
    problem = _TransductiveProblem(
        LinearTrainer(bags.instances, bags.offsets), sides, np.full(len(y), C)
    )
    rng = np.random.default_rng(0)
    sizes, n_negative, n_mean = bags.sizes[y == 1], len(sides.negatives), len(sides.means)
    place = np.concatenate([np.arange(size) for size in sizes])
    rows = problem._rows(np.where(place < n_positive, 1.0, -1.0))
    alpha = rng.uniform(0.0, 1.0, len(rows.index)) * rows.cost
    start = replace(constant_solution(bags.n_instances, 1.0), rows=rows, beta=rows.sign * alpha)
    end = problem.shifted(rows, start)
    moved = rows.sign * end.beta
    assert (moved >= 0.0).all()
    assert (moved <= rows.cost).all()
    np.testing.assert_allclose(
        end.instance_coef(bags.sizes), start.instance_coef(bags.sizes), atol=1e-12
    )
    assert end.beta.sum() == pytest.approx(start.beta.sum(), abs=1e-10)
    step = (moved - alpha)[n_negative : n_negative + n_mean]
    rise = rows.target @ (moved - alpha)
    assert rise == pytest.approx(2.0 * (1 - n_positive) * (step / sizes).sum(), abs=1e-10)
    assert rise > 0.0 or n_positive == 1
    ends_at_bound = np.minimum(moved, rows.cost - moved)[n_negative:] < 1e-12
    bag = np.concatenate([np.arange(n_mean), np.repeat(np.arange(n_mean), sizes)])
    assert (np.bincount(bag, ends_at_bound) > 0).all() or n_positive == 1


def errors(threshold, scores, sign, weight):
    return weight[np.where(scores > threshold, 1.0, -1.0) != sign].sum()


def test_stmil_threshold_is_the_best_one_for_its_training_bags():
    bags, y = toy(40, "close", max_size=6)
    model = STMIL(C=0.1, gamma=0.05).fit(bags, y)
    scores = model.decision_function(bags)
    sign = np.where(y == 1, 1.0, -1.0)
    mistakes = errors(0.0, scores, sign, np.ones(40))
    shifts = np.linspace(scores.min() - 1, scores.max() + 1, 2000)
    assert mistakes == min(errors(t, scores, sign, np.ones(40)) for t in shifts)


# ---------------------------------------------------------------------------------------- sbMIL


def sbmil_labels(model, bags, y):
    """Return the labels of instances that the second stage should have."""
    is_positive = np.repeat(y, bags.sizes) == 1
    first = SMIL(C=model.C, tol=model.tol).fit(bags, y).instance_decision_function(bags)
    n = is_positive.sum()
    k = int(np.clip(np.ceil(model.eta * n - 1e-9), (y == 1).sum(), n))
    labels = np.full(bags.n_instances, -1.0)
    labels[np.flatnonzero(is_positive)[np.argsort(-first[is_positive])[:k]]] = 1.0
    return labels


@pytest.mark.parametrize("eta", [0.0, 0.3, 0.5, 0.77, 1.0])
def test_sbmil_trains_on_the_best_instances_of_smil(eta):
    bags, y = toy(24)
    model = SBMIL(C=3.0, eta=eta, tol=1e-9).fit(bags, y)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=scale_gamma(bags.instances))
    coef, intercept, objective = solve_dual(K, sbmil_labels(model, bags, y), 3.0)
    assert model.result_.objective == pytest.approx(objective, rel=1e-7)
    np.testing.assert_allclose(
        model.instance_decision_function(bags), K @ coef + intercept, atol=1e-5
    )


@pytest.mark.parametrize("trainer", TRAINERS)
def test_sbmil_with_all_instances_is_sil(trainer):
    bags, y = toy(24)
    model = SBMIL(C=2.0, eta=1.0, tol=1e-9, **TRAINERS[trainer]).fit(bags, y)
    sil = SIL(C=2.0, positive_cost=1.0, tol=1e-9, **TRAINERS[trainer]).fit(bags, y)
    np.testing.assert_allclose(
        model.decision_function(bags), sil.decision_function(bags), atol=1e-5
    )
    assert model.n_iter_ > sil.n_iter_


def test_share_is_weighted_and_keeps_equal_scores_together():
    sides = Sides.of(np.array([0, 2, 4, 6]), np.array([1.0, -1.0, 1.0]))
    scores = np.array([3.0, 1.0, 9.0, 9.0, 2.0, 0.0])  # unlabelled: 3, 1, 2, 0
    ones = np.ones(3)
    assert best_share(scores, sides, 0.5, ones).tolist() == [0, 2]
    assert best_share(scores, sides, 0.51, ones).tolist() == [0, 1, 2]
    assert best_share(scores, sides, 0.0, ones).tolist() == [0, 2]  # one for each bag
    assert best_share(scores, sides, 1.0, ones).tolist() == [0, 1, 2, 3]
    heavy = np.array([3.0, 1.0, 1.0])
    assert best_share(scores, sides, 0.5, heavy).tolist() == [0, 2]
    assert best_share(scores, sides, 0.51, heavy).tolist() == [0, 1, 2]
    scores[1] = 2.0
    assert best_share(scores, sides, 0.5, ones).tolist() == [0, 1, 2]


# ------------------------------------------------------------------------------------ all three


@pytest.mark.parametrize("cls", [SMIL, STMIL, SBMIL])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_of_weight_zero_is_not_there(cls, n_classes):
    bags, y = toy(30, n_classes=n_classes)
    for label in range(n_classes):
        model = cls(class_weight={label: 0.0}).fit(bags, y)
        assert model.result_.converged
        scores = model.decision_function(bags)
        against = scores[:, label] if n_classes > 2 else (2 * label - 1) * scores
        assert (against < 0).all()


@pytest.mark.parametrize("cls", [SMIL, STMIL, SBMIL])
def test_precomputed_kernel_equals_the_kernel(cls):
    bags, y = toy(24)
    new, _ = toy(10, random_state=1)
    gamma = scale_gamma(bags.instances)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=gamma)
    K_new = instance_kernel(new.instances, bags.instances, "rbf", gamma=gamma)
    given = cls(kernel="precomputed", tol=1e-8).fit(Bags(K, bags.offsets), y)
    plain = cls(tol=1e-8).fit(bags, y)
    np.testing.assert_allclose(
        given.decision_function(Bags(K_new, new.offsets)), plain.decision_function(new), atol=1e-5
    )


@pytest.mark.parametrize("cls", [SMIL, STMIL, SBMIL])
def test_linear_kernel_by_features_and_by_gram_matrix(cls):
    bags, y = toy(30)
    by_features = cls(C=5.0, kernel="linear", tol=1e-9).fit(bags, y)
    by_gram = cls(C=5.0, kernel=lambda A, B: A @ B.T, tol=1e-9).fit(bags, y)
    np.testing.assert_allclose(
        by_features.decision_function(bags), by_gram.decision_function(bags), atol=1e-5
    )


@pytest.mark.parametrize(
    ("model", "least"), [(SMIL(), 0.8), (STMIL(), 0.65), (SBMIL(), 0.72)], ids=["s", "st", "sb"]
)
def test_default_parameters_work_on_musk1(model, least, load_set):
    bags, y = scaled_bags(load_set("musk1"))
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    assert cross_val_score(model, bags, y, cv=folds).mean() >= least


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (SBMIL(eta=1.1), "eta"),
        (SBMIL(eta=-0.1), "eta"),
        (STMIL(n_init=0), "n_init"),
        (SMIL(C=0), "C"),
    ],
    ids=["above", "below", "starts", "cost"],
)
def test_bad_parameters_are_refused(model, name):
    bags, y = toy(10)
    with pytest.raises(ValueError, match=rf"'{name}' parameter of {type(model).__name__}"):
        model.fit(bags, y)


def test_the_second_stage_of_sbmil_uses_what_the_first_has_computed(monkeypatch):
    monkeypatch.setattr("bagwise.svm.machinery._representation._FORMED", 0)
    rng = np.random.default_rng(0)
    bags, y = [rng.normal(size=(4, 2)) + i % 2 for i in range(20)], np.arange(20) % 2
    made = []
    monkeypatch.setattr(
        "bagwise.svm.machinery._trainer.remembered",
        lambda rows, max_bytes: made.append(rows) or remembered(rows, max_bytes),
    )
    model = SBMIL(gamma=0.5).fit(bags, y)
    assert len(made) == 1
    monkeypatch.undo()
    expected = SBMIL(gamma=0.5).fit(bags, y).decision_function(bags)
    np.testing.assert_allclose(model.decision_function(bags), expected, atol=1e-5)
