"""MissSVM: the objective by its formula, optima by enumeration, and a threshold that works."""

from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score

from bagwise import Bags
from bagwise.svm import MISVM, MissSVM, _misssvm
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
COSTS = {
    "balanced": {},
    "numbers": {"unlabelled_cost": 0.5, "bag_cost": 4.0},
    "light": {"unlabelled_cost": 2.0, "bag_cost": 0.5},
}


def toy(n_bags=40, kind="close", **settings):
    bags, y = make_toy_bags(n_bags, kind=kind, **settings)
    return Bags.from_list(bags), y


def half_norm(model):
    if hasattr(model, "coef_"):
        return 0.5 * float(model.coef_[0] @ model.coef_[0])
    K = instance_kernel(model.support_vectors_, model.support_vectors_, "rbf", gamma=model.gamma_)
    return 0.5 * float(model.dual_coef_[0] @ K @ model.dual_coef_[0])


def factors(model, bags, y):
    """Return what an unlabelled instance and a positive bag cost in units of C."""
    negative_size, positive_size = (bags.sizes[y == side].mean() for side in (0, 1))
    unlabelled, bag = model.unlabelled_cost, model.bag_cost
    return (
        negative_size / positive_size if unlabelled == "balanced" else unlabelled,
        negative_size if bag == "balanced" else bag,
    )


def loss(model, bags, y):
    scores = model.instance_decision_function(bags)
    unlabelled, bag = factors(model, bags, y)
    total = 0.0
    for label, (a, b) in zip(y, pairwise(bags.offsets), strict=True):
        f = scores[a:b]
        if label:
            either = np.minimum(np.maximum(1.0 - f, 0.0), np.maximum(1.0 + f, 0.0))
            total += unlabelled * either.sum() + bag * max(1.0 - f.max(), 0.0)
        else:
            total += np.maximum(1.0 + f, 0.0).sum()
    return model.C * total


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("kind", ["close", "witness"])
def test_objective_is_the_one_in_the_docstring_and_falls(trainer, costs, kind):
    bags, y = toy(kind=kind, max_size=6)
    model = MissSVM(C=2.0, **TRAINERS[trainer], **COSTS[costs]).fit(bags, y)
    assert model.result_.objective == pytest.approx(
        half_norm(model) + loss(model, bags, y), rel=1e-5
    )
    assert model.result_.converged
    history = model.result_.history
    assert len(history) == model.n_iter_ + 1
    assert (np.diff(history) <= 1e-9 * history[0]).all()


@pytest.mark.parametrize("costs", COSTS)
def test_ends_where_its_own_choice_is_best(costs):
    """The convex problem of the final labels and key instances has the model as its solution.

    With a light bag, key instances have the label -1 as well: these are two rows. One start: at the
    end of others, instances on the margin tie, and its own choice cannot be told from the scores.
    """
    bags, y = toy(30)
    model = MissSVM(C=2.0, tol=1e-9, n_init=1, **COSTS[costs]).fit(bags, y)
    scores = model.instance_decision_function(bags)
    unlabelled, bag = factors(model, bags, y)
    is_positive = np.repeat(y, bags.sizes) == 1
    keys = (bags.offsets[:-1] + model.key_instances(bags))[y == 1]
    index = np.concatenate([np.arange(bags.n_instances), keys])
    sign = np.where(is_positive & (scores >= 0), 1.0, -1.0)
    cost = np.where(is_positive, unlabelled, 1.0)
    K = instance_kernel(*(bags.instances[index],) * 2, "rbf", gamma=scale_gamma(bags.instances))
    _, _, objective = solve_dual(
        K,
        np.concatenate([sign, np.ones(len(keys))]),
        2.0 * np.concatenate([cost, np.full(len(keys), bag)]),
    )
    assert model.result_.objective == pytest.approx(objective, rel=1e-6)


def test_a_light_bag_leaves_key_instances_on_the_negative_side():
    """Otherwise the test above would not have seen an instance with both signs."""
    bags, y = toy(30)
    model = MissSVM(C=2.0, **COSTS["light"]).fit(bags, y)
    assert (model.decision_function(bags)[y == 1] < 0).any()


@pytest.mark.parametrize("seed", range(6))
def test_order_of_instances_on_the_margin_does_not_matter(seed):
    bags, y = make_toy_bags(24, kind="close", random_state=seed)
    rng = np.random.default_rng(seed)
    shuffled = [rng.permutation(bag) for bag in bags]
    objective = MissSVM().fit(bags, y).result_.objective
    assert MissSVM().fit(shuffled, y).result_.objective == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize(("lead", "key"), [(1e-3, 1), (3e-3, 0)])
def test_a_key_instance_stays_unless_another_leads_by_more_than_the_solver_knows(
    monkeypatch, lead, key
):
    problems = []

    class Noting(_misssvm._SemiSupervisedProblem):
        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)
            problems.append(self)

    monkeypatch.setattr(_misssvm, "_SemiSupervisedProblem", Noting)
    MissSVM(tol=1e-3).fit([[[0.0], [0.1], [5.0]], [[5.0]]], [1, 0])
    [problem] = problems
    rows = problem._rows(np.array([1.0, 1.0, -1.0]), np.array([1]))
    x = SimpleNamespace(scores=np.array([1.0 + lead, 1.0, -1.0, -1.0]), rows=rows)
    assert problem.majorize(x).keys.tolist() == [key]


