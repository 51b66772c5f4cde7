"""Ins-KI-SVM and Bag-KI-SVM: the problems of their docstrings, solved by a conic solver."""

from itertools import product

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import LinearSVC

from bagwise import Bags
from bagwise.exceptions import MemoryLimitError
from bagwise.solvers import AssignmentProblem, solve_qp
from bagwise.solvers.svm import _nu_svm_inner
from bagwise.svm import BagKISVM, InsKISVM
from bagwise.svm.machinery import _ki_machine
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel, scaled_bags

BOTH = [InsKISVM, BagKISVM]
PAPER = {"bias": 0.0, "threshold": "zero"}


def small_bags(seed=0, n_positive=3, n_negative=4, size=3):
    """Return overlapping bags of equal size, positive ones first."""
    rng = np.random.default_rng(seed)
    shift = np.repeat([0.7, 0.0], [n_positive, n_negative])
    bags = [rng.normal(size=(size, 2)) + s for s in shift]
    return Bags.from_list(bags), (shift > 0).astype(int)


def naive_rows(cls, bags, y, choice, C, negative_cost):
    """Return the weights of instances in each row, the signs and the costs, for key instances."""
    spans = list(zip(bags.offsets[:-1], bags.offsets[1:], strict=True))
    eye = np.eye(bags.n_instances)
    rows = [eye[spans[i][0] + j] for i, j in zip(np.flatnonzero(y == 1), choice, strict=True)]
    cost = [C] * len(rows)
    for i in np.flatnonzero(y == 0):
        start, stop = spans[i]
        if cls is InsKISVM:
            rows.extend(eye[start:stop])
            cost.extend([negative_cost * C] * (stop - start))
        else:
            rows.append(eye[start:stop].mean(axis=0))
            cost.append(C)
    sign = np.where(np.arange(len(rows)) < (y == 1).sum(), 1.0, -1.0)
    return np.array(rows), sign, np.array(cost)


def naive_hinge(K, rows, sign, cost):
    """Return the least objective of the squared hinge for given rows, and the weights of rows."""
    Q = (rows @ K @ rows.T) * np.outer(sign, sign) + np.diag(1.0 / cost)
    solved = solve_qp(Q, -np.ones(len(sign)), lower=0.0, tol=1e-10)
    return -solved.objective, solved.x


