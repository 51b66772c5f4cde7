"""RegSVM: the problem as it stands by interior points, and what its parameters must do."""

from dataclasses import replace
from itertools import pairwise
from weakref import ref

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise.svm.machinery._points as points
from bagwise import Bags, load, save
from bagwise.exceptions import MemoryLimitError, MovedThresholdWarning
from bagwise.model_selection import BagGridSearchCV
from bagwise.preprocessing import InstanceTransformer
from bagwise.solvers import FeatureRows, StackedRows, majorize_minimize, solve_qp
from bagwise.svm import MIKernelSVM, RegSVM
from bagwise.svm._reg_svm import ConsistencyProblem
from bagwise.svm.machinery._points import mean_instances
from bagwise.testing import make_toy_bags
from svm.naive import instance_kernel, scaled_bags

NORMALIZATIONS = ["average", "feature_space"]
KERNELS = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
]


def kernel_name(params):
    return params["kernel"]


def features_of(bags, normalization, **kernel):
    """Return images of bags and instances whose inner products are those of the kernel."""
    bags = Bags.from_list(list(bags))
    K = instance_kernel(bags.instances, bags.instances, **kernel)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]
    Z = vectors[:, kept] * np.sqrt(values[kept])
    sums = np.array([Z[a:b].sum(axis=0) for a, b in pairwise(bags.offsets)])
    if normalization == "average":
        return sums / bags.sizes[:, None], Z
    return (M / np.linalg.norm(M, axis=1, keepdims=True) for M in (sums, Z))


def by_interior_points(whole, parts, offsets, sign, cost, consistency, keys=None):
    """Solve the primal: variables w, b, xi, delta. Keys stand for the maxima, if given.

    Scores come without the intercept, which need not be unique.
    """
    m, d = whole.shape
    bag_of = np.repeat(np.arange(m), np.diff(offsets))
    difference = parts - whole[bag_of]
    zero = np.zeros((len(parts), m))
    rows = [
        np.hstack([-sign[:, None] * whole, -sign[:, None], -np.eye(m), np.zeros((m, m))]),
        np.hstack([difference, zero[:, :1], zero, -np.eye(m)[bag_of]]),
    ]
    if keys is not None:
        rows.append(np.hstack([-difference[keys], np.zeros((m, 1)), np.zeros((m, m)), -np.eye(m)]))
    A = np.vstack(rows)
    right = np.concatenate([-np.ones(m), np.zeros(len(A) - m)])
    quadratic = sparse.diags_array(np.concatenate([np.ones(d), np.zeros(1 + 2 * m)]))
    linear = np.concatenate([np.zeros(d + 1), cost, consistency * cost])
    lower = np.concatenate([np.full(d + 1, -np.inf), np.zeros(2 * m)])
    solved = solve_qp(quadratic, linear, A, right, lower=lower, tol=1e-9)
    return solved.objective, whole @ solved.x[:d], parts @ solved.x[:d]


def squared_norm(model):
    if hasattr(model, "coef_"):
        return float(model.coef_[0] @ model.coef_[0])
    names = ("kernel", "gamma", "degree", "coef0")
    kernel = {name: getattr(model, name) for name in names} | {"gamma": model.gamma_}
    K = instance_kernel(model.support_vectors_, model.support_vectors_, **kernel)
    return float(model.dual_coef_[0] @ K @ model.dual_coef_[0])


def objective(model, bags, y, weight=1.0):
    """Return the objective of the docstring from scores alone."""
    offsets = Bags.from_list(list(bags)).offsets
    whole, parts = model.decision_function(bags), model.instance_decision_function(bags)
    best = np.array([parts[a:b].max() for a, b in pairwise(offsets)])
    hinge = np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * whole)
    loss = (weight * (hinge + model.consistency * np.abs(whole - best))).sum()
    return 0.5 * squared_norm(model) + model.C * loss