@pytest.mark.parametrize("seed", [0, 16])
def test_order_does_not_matter_where_scores_are_zero(seed):
    """On a grid, the linear kernel gives many instances a score that is 0 but for rounding."""
    bags, y = make_toy_bags(24, kind="witness", max_size=5, random_state=seed)
    bags = [np.round(2.0 * bag) / 2.0 for bag in bags]
    rng = np.random.default_rng(seed)
    order = rng.permutation(24)
    shuffled = [rng.permutation(bags[i]) for i in order]
    objective = MissSVM(kernel="linear").fit(bags, y).result_.objective
    other = MissSVM(kernel="linear").fit(shuffled, y[order]).result_.objective
    assert other == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize("bag_cost", [0.5, 4.0])
def test_enumeration_finds_nothing_better_than_the_best_of_many_starts(bag_cost):
    rng = np.random.default_rng(7)
    bags = Bags.from_list([rng.normal(size=(2, 2)) + (i < 3) * 0.9 for i in range(6)])
    y = (np.arange(6) < 3).astype(int)
    values = []
    for keys in product(range(2), repeat=3):
        index = np.concatenate([np.arange(12), np.array([0, 2, 4]) + keys])
        K = instance_kernel(*(bags.instances[index],) * 2, "rbf", gamma=0.5)
        cost = np.concatenate([np.full(6, 0.5), np.ones(6), np.full(3, bag_cost)])
        for labels in product([1.0, -1.0], repeat=6):
            sign = np.concatenate([labels, np.full(6, -1.0), np.ones(3)])
            values.append(solve_dual(K, sign, cost)[2])
    many = MissSVM(
        C=1.0, unlabelled_cost=0.5, bag_cost=bag_cost, gamma=0.5,
        tol=1e-9, n_init=40, random_state=0,
    ).fit(bags, y)  # fmt: skip
    assert many.result_.objective == pytest.approx(min(values), rel=1e-6)


@pytest.mark.parametrize("kind", ["close", "witness"])
def test_without_the_loss_of_unlabelled_instances_it_is_mi_svm(kind):
    bags, y = toy(kind=kind)
    model = MissSVM(C=2.0, unlabelled_cost=0.0, bag_cost=1.0, kernel="linear").fit(bags, y)
    other = MISVM(C=2.0, kernel="linear").fit(bags, y)
    assert model.result_.objective == pytest.approx(other.result_.objective, rel=1e-5)
    np.testing.assert_allclose(
        model.decision_function(bags), other.decision_function(bags), atol=1e-3
    )


@pytest.mark.parametrize("costs", COSTS)
def test_weights_are_repetitions(costs):
    bags, y = make_toy_bags(20, kind="close")
    weight = np.random.default_rng(1).integers(0, 4, 20)
    repeated = [bag for bag, times in zip(bags, weight, strict=True) for _ in range(times)]
    weighted = MissSVM(tol=1e-9, **COSTS[costs]).fit(bags, y, sample_weight=weight)
    twice = MissSVM(tol=1e-9, **COSTS[costs]).fit(repeated, np.repeat(y, weight))
    assert weighted.result_.objective == pytest.approx(twice.result_.objective, rel=1e-7)
    np.testing.assert_allclose(
        weighted.decision_function(bags), twice.decision_function(bags), atol=1e-5
    )


def test_precomputed_kernel_equals_the_kernel():
    bags, y = toy(24)
    new, _ = toy(10, random_state=1)
    gamma = scale_gamma(bags.instances)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=gamma)
    K_new = instance_kernel(new.instances, bags.instances, "rbf", gamma=gamma)
    given = MissSVM(kernel="precomputed", tol=1e-8).fit(Bags(K, bags.offsets), y)
    plain = MissSVM(tol=1e-8).fit(bags, y)
    np.testing.assert_allclose(
        given.decision_function(Bags(K_new, new.offsets)), plain.decision_function(new), atol=1e-5
    )


@pytest.mark.parametrize(
    "model",
    [MissSVM(), MissSVM(C=10.0, gamma="auto"), MissSVM(C=10.0, bag_cost=4.0, unlabelled_cost=1.0)],
    ids=["default", "large cost", "numbers"],
)
def test_predicts_as_well_as_it_ranks_on_musk1(model, load_set):
    """An intercept averaged over bound support vectors ranks as well and predicts at chance."""
    bags, y = scaled_bags(load_set("musk1"))
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    assert cross_val_score(model, bags, y, cv=folds).mean() >= 0.75


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"unlabelled_cost": -1.0}, "unlabelled_cost"),
        ({"unlabelled_cost": "none"}, "unlabelled_cost"),
        ({"bag_cost": 0.0}, "bag_cost"),
        ({"n_init": 0}, "n_init"),
    ],
    ids=["negative", "text", "zero", "starts"],
)
def test_bad_parameters_are_refused(params, name):
    bags, y = toy(10)
    with pytest.raises(ValueError, match=rf"'{name}' parameter of MissSVM"):
        MissSVM(**params).fit(bags, y)