def naive_relaxation(K, many_rows, sign, cost):
    """Return the optimum over all mixtures: ``max_a sum(a) - max_d |..|^2 / 2 - a'Da / 2``."""
    n = len(sign)
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    cones = []
    for rows in many_rows:  # |v|^2 <= t as |(t - 1, 2 v)| <= t + 1
        G = np.zeros((2 + K.shape[0], n + 1))
        G[:2, n] = 1.0
        G[2:, :n] = 2.0 * (root.T @ rows.T) * sign
        cones.append((G, np.r_[1.0, -1.0, np.zeros(K.shape[0])]))
    P = np.diag(np.append(1.0 / cost, 0.0))
    q = np.append(-np.ones(n), 0.5)
    lower = np.append(np.zeros(n), -np.inf)
    return -solve_qp(P, q, lower=lower, cones=cones, tol=1e-9).objective


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("C", [0.3, 30.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_relaxation_over_all_assignments(cls, C, seed):
    bags, y = small_bags(seed)
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=0.5)
    params = {"negative_cost": 0.4} if cls is InsKISVM else {}
    model = cls(C, gamma=0.5, tol=1e-8, random_state=0, **PAPER, **params).fit(bags, y)
    choices = list(product(range(3), repeat=3))
    every = [naive_rows(cls, bags, y, choice, C, 0.4) for choice in choices]
    _, sign, cost = every[0]
    optimum = naive_relaxation(K, [rows for rows, _, _ in every], sign, cost)
    result = model.result_
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert result.lower_bound <= optimum * (1 + 1e-7)
    assert model.gap_estimate_ == pytest.approx(result.gap)
    assert 0.0 <= model.gap_estimate_ <= 1e-8 * result.objective
    single = min(naive_hinge(K, *rows)[0] for rows in every)
    assert result.objective <= single * (1 + 1e-7)
    assert (np.diff(result.history) <= 1e-12).all()
    assert result.history[-1] == pytest.approx(result.objective, rel=1e-14)


@pytest.mark.parametrize("cls", BOTH)
def test_factors_are_costs_of_what_is_missing_to_the_margin(cls):
    """The rows of negative bags are the same in all assignments, so their scores are known."""
    bags, y = make_toy_bags(40, kind="close", max_size=6)
    bags = Bags.from_list(bags)
    params = {"negative_cost": 0.4} if cls is InsKISVM else {}
    model = cls(2.0, tol=1e-9, random_state=0, **PAPER, **params).fit(bags, y)
    coef = np.zeros(bags.n_instances)
    coef[model.support_] = model.dual_coef_[0]
    f = model.instance_decision_function(bags)
    for start, stop, label in zip(bags.offsets[:-1], bags.offsets[1:], y, strict=True):
        part, scores = coef[start:stop], f[start:stop]
        if label:
            assert (part >= 0.0).all()
        elif cls is InsKISVM:
            expected = -0.8 * np.maximum(1.0 + scores, 0.0)
            np.testing.assert_allclose(part, expected, atol=1e-5)
        else:
            expected = -2.0 * max(1.0 + scores.mean(), 0.0) / len(scores)
            np.testing.assert_allclose(part, expected, atol=1e-5)
    assert model.result_.objective == pytest.approx(0.5 * np.abs(coef).sum(), rel=1e-6)


@pytest.mark.parametrize("cls", BOTH)
def test_bags_of_one_are_the_squared_hinge_in_nu_form(cls):
    """The problem of the paper, over ``w``, ``rho`` and slacks; the kernel is <x, y> + 1."""
    rng = np.random.default_rng(0)
    X, y, C, n = rng.normal(size=(30, 3)), np.arange(30) % 2, 3.0, 30
    X[y == 1] += 0.8
    model = cls(C, kernel="linear", threshold="zero", tol=1e-9).fit(X, y)
    features, sign = np.c_[X, np.ones(n)], 2.0 * y - 1.0
    P = np.diag(np.r_[np.ones(4), 0.0, np.full(n, C)])
    q = np.r_[np.zeros(4), -1.0, np.zeros(n)]
    margin = np.c_[-sign[:, None] * features, np.ones(n), -np.eye(n)]  # rho - s w.x <= xi
    solved = solve_qp(P, q, margin, np.zeros(n), tol=1e-10)
    w, rho = solved.x[:4], solved.x[4]
    np.testing.assert_allclose(model.decision_function(X), features @ w / rho, atol=1e-6)
    assert -0.25 / model.result_.objective == pytest.approx(solved.objective, rel=1e-6)
    # liblinear puts no 1/2 before its costs, and its intercept is a feature as well.
    other = LinearSVC(C=C / 2, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(X), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)


def test_negative_cost_counts_bags_unless_it_is_a_number():
    bags, y = make_toy_bags(20, kind="close")
    sizes = np.array([len(bag) for bag in bags])
    plain = InsKISVM(random_state=0).fit(bags, y)
    share = (y == 0).sum() / sizes[y == 0].sum()
    number = InsKISVM(negative_cost=share, random_state=0).fit(bags, y)
    np.testing.assert_allclose(number.dual_coef_, plain.dual_coef_, atol=1e-12)
    other = InsKISVM(negative_cost=2 * share, random_state=0).fit(bags, y)
    assert other.result_.objective > plain.result_.objective * 1.001
    weighted = InsKISVM(class_weight={0: 2.0}, random_state=0).fit(bags, y)
    np.testing.assert_allclose(weighted.dual_coef_, other.dual_coef_, atol=1e-9)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("threshold", ["zero", "training"])
def test_a_positive_bag_twice_is_weight_two(cls, threshold):
    """Both copies could choose their own key instance; what is optimal chooses the same."""
    bags, y = make_toy_bags(16, kind="witness", max_size=4)
    weight = np.where(np.arange(16) % 3 == 0, 2, 1)
    twice = np.repeat(np.arange(16), weight)
    model = cls(5.0, gamma=0.3, threshold=threshold, tol=1e-9, random_state=0)
    weighted = model.fit(bags, y, sample_weight=weight)
    scores, objective = weighted.decision_function(bags), weighted.result_.objective
    repeated = model.fit([bags[i] for i in twice], y[twice])
    assert repeated.result_.objective == pytest.approx(objective, rel=1e-7)
    np.testing.assert_allclose(repeated.decision_function(bags), scores, atol=1e-4)


@pytest.mark.parametrize("cls", BOTH)
def test_bias_is_a_constant_in_the_kernel(cls):
    bags, y = make_toy_bags(20, kind="close")
    scores = (
        cls(kernel="linear", threshold="zero", random_state=0).fit(bags, y).decision_function(bags)
    )

    def with_constant(A, B):
        return A @ B.T + 1.0

    for model in (
        cls(kernel="linear", bias=1.0, threshold="zero", random_state=0),
        cls(kernel=lambda A, B: A @ B.T, bias=1.0, threshold="zero", random_state=0),
        cls(kernel=with_constant, bias=0.0, threshold="zero", random_state=0),
    ):
        got = model.fit(bags, y).decision_function(bags)
        np.testing.assert_allclose(got, scores, atol=1e-6)
    plain = cls(kernel="linear", bias=0.0, threshold="zero", random_state=0).fit(bags, y)
    np.testing.assert_array_equal(plain.intercept_, [0.0])
    assert np.abs(plain.decision_function(bags) - scores).max() > 1e-2


@pytest.mark.parametrize("cls", BOTH)
def test_precomputed_kernel_equals_the_kernel(cls):
    bags, y = make_toy_bags(24, kind="close")
    bags = Bags.from_list(bags)
    new = Bags.from_list(make_toy_bags(10, kind="close", random_state=1)[0])
    K = instance_kernel(bags.instances, bags.instances, "rbf", gamma=0.2)
    rows = instance_kernel(new.instances, bags.instances, "rbf", gamma=0.2)
    given = cls(kernel="precomputed", bias=0.5, random_state=0).fit(Bags(K, bags.offsets), y)
    model = cls(gamma=0.2, bias=0.5, random_state=0).fit(bags, y)
    np.testing.assert_array_equal(given.support_, model.support_)
    np.testing.assert_allclose(
        given.decision_function(Bags(rows, new.offsets)), model.decision_function(new), atol=1e-6
    )


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_threshold_makes_the_fewest_errors_on_training_bags(cls, kernel, n_classes):
    bags, y = make_toy_bags(21, n_classes=n_classes, kind="close")
    weight = np.arange(21) % 5.0
    zero = cls(kernel=kernel, threshold="zero", random_state=0).fit(bags, y, weight)
    scores = cls(kernel=kernel, random_state=0).fit(bags, y, weight).decision_function(bags)
    shift = zero.decision_function(bags) - scores
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-9)
    for k, column in enumerate(scores.T if n_classes > 2 else scores[None], n_classes == 2):
        wrong = [weight[(column > t) != (y == k)].sum() for t in [0.0, *(np.sort(column) + 1e-9)]]
        assert wrong[0] == min(wrong)