@pytest.mark.parametrize("consistency", [0.02, 0.3, 2.0])
@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
def test_average_equals_the_primal_by_interior_points(params, consistency):
    bags, y = make_toy_bags(20, kind="close")
    model = RegSVM(2.0, consistency=consistency, tol=1e-9, **params).fit(bags, y)
    offsets = Bags.from_list(bags).offsets
    value, whole, parts = by_interior_points(
        *features_of(bags, "average", **params),
        offsets, 2.0 * y - 1.0, np.full(len(y), 2.0), consistency,
    )  # fmt: skip
    assert model.result_.objective == pytest.approx(value, rel=1e-7)
    assert 0.0 <= model.result_.gap + 1e-9 < 1e-6 * max(1.0, value)
    for scores, expected in (
        (model.decision_function(bags), whole),
        (model.instance_decision_function(bags), parts),
    ):
        np.testing.assert_allclose(scores - model.intercept_, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
def test_feature_space_ends_where_the_linearised_problem_is_solved(params):
    bags, y = make_toy_bags(20, kind="close")
    model = RegSVM(2.0, consistency=0.3, normalization="feature_space", tol=1e-9, **params)
    model.fit(bags, y)
    offsets = Bags.from_list(bags).offsets
    parts = model.instance_decision_function(bags)
    keys = np.array([a + parts[a:b].argmax() for a, b in pairwise(offsets)])
    data = (*features_of(bags, "feature_space", **params), offsets, 2.0 * y - 1.0)
    cost = np.full(len(y), 2.0)
    value, whole, _ = by_interior_points(*data, cost, 0.3, keys)
    bound, _, _ = by_interior_points(*data, cost, 0.3)
    assert model.result_.objective == pytest.approx(value, rel=1e-6)
    assert model.result_.lower_bound == pytest.approx(bound, rel=1e-6)
    if params["kernel"] == "rbf":  # the half that is not convex matters here
        assert bound < value - 0.01
    scores = model.decision_function(bags) - model.intercept_
    np.testing.assert_allclose(scores, whole, rtol=0, atol=1e-4)


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_objective_is_the_one_in_the_docstring(normalization, params):
    bags, y = make_toy_bags(24, kind="close")
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(bags))
    model = RegSVM(3.0, consistency=0.2, normalization=normalization, tol=1e-8, **params)
    model.fit(bags, y, sample_weight=weight)
    assert model.result_.objective == pytest.approx(objective(model, bags, y, weight), rel=1e-7)


@pytest.mark.parametrize("params", KERNELS, ids=kernel_name)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_without_consistency_it_is_the_set_kernel_machine(normalization, params):
    bags, y = make_toy_bags(24, kind="close")
    settings = {"normalization": normalization, "tol": 1e-9, **params}
    expected = MIKernelSVM(3.0, **settings).fit(bags, y)
    for consistency, atol in ((0.0, 1e-6), (1e-7, 1e-4)):
        model = RegSVM(3.0, consistency=consistency, **settings).fit(bags, y)
        for method in ("decision_function", "instance_decision_function"):
            np.testing.assert_allclose(
                getattr(model, method)(bags), getattr(expected, method)(bags), rtol=0, atol=atol
            )