@pytest.mark.parametrize(("C", "single"), [(1.0, True), (1e4, False)])
def test_products_of_negative_instances_are_rounded_only_beside_a_large_ridge(
    monkeypatch, C, single
):
    problems = []
    made = AssignmentProblem.of

    def noted(*args, **options):
        problems.append(made(*args, **options))
        return problems[-1]

    monkeypatch.setattr(AssignmentProblem, "of", noted)
    monkeypatch.setattr(_ki_machine, "_MANY", 10)
    InsKISVM(C).fit(*small_bags())
    assert problems[0].fixed.dtype == (np.float32 if single else np.float64)


@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_more_rows_than_features_in_single_precision(monkeypatch, C):
    bags, y = small_bags(n_positive=7, n_negative=20)
    model = InsKISVM(C, kernel="linear", tol=1e-7, random_state=0)
    exact = model.fit(bags, y).result_.objective
    for module in (_ki_machine, _nu_svm_inner):
        monkeypatch.setattr(module, "_MANY", 10)
    monkeypatch.setattr(_ki_machine, "_SLOW", 0.0)
    assert model.fit(bags, y).result_.objective == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("cls", BOTH)
def test_gap_is_proven_only_where_all_assignments_were_looked_at(cls):
    few = cls(random_state=0).fit(*small_bags(n_positive=7))  # 3 ** 7 assignments
    assert np.isfinite(few.result_.lower_bound)
    many = cls(random_state=0).fit(*small_bags(n_positive=8))  # 3 ** 8
    assert many.result_.lower_bound == -np.inf
    assert 0.0 <= many.gap_estimate_ <= 1e-6 * many.result_.objective
    assert many.result_.converged
    bags, y = small_bags(n_positive=6)
    both = cls(random_state=0).fit(bags, np.c_[y, 1 - y, np.ones_like(y)])
    parts = both.result_.parts
    assert both.gap_estimate_ == pytest.approx(sum(part.gap for part in parts))


@pytest.mark.parametrize("cls", BOTH)
def test_many_bags_without_a_choice_and_a_few_with_one(cls):
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(1, 3)) + i % 2 for i in range(200)]
    bags[1] = np.concatenate([bags[1], bags[1] - 1.0])
    bags[3] = np.concatenate([bags[3] - 2.0, bags[3], bags[3] + 1.0])
    y = np.arange(200) % 2
    model = cls(gamma=0.5, tol=1e-8).fit(bags, y)
    stacked = Bags.from_list(bags)
    K = instance_kernel(stacked.instances, stacked.instances, "rbf", gamma=0.5)
    every = []
    for first, second in product(range(2), range(3)):
        choice = np.zeros(100, int)
        choice[:2] = first, second
        every.append(naive_rows(cls, stacked, y, choice, 1.0, 1.0))
    single = min(naive_hinge(K, *rows)[0] for rows in every)
    assert model.result_.lower_bound <= single * (1 + 1e-7)
    assert model.result_.objective == pytest.approx(single, rel=1e-2)


@pytest.mark.parametrize("cls", BOTH)
def test_one_positive_bag(cls):
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(5, 2)) for _ in range(9)]
    bags[4][3] += 6.0
    model = cls(10.0, random_state=0).fit(bags, np.arange(9) == 4)
    assert model.key_instances(bags)[4] == 3
    assert model.predict(bags)[4]


@pytest.mark.parametrize("cls", BOTH)
def test_finds_witnesses(cls):
    rng = np.random.default_rng(1)
    bags = [rng.normal(size=(6, 4)) for _ in range(60)]
    place = rng.integers(6, size=60)
    y = np.arange(60) % 2
    for i in np.flatnonzero(y):
        bags[i][place[i]] += 2.5
    model = cls(random_state=0).fit(bags[:30], y[:30])
    unseen = np.flatnonzero(y[30:]) + 30
    found = model.key_instances([bags[i] for i in unseen]) == place[unseen]
    assert found.mean() > 0.8


@pytest.mark.parametrize("cls", BOTH)
def test_class_of_weight_zero_is_never_predicted(cls):
    bags, y = make_toy_bags(20, kind="close")
    for label in (0, 1):
        model = cls(class_weight={label: 0.0}, random_state=0).fit(bags, y)
        assert (model.predict(bags) == 1 - label).all()


@pytest.mark.parametrize("cls", BOTH)
def test_same_seed_same_bits_other_seed_same_optimum(cls, load_set):
    bags, y = scaled_bags(load_set("musk1"))
    first, again, other = (cls(random_state=seed).fit(bags, y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.dual_coef_, again.dual_coef_)
    tolerance = first.__bagwise_tags__().order_tolerance
    assert other.result_.objective == pytest.approx(first.result_.objective, rel=tolerance)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = cls(random_state=0).fit(bags[order], y[order])
    assert shuffled.result_.objective == pytest.approx(first.result_.objective, rel=tolerance)


@pytest.mark.parametrize("cls", BOTH)
def test_default_parameters_work_on_musk1(cls, load_set):
    bags, y = scaled_bags(load_set("musk1"))
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    assert cross_val_score(cls(random_state=0), bags, y, cv=folds).mean() > 0.74


@pytest.mark.parametrize("cls", BOTH)
def test_kernel_matrix_beyond_memory_is_refused(cls):
    bags, y = make_toy_bags(20)
    n_points = sum(map(len, bags)) + (len(bags) if cls is BagKISVM else 0)  # with means of bags
    megabytes = 8e-6 * n_points**2
    with pytest.raises(MemoryLimitError, match=rf"{cls.__name__} .*cache_size"):
        cls(cache_size=0.999 * megabytes).fit(bags, y)
    cls(cache_size=1.001 * megabytes).fit(bags, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("cls", BOTH)
def test_costs_beyond_what_can_be_solved_are_next_to_infinite(cls, kernel):
    bags, y = make_toy_bags(16)
    large = cls(1e7, kernel=kernel, random_state=0).fit(bags, y)
    larger = cls(1e30, kernel=kernel, random_state=0).fit(bags, y)
    np.testing.assert_allclose(
        larger.decision_function(bags), large.decision_function(bags), rtol=1e-4
    )
    contradicting = bags + bags[:4], np.append(y, 1 - y[:4])
    for C in (1e9, 1e15):
        assert cls(C, kernel=kernel, random_state=0).fit(*contradicting).result_.converged


def test_many_rows_in_any_order_come_to_the_same():
    """Mixtures got stuck where a loosely solved problem looked better than any next one."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(6, 8)) for _ in range(30)]
    for bag in bags:
        bag[0] += 1.2
    bags += [rng.normal(size=(8, 8)) for _ in range(260)]
    y = np.repeat([1, 0], [30, 260])
    results = []
    for order in (np.arange(290), np.arange(290)[::-1]):
        model = InsKISVM(C=1.0, random_state=0).fit([bags[i] for i in order], y[order])
        results.append(model.result_)
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-4)
    assert all(result.residual <= 0.01 for result in results)