@pytest.mark.parametrize("consistency", [0.1, 5.0])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_bags_of_one_agree_with_themselves(normalization, consistency):
    bags, y = make_toy_bags(30, kind="close")
    alone = [bag[:1] for bag in bags]
    model = RegSVM(normalization=normalization, consistency=consistency, tol=1e-9).fit(alone, y)
    expected = MIKernelSVM(normalization=normalization, tol=1e-9).fit(alone, y)
    np.testing.assert_allclose(
        model.decision_function(alone), expected.decision_function(alone), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_more_consistency_means_less_disagreement(normalization):
    bags, y = make_toy_bags(24, kind="close")
    offsets = Bags.from_list(bags).offsets
    strain = []
    for consistency in (0.0, 0.03, 0.3, 3.0, 1000.0):
        model = RegSVM(3.0, consistency=consistency, normalization=normalization).fit(bags, y)
        parts = model.instance_decision_function(bags)
        best = np.array([parts[a:b].max() for a, b in pairwise(offsets)])
        strain.append(np.abs(model.decision_function(bags) - best).sum())
    assert (np.diff(strain) <= 1e-3).all()
    assert strain[0] > 1.0
    assert strain[-1] < 1e-3 * strain[0]


def test_large_consistency_leaves_no_differences_inside_a_bag():
    """The mean equals the maximum only where all are equal."""
    bags, y = make_toy_bags(24, kind="close")
    model = RegSVM(3.0, consistency=1000.0).fit(bags, y)
    parts = model.instance_decision_function(bags)
    for a, b in pairwise(Bags.from_list(bags).offsets):
        assert np.ptp(parts[a:b]) < 1e-3


# --------------------------------------------------------------------------------- the rounds


def problem_of(bags, y, normalization, consistency=0.5):
    bags = Bags.from_list(bags)
    X, offsets = bags.instances, bags.offsets
    means = mean_instances(X, offsets)
    factors = np.ones(len(X) + len(bags))
    if normalization == "feature_space":
        factors = 1.0 / np.linalg.norm(np.vstack([X, means]), axis=1)
    points = StackedRows([FeatureRows(X), FeatureRows(means)])
    return ConsistencyProblem(
        points, factors, offsets, 2.0 * y - 1.0, np.full(len(y), 2.0),
        consistency, tol=1e-8, max_iter=200, cache_size=1.0,
    )  # fmt: skip


def test_the_mean_map_has_nothing_to_alternate():
    bags, y = make_toy_bags(24, kind="close")
    problem = problem_of(bags, y, "average")
    first = problem.relaxed
    assert problem.value(first) == pytest.approx(first.certificate.objective, rel=1e-9)
    ended = majorize_minimize(problem, first, tol=1e-6)
    assert ended.converged
    assert ended.n_iter == 1
    assert ended.objective == pytest.approx(first.certificate.objective, rel=1e-7)
    assert problem.alternate(n_init="auto", rng=np.random.default_rng(0)) is first


@pytest.mark.parametrize("seed", range(4))
def test_rounds_never_raise_the_objective(seed):
    bags, y = make_toy_bags(24, kind="close", random_state=seed)
    model = RegSVM(10.0, consistency=3.0, normalization="feature_space", gamma=0.3)
    result = model.fit(bags, y).result_
    assert result.converged
    assert len(result.history) > 2
    assert (np.diff(result.history) <= 0).all()
    assert result.history[-1] == result.objective >= result.lower_bound


def test_instances_that_tie_stand_for_the_maximum_together():
    bags, y = make_toy_bags(12, kind="close")
    twice = [np.concatenate([bag, bag]) for bag in bags]
    problem = problem_of(twice, y, "feature_space")
    keys = problem.majorize(problem.relaxed)
    for a, b in pairwise(Bags.from_list(twice).offsets):
        half = (b - a) // 2
        np.testing.assert_array_equal(keys[a : a + half], keys[a + half : b])
        assert keys[a:b].any()


def test_of_instances_that_tie_the_mean_stands_for_the_maximum():
    problem = problem_of([np.eye(3), np.eye(3)[:2]], np.array([0, 1]), "average")
    keys = np.array([True, False, True, False, True])
    expected = [[0.5, 0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    np.testing.assert_array_equal(problem._averages(keys).toarray(), expected)


@pytest.mark.parametrize(("share", "is_kept"), [(0.5, True), (2.0, False)])
def test_a_point_is_left_only_for_a_rise_beyond_what_ties_allow(monkeypatch, share, is_kept):
    """The surrogate lies above the objective by the ties of all bags: 10 tol times their cost."""
    bags, y = make_toy_bags(12, kind="close")
    problem = problem_of(bags, y, "feature_space", consistency=0.5)
    x = problem.relaxed
    best = np.maximum.reduceat(x.instances, Bags.from_list(bags).offsets[:-1])
    allowed = 0.5 * 2.0 * 10e-8 * np.maximum(1.0, np.abs(best)).sum()
    worse = replace(x, squared_norm=x.squared_norm + 2.0 * share * allowed)
    monkeypatch.setattr(problem, "_solve", lambda keys, start: worse)
    assert problem.minimize(problem.majorize(x), x, 1e-9) is (x if is_kept else worse)


def test_random_starts_are_kept_only_if_better():
    bags, y = make_toy_bags(24, kind="close")
    settings = {"consistency": 1.0, "normalization": "feature_space"}
    one = RegSVM(10.0, **settings).fit(bags, y).result_.objective
    more = RegSVM(10.0, n_init=6, random_state=0, **settings).fit(bags, y).result_.objective
    assert more <= one * (1 + 1e-9)


# ------------------------------------------------------------------------------- ways to solve


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_linear_features_and_a_linear_kernel_matrix_agree(normalization):
    bags, y = make_toy_bags(24, kind="close")
    settings = {"consistency": 0.5, "normalization": normalization, "tol": 1e-9}
    linear = RegSVM(2.0, kernel="linear", **settings).fit(bags, y)
    matrix = RegSVM(2.0, kernel="poly", degree=1, gamma=1.0, **settings).fit(bags, y)
    dense = Bags.from_list(bags)
    csr = Bags(sparse.csr_array(dense.instances), dense.offsets)
    rows = RegSVM(2.0, kernel="linear", **settings).fit(csr, y)
    scores = linear.decision_function(bags)
    np.testing.assert_allclose(matrix.decision_function(bags), scores, rtol=0, atol=1e-5)
    np.testing.assert_allclose(rows.decision_function(csr), scores, rtol=0, atol=1e-6)
    assert matrix.result_.objective == pytest.approx(linear.result_.objective, rel=1e-7)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("other", [{"cache_size": 0.001}, {"approx": "cholesky", "rank": 1000}])
def test_other_ways_to_the_same_kernel(other, normalization, monkeypatch):
    monkeypatch.setattr("bagwise.solvers.operators._row_operator._STRIP_ENTRIES", 500)
    bags, y = make_toy_bags(24, kind="close")
    settings = {"consistency": 0.5, "gamma": 0.2, "normalization": normalization, "tol": 1e-8}
    expected = RegSVM(2.0, **settings).fit(bags, y)
    model = RegSVM(2.0, **settings, **other).fit(bags, y)
    assert model.result_.objective == pytest.approx(expected.result_.objective, rel=1e-6)
    np.testing.assert_allclose(
        model.decision_function(bags), expected.decision_function(bags), rtol=0, atol=1e-4
    )


def test_precomputed_kernel_between_instances():
    bags, y = make_toy_bags(24, kind="close")
    dense = Bags.from_list(bags)
    K = instance_kernel(dense.instances, dense.instances, kernel="rbf", gamma=0.2)
    given = Bags(K, dense.offsets)
    expected = RegSVM(2.0, gamma=0.2, tol=1e-9).fit(bags, y)
    model = RegSVM(2.0, kernel="precomputed", tol=1e-9).fit(given, y)
    for method in ("decision_function", "instance_decision_function"):
        np.testing.assert_allclose(
            getattr(model, method)(given), getattr(expected, method)(bags), rtol=0, atol=1e-6
        )


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_a_search_that_shares_the_kernel_matrix_finds_the_same(normalization):
    bags, y = make_toy_bags(24, kind="close")
    bags = Bags.from_list(bags)
    model = RegSVM(normalization=normalization, gamma=0.2, tol=1e-8)
    grid = {"C": [1.0, 10.0], "consistency": [0.1, 1.0]}
    shared = BagGridSearchCV(model, grid, cv=3).fit(bags, y)
    plain = GridSearchCV(model, grid, cv=3).fit(bags, y)
    for name in ("mean_test_score", "split0_test_score"):
        np.testing.assert_array_equal(shared.cv_results_[name], plain.cv_results_[name])
    np.testing.assert_allclose(
        shared.decision_function(bags), plain.decision_function(bags), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("normalization", ["average", "feature_space"])
def test_folds_that_move_the_threshold_share_the_kernel_matrix(normalization, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4, 3)), (np.arange(60) % 10 == 0).astype(int)
    X[y == 1, 0] += 2.0
    model = RegSVM(C=0.5, normalization=normalization, n_init=1)
    with pytest.warns(MovedThresholdWarning):
        alone = clone(model).set_params(cache_size=0.0).fit(X, y)  # nothing is kept
    made, point_gram = [], points.point_gram

    def counted(*args, **how):
        gram = point_gram(*args, **how)
        made.append(ref(gram))
        return gram

    monkeypatch.setattr(points, "point_gram", counted)
    with pytest.warns(MovedThresholdWarning):
        model.fit(X, y)
    assert len(made) == 1
    assert made[0]() is None  # it lives no longer than the fit
    assert alone.intercept_shift_ != 0.0
    np.testing.assert_allclose(model.intercept_shift_, alone.intercept_shift_, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("params", [{}, {"kernel": "linear"}, {"normalization": "feature_space"}])
def test_saved_models_score_the_same(params, tmp_path):
    bags, y = make_toy_bags(24, n_classes=3, kind="close")
    model = RegSVM(**params).fit(bags, y)
    save(model, tmp_path / "model.bagwise")
    again = load(tmp_path / "model.bagwise")
    np.testing.assert_array_equal(again.decision_function(bags), model.decision_function(bags))
    np.testing.assert_array_equal(again.key_instances(bags), model.key_instances(bags))


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_a_weight_is_a_repetition(normalization):
    bags, y = make_toy_bags(20, kind="close")
    count = np.arange(20) % 3 + 1
    settings = {"consistency": 0.5, "normalization": normalization, "tol": 1e-9}
    weighted = RegSVM(2.0, **settings).fit(bags, y, sample_weight=count)
    repeated = RegSVM(2.0, **settings)
    repeated.fit([bags[i] for i in np.repeat(np.arange(20), count)], np.repeat(y, count))
    assert weighted.result_.objective == pytest.approx(repeated.result_.objective, rel=1e-7)
    np.testing.assert_allclose(
        weighted.decision_function(bags), repeated.decision_function(bags), rtol=0, atol=1e-5
    )


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("params", [{"C": 0.0}, {"consistency": -0.1}, {"normalization": "sum"}])
def test_bad_parameters_are_named(params):
    bags, y = make_toy_bags(10)
    with pytest.raises(ValueError, match=next(iter(params))):
        RegSVM(**params).fit(bags, y)


def test_a_given_kernel_has_no_norms_of_new_bags():
    with pytest.raises(ValueError, match=r"RegSVM with kernel='precomputed' .*'feature_space'"):
        RegSVM(kernel="precomputed", normalization="feature_space").fit(np.eye(4), [0, 1, 0, 1])


def test_too_many_rows_are_refused_before_memory_is_short(monkeypatch):
    bags, y = make_toy_bags(30)
    monkeypatch.setattr("bagwise.svm._reg_svm._ALWAYS", 0.005)
    RegSVM(cache_size=1.0).fit(bags, y)
    with pytest.raises(MemoryLimitError, match=r"RegSVM needs .* rows .*Raise cache_size"):
        RegSVM(cache_size=0.004).fit(bags, y)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_default_parameters_work_on_musk1(normalization, load_set):
    bags, y = scaled_bags(load_set("musk1"))
    model = RegSVM(normalization=normalization)
    model = make_pipeline(InstanceTransformer(StandardScaler()), model)
    assert cross_val_score(model, bags, y, cv=5).mean() > 0.7
