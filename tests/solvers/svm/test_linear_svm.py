"""The linear SVM against the kernel solver, liblinear, an interior point and its certificate."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC, LinearSVC

import bagwise.solvers.svm._linear_svm as linear_dual
import bagwise.solvers.svm._linear_svm_interior as interior
import bagwise.solvers.svm._linear_svm_kernels as kernels
from bagwise.solvers import FeatureRows, Status, solve_linear_svm, solve_qp, solve_svm_dual
from bagwise.solvers.svm._linear_problem import LinearProblem

LOSSES = ["hinge", "squared_hinge"]
INTERCEPTS = ["free", "penalized", "none"]


class Problem(NamedTuple):
    X: np.ndarray
    sign: np.ndarray
    cost: np.ndarray
    target: np.ndarray


def _problem(n=120, d=4, *, cost=1.0, target=1.0, shift=1.0, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X = scale * (rng.normal(size=(n, d)) + shift * sign[:, None] / np.sqrt(d))
    return Problem(X, sign, np.full(n, cost), np.full(n, target))


def _rows(p, rows):
    return Problem(*(part[rows] for part in p))


def _contradictions():
    p = _problem(n=30)
    return _rows(p, np.r_[:30, :30])._replace(sign=np.r_[p.sign, -p.sign])


def _zero_rows():
    p = _problem(n=40, d=3)
    p.X[::2] = 0.0
    return p


def _row_costs():
    p, rng = _problem(), np.random.default_rng(4)
    return p._replace(cost=rng.exponential(size=120) * (rng.random(120) < 0.8))


def _targets():
    p = _problem(cost=5.0)
    sizes = np.random.default_rng(5).integers(1, 9, size=120)
    return p._replace(target=np.where(p.sign > 0, 2.0 / sizes - 1.0, 1.0))  # as in sMIL


ZOO = {
    "tall": _problem,
    "wide": lambda: _problem(n=40, d=150, cost=10.0),
    "middle": lambda: _problem(n=150, d=50, cost=3.0),
    "duplicates": lambda: _rows(_problem(n=40), np.r_[:40, :30, :10]),
    "contradictions": _contradictions,
    "tiny cost": lambda: _problem(cost=1e-6),
    "large cost": lambda: _problem(cost=1e4),
    "separable": lambda: _problem(cost=1e6, shift=8.0),
    "one positive": lambda: _problem(n=60)._replace(sign=np.where(np.arange(60) == 7, 1.0, -1.0)),
    "zero rows": _zero_rows,
    "all zero": lambda: _zero_rows()._replace(X=np.zeros((40, 3))),
    "row costs": _row_costs,
    "targets": _targets,
    "large rows": lambda: _problem(scale=1e3),
    "small rows": lambda: _problem(scale=1e-3, cost=1e3),
    "collinear": lambda: (lambda p: p._replace(X=p.X[:, [0, 1, 0, 1, 1]]))(_problem()),
    "two rows": lambda: Problem(np.eye(2), np.array([1.0, -1.0]), np.ones(2), np.ones(2)),
}


def _solve(p, **options):
    return solve_linear_svm(p.X, p.sign, p.cost, target=p.target, **options)


def _assert_optimal(p, r, loss="hinge", intercept="free", tol=1e-6):
    """Check the optimality conditions and the certificate from their definitions."""
    assert r.status is Status.CONVERGED
    alpha, w, b = r.x, r.coef, r.intercept
    X = p.X.toarray() if sp.issparse(p.X) else p.X.astype(np.float64)
    used = p.cost > 0
    cap = p.cost if loss == "hinge" else np.where(used, np.inf, 0.0)
    bend = np.zeros(len(alpha))
    if loss == "squared_hinge":
        bend[used] = 0.5 / p.cost[used]
    assert (alpha >= 0).all()
    assert (alpha <= cap).all()
    size = alpha.sum() * max(1.0, np.abs(X).max())
    np.testing.assert_allclose(w, X.T @ (p.sign * alpha), atol=1e-12 * size)
    np.testing.assert_allclose(r.decision, X @ w + b, rtol=1e-9, atol=1e-10)
    rho = 1.0 if intercept == "penalized" else 0.0
    if intercept == "free":
        assert abs(p.sign @ alpha) <= 1e-11 * alpha.sum()
    elif intercept == "penalized":
        np.testing.assert_allclose(b, p.sign @ alpha, atol=1e-11 * size)
    else:
        assert b == 0.0
    short = p.target - p.sign * r.decision - bend * alpha
    assert (short[alpha < cap] <= tol).all()
    assert (short[alpha > 0] >= -tol).all()
    slack = np.maximum(p.target - p.sign * r.decision, 0.0)
    power = 1 if loss == "hinge" else 2
    primal = 0.5 * w @ w + 0.5 * rho * b * b + p.cost @ slack**power
    dual = p.target @ alpha - 0.5 * w @ w - 0.5 * rho * b * b - 0.5 * alpha @ (bend * alpha)
    np.testing.assert_allclose(r.objective, primal, rtol=1e-9)
    np.testing.assert_allclose(r.lower_bound, dual, rtol=1e-9, atol=1e-12)
    assert r.gap >= -1e-9 * max(1.0, abs(primal))
    assert r.relative_gap <= max(1e-6, tol)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ZOO)
def test_conditions_and_certificate_hold(name, loss, intercept):
    p = ZOO[name]()
    _assert_optimal(p, _solve(p, loss=loss, intercept=intercept), loss, intercept)


def _oracle(p, loss, intercept):
    """Return the least objective and the weights, by a quadratic programme in the primal."""
    n, d = p.X.shape
    unit = max(1.0, np.abs(p.X).max())  # so that the solver sees numbers near 1
    cost = p.cost if loss == "hinge" else np.zeros(n)
    bend = 2.0 * p.cost if loss == "squared_hinge" else np.zeros(n)
    P = np.concatenate([np.full(d, unit**-2), [float(intercept == "penalized")], bend])
    q = np.concatenate([np.zeros(d + 1), cost])
    level = max(1.0, P.max(), q.max())
    rows = np.hstack([-p.sign[:, None] * p.X / unit, -p.sign[:, None], -np.eye(n)])
    lower = np.concatenate([np.full(d + 1, -np.inf), np.zeros(n)])
    keep = np.arange(d + 1 + n) != (d if intercept == "none" else -1)
    result = solve_qp(
        sp.diags(P[keep] / level), q[keep] / level, rows[:, keep], -p.target,
        lower=lower[keep], tol=1e-9,
    )  # fmt: skip
    return level * result.objective, result.x[:d] / unit


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", sorted(set(ZOO) - {"separable", "large cost", "small rows"}))
def test_agrees_with_interior_point(name, loss, intercept):
    p = ZOO[name]()
    result = _solve(p, loss=loss, intercept=intercept)
    value, w = _oracle(p, loss, intercept)
    np.testing.assert_allclose(result.objective, value, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(result.coef, w, atol=2e-3 * max(np.abs(w).max(), 1e-3))


@pytest.mark.parametrize("name", sorted(set(ZOO) - {"separable", "large cost"}))
def test_equals_the_kernel_solver_on_the_linear_kernel(name):
    p = ZOO[name]()
    expected = solve_svm_dual(p.X @ p.X.T, p.sign, p.cost, target=p.target)
    result = _solve(p)
    np.testing.assert_allclose(result.decision, expected.decision, atol=2e-6)
    np.testing.assert_allclose(result.intercept, expected.intercept, atol=2e-6)
    np.testing.assert_allclose(result.objective, expected.objective, rtol=1e-7)


@pytest.mark.parametrize("cost", [0.1, 1.0, 100.0])
def test_agrees_with_libsvm(cost):
    p = _problem(n=300, d=6, cost=cost)
    model = SVC(C=cost, kernel="linear", tol=1e-8).fit(p.X, p.sign)
    result = _solve(p)
    np.testing.assert_allclose(result.coef, model.coef_[0], atol=1e-4)
    np.testing.assert_allclose(result.intercept, model.intercept_[0], atol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cost", [0.01, 1.0])
def test_agrees_with_liblinear(cost, loss, bias):
    p = _problem(n=200, d=6, cost=cost)
    options = {"loss": loss, "fit_intercept": bias, "dual": True, "tol": 1e-9, "max_iter": 100_000}
    model = LinearSVC(C=cost, random_state=0, **options).fit(p.X, p.sign)
    result = _solve(p, loss=loss, intercept="penalized" if bias else "none")
    np.testing.assert_allclose(result.coef, model.coef_[0], atol=1e-5)
    np.testing.assert_allclose(result.intercept, model.intercept_ if bias else 0.0, atol=1e-5)


@pytest.fixture
def small_limits(monkeypatch):
    """Make a few hundred rows a large problem."""
    monkeypatch.setattr(linear_dual, "_SMALL", 64)


@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("loss", LOSSES)
def test_samples_and_working_sets_find_the_same_answer(small_limits, cost, loss):
    p = _problem(n=2000, d=5, cost=cost)
    result = _solve(p, loss=loss)
    _assert_optimal(p, result, loss)
    value, _ = _oracle(p, loss, "free")
    np.testing.assert_allclose(result.objective, value, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_rows_wrongly_taken_for_settled_are_found(small_limits, monkeypatch, seed):
    """A start that is far off, and a working set that is far too small."""
    p = _problem(n=500, d=8, cost=10.0, seed=seed)
    start = np.random.default_rng(seed).random(500) * 10.0
    result = _solve(p, alpha0=start)
    _assert_optimal(p, result)
    np.testing.assert_allclose(result.decision, _solve(p).decision, atol=1e-7)


@pytest.fixture
def descent_first(monkeypatch):
    """Let coordinate descent start on any problem, and the Gram matrix on none."""
    monkeypatch.setattr(linear_dual, "_MANY_FEATURES", 1)
    monkeypatch.setattr(linear_dual, "_LARGEST_GRAM", 0)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", sorted(set(ZOO) - {"separable"}))
def test_coordinate_descent_first(descent_first, name, loss, intercept):
    p = ZOO[name]()
    result = _solve(p, loss=loss, intercept=intercept)
    _assert_optimal(p, result, loss, intercept)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("sparse", [False, True])
def test_coordinate_descent_alone(descent_first, monkeypatch, sparse, intercept):
    """Without the polish, and where Newton steps would be a failure."""
    monkeypatch.setattr(linear_dual, "_LARGEST_FREE", 0)
    monkeypatch.setattr(linear_dual, "NewtonModel", None)
    p = _problem(n=60, d=200, cost=0.1)
    p = p._replace(X=sp.csr_array(p.X)) if sparse else p
    result = _solve(p, intercept=intercept, tol=1e-4)
    _assert_optimal(p, result, intercept=intercept, tol=1e-4)
    assert result.n_iter > 1


@pytest.mark.parametrize("name", ZOO)
def test_order_of_rows_does_not_matter(name):
    p = ZOO[name]()
    order = np.random.default_rng(1).permutation(len(p.sign))
    one, other = _solve(p), _solve(_rows(p, order))
    np.testing.assert_allclose(other.decision, one.decision[order], atol=2e-6)
    np.testing.assert_allclose(other.objective, one.objective, rtol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ZOO)
def test_warm_start_ends_where_cold_start_does(name, loss):
    p = ZOO[name]()
    cold = _solve(p, loss=loss)
    start = (np.random.default_rng(2).random(len(p.sign)) * 2.0 - 0.5) * p.cost
    np.testing.assert_allclose(
        _solve(p, loss=loss, alpha0=start).decision, cold.decision, atol=2e-6
    )
    again = _solve(p, loss=loss, alpha0=cold.x)
    assert again.n_iter <= 1
    np.testing.assert_allclose(again.decision, cold.decision, atol=1e-9)


@pytest.fixture
def passes(monkeypatch):
    """Count how many rows are read, in products with vectors and in sweeps."""
    read = []
    for name in ("dot", "combine", "square_norms", "curvature", "gram"):
        original = getattr(FeatureRows, name)

        def counted(self, *vectors, original=original):
            read.append(self.n)
            return original(self, *vectors)

        monkeypatch.setattr(FeatureRows, name, counted)
    original_sweep = kernels.sweep

    def swept(*arguments):
        read.append(len(arguments[4]))
        return original_sweep(*arguments)

    monkeypatch.setattr(kernels, "sweep", swept)
    return read


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["tall", "wide", "middle", "row costs"])
def test_a_start_at_the_solution_ends_after_one_check(passes, name, loss):
    p = ZOO[name]()
    cold = _solve(p, loss=loss)
    passes.clear()
    again = _solve(p, loss=loss, alpha0=cold.x)
    assert again.n_iter == 0
    assert passes == 3 * [len(p.sign)]  # lengths, weights, decisions
    np.testing.assert_allclose(again.decision, cold.decision, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_start_without_rows_at_a_bound_is_not_taken_for_one_at_other_costs(seed):
    """Where no cost is reached, the largest multiplier says nothing about costs."""
    p = _problem(n=300, d=5, cost=1e6, shift=8.0, seed=seed)
    before = _solve(p).x
    rng = np.random.default_rng(seed)
    changed = rng.random(300) < 0.05
    p.X[changed] += 0.5 * rng.normal(size=(changed.sum(), 5))
    cold, warm = (_solve(p, alpha0=start) for start in (None, np.where(changed, 0.0, before)))
    assert warm.status is Status.CONVERGED
    np.testing.assert_allclose(warm.decision, cold.decision, atol=1e-5)
    assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e160, 1e308])
def test_a_start_whose_square_overflows_is_no_start(scale, loss, intercept):
    p = _problem(n=40, d=3)
    options = {"loss": loss, "intercept": intercept}
    cold, warm = (_solve(p, alpha0=start, **options) for start in (None, np.full(40, scale)))
    assert warm.status is Status.CONVERGED
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-8)


@pytest.mark.parametrize("size", [0.0, -1.0, 1e-12, 1e-6])
def test_a_start_that_says_next_to_nothing_does_not_lead_astray(size):
    """Where classes overlap, no row is left in the band once the steps are long."""
    p = _problem(n=4500, d=5, shift=0.05)
    start = size * np.random.default_rng(1).random(4500)
    cold, warm = (_solve(p, alpha0=alpha) for alpha in (None, start))
    assert warm.status is Status.CONVERGED
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_tolerance_of_zero_is_met_as_well_as_rounding_lets(loss):
    p = _problem()
    exact = _solve(p, loss=loss, tol=0.0)
    assert exact.residual < 1e-9
    np.testing.assert_allclose(exact.objective, _solve(p, loss=loss).objective, rtol=1e-8)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_descent_starts_with_the_intercept_of_its_start(descent_first, intercept):
    """One that is penalised is the sum of the signed multipliers, after these were clipped too."""
    p = _problem(n=300, d=60)
    before = _solve(p, intercept=intercept)
    p = p._replace(cost=0.3 * p.cost)
    cold, warm = (_solve(p, intercept=intercept, alpha0=start) for start in (None, before.x))
    np.testing.assert_allclose(warm.decision, cold.decision, atol=1e-6)
    assert warm.n_iter <= cold.n_iter


@pytest.mark.parametrize("cost", [1e3, 1e5])
def test_slow_sweeps_over_sparse_rows_leave_iterations_to_newton_steps(monkeypatch, cost):
    monkeypatch.setattr(linear_dual, "_MANY_FEATURES", 60)
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 80), density=0.05, rng=rng, format="csr")
    sign = np.where(X @ rng.normal(size=80) + 0.3 * rng.normal(size=400) > 0.0, 1.0, -1.0)
    assert solve_linear_svm(X, sign, cost, max_iter=450).status is Status.CONVERGED


GRID = (0.1, 0.2, 0.4, 0.8)


@pytest.mark.parametrize("order", [1, -1], ids=["up", "down"])
@pytest.mark.parametrize("intercept", ["free", "penalized"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_start_from_the_neighbour_saves_passes(passes, kind, loss, intercept, order):
    p = _problem(n=6000, d=20)
    if kind == "csr":
        p = p._replace(X=sp.csr_array(np.where(np.abs(p.X) > 0.7, p.X, 0.0)))
    cold, warm, before = 0, 0, None
    for cost in GRID[::order]:
        options = {"loss": loss, "intercept": intercept, "tol": 1e-5}
        p = p._replace(cost=np.full(len(p.sign), cost))
        passes.clear()
        answer = _solve(p, **options)
        total = sum(passes)
        if before is not None:
            cold += total
            passes.clear()
            again = _solve(p, alpha0=before, **options)
            warm += sum(passes)
            np.testing.assert_allclose(again.objective, answer.objective, rtol=1e-7)
            assert again.status is Status.CONVERGED
        before = answer.x
    assert warm < 0.85 * cold


@pytest.mark.parametrize(("cost", "sparse"), [(100.0, True), (1e4, False)])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_cost_that_nearly_separates_rows_that_are_not_many(loss, cost, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 100))
    X[rng.random(300) < 0.3] = 0.0  # these rows contradict each other
    sign = np.where(X @ rng.normal(size=100) + 0.5 * rng.normal(size=300) > 0.0, 1.0, -1.0)
    p = Problem(X, sign, np.full(300, cost), np.ones(300))
    r = _solve(p._replace(X=sp.csr_array(X)) if sparse else p, loss=loss)
    assert r.status == Status.CONVERGED
    _assert_optimal(p, r, loss)


@pytest.mark.parametrize("gap", [1e-1, 1e-3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", ZOO)
def test_a_gap_that_will_do_is_certified(small_limits, name, intercept, gap):
    p = ZOO[name]()
    r, exact = _solve(p, intercept=intercept, gap=gap), _solve(p, intercept=intercept)
    assert r.status == Status.CONVERGED
    enough = gap * abs(r.objective) + 1e-12
    assert r.objective - r.lower_bound <= enough
    assert r.lower_bound <= exact.objective + 1e-9 * abs(exact.objective)
    assert exact.objective * (1.0 - 1e-9) <= r.objective <= exact.objective + enough
    assert ((r.x >= 0.0) & (r.x <= p.cost)).all()


def many_features(cost, n=5000, d=700, seed=0):
    """Return sparse rows of which about as many are free as there are features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.02, rng=rng, format="csr")
    sign = np.where(X @ rng.normal(size=d) > 0.0, 1.0, -1.0)
    sign[rng.random(n) < 0.2] *= -1.0
    return Problem(X, sign, np.full(n, cost), np.ones(n))


@pytest.mark.parametrize("cost", [1.0, 100.0])
@pytest.mark.parametrize("sweeps", [800, 10])
def test_many_features_take_less_to_a_gap(monkeypatch, cost, sweeps):
    """By sweeps alone, or by these and steps in the interior."""
    monkeypatch.setattr(linear_dual, "_LOOSE_SWEEPS", sweeps)
    p, systems = many_features(cost), []
    made = interior._System.__init__
    monkeypatch.setattr(
        interior._System, "__init__", lambda self, *given: systems.append(1) or made(self, *given)
    )
    exact, n_exact = _solve(p), len(systems)
    r = _solve(p, gap=1e-2)
    assert 0.0 <= r.objective - r.lower_bound <= 1e-2 * r.objective
    assert exact.objective * (1.0 - 1e-9) <= r.objective <= 1.01 * exact.objective
    assert len(systems) - n_exact <= 10 < 14 <= n_exact


@pytest.mark.parametrize("cost", [1.0, 1e4])
def test_features_that_nearly_separate_noise(monkeypatch, cost):
    """Steps on pairs of rows get nowhere, and Newton steps are dear; those in the interior end."""
    rng = np.random.default_rng(0)
    X, sign = rng.normal(size=(1300, 660)), np.where(rng.random(1300) < 0.5, -1.0, 1.0)
    p = Problem(X, sign, np.full(1300, cost), np.ones(1300))
    monkeypatch.setattr(linear_dual._Search, "_finish", None)
    r = _solve(p, gap=1e-3)
    assert 0.0 <= r.objective - r.lower_bound <= 1e-3 * r.objective
    assert r.n_iter < 100


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_is_a_repetition(loss):
    p = _problem()
    twice = np.arange(120) % 3 == 0
    repeated = _solve(_rows(p, np.r_[:120, np.flatnonzero(twice)]), loss=loss)
    weighted = _solve(p._replace(cost=p.cost * (1.0 + twice)), loss=loss)
    np.testing.assert_allclose(repeated.coef, weighted.coef, atol=1e-8)
    np.testing.assert_allclose(repeated.intercept, weighted.intercept, atol=1e-8)


@pytest.mark.parametrize("descent", [False, True])
def test_layouts_and_precisions(tmp_path, monkeypatch, descent):
    if descent:
        monkeypatch.setattr(linear_dual, "_MANY_FEATURES", 1)
    p = _problem(n=80, d=6)
    X = np.where(p.X > 0.3, p.X, 0.0).astype(np.float32)
    p = p._replace(X=X.astype(np.float64))
    expected = _solve(p)
    np.save(tmp_path / "x.npy", X)
    order = np.random.default_rng(0).permutation(80)
    padded, rows = np.vstack([np.full((5, 6), np.nan), X[order]]), 5 + np.argsort(order)
    variants = {
        "float32": (X, {}),
        "memmap": (np.load(tmp_path / "x.npy", mmap_mode="r"), {}),
        "fortran": (np.asfortranarray(X), {}),
        "csr": (sp.csr_matrix(X), {}),
        "csr float64": (sp.csr_array(p.X), {}),
        "rows": (padded, {"rows": rows}),
        "csr rows": (sp.csr_array(padded), {"rows": rows}),
    }
    for name, (matrix, options) in variants.items():
        result = solve_linear_svm(matrix, p.sign, p.cost, **options)
        np.testing.assert_allclose(result.decision, expected.decision, atol=1e-7, err_msg=name)


def test_one_sign_and_no_cost():
    X, target = np.eye(4), [0.3, 0.7, 1.0, 0.2]
    sign = np.array([1, 1, -1, -1])
    cases = [([1, 1, 0, 0], 0.7), ([0, 0, 1, 1], -1.0), ([0, 0, 0, 0], 0.0)]
    for cost, intercept in cases:
        result = solve_linear_svm(X, sign, cost, target=target)
        assert result.status is Status.CONVERGED
        assert result.objective == result.lower_bound == 0.0
        assert result.intercept == intercept
    alone = solve_linear_svm(X, np.ones(4), 1.0)
    assert (alone.objective, alone.intercept) == (0.0, 1.0)


def test_intercept_without_free_rows_is_the_middle():
    result = solve_linear_svm(np.zeros((4, 1)), [1, 1, -1, -1], 1.0, target=[2, 2, 1, 1])
    assert result.intercept == 0.5  # any b in [-1, 2] costs 6
    assert result.objective == 6.0


def test_budget_is_reported_with_a_feasible_point():
    p = _problem(n=300, d=20, cost=100.0)
    optimum = _solve(p).objective
    for budget in (1, 3, 10):
        result = _solve(p, max_iter=budget)
        assert result.status is Status.MAX_ITER
        assert result.n_iter <= budget
        assert result.residual > 1e-6
        assert ((result.x >= 0) & (result.x <= 100)).all()
        assert abs(p.sign @ result.x) <= 1e-11 * result.x.sum()
        assert result.lower_bound <= optimum <= result.objective
    assert _solve(p, tol=1e-18).status is Status.STALLED


def test_can_be_cut(monkeypatch):
    calls = []

    def interrupt():
        calls.append(None)
        if len(calls) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(linear_dual, "checkpoint", interrupt)
    monkeypatch.setattr(linear_dual, "_MANY_FEATURES", 1)
    monkeypatch.setattr(linear_dual, "_LARGEST_SYSTEM", 0)
    with pytest.raises(KeyboardInterrupt):
        _solve(_problem(n=200, cost=100.0), tol=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "log"}, "loss must be 'hinge' or 'squared_hinge'. Got 'log'"),
        ({"intercept": True}, "intercept must be 'free', 'penalized' or 'none'. Got True"),
        ({"sign": [0, 1, 0, 1]}, "sign must hold -1 and \\+1"),
        ({"sign": [1, -1]}, "sign must have shape \\(4,\\)"),
        ({"cost": [1.0, -2, 1, 1]}, "cost must not be negative. Got -2.0 in row 1"),
        ({"alpha0": np.ones(2)}, "alpha0 must have shape \\(4,\\)"),
        ({"instances": np.full((4, 2), np.inf)}, "instances must hold finite"),
        ({"instances": sp.csr_array(np.full((4, 2), np.nan))}, "instances must hold finite"),
        ({"rows": [0, 1, 2, 4]}, "rows must lie between 0 and 3"),
        ({"gap": np.nan}, "gap of solve_linear_svm must be a number, not negative. Got nan"),
    ],
)
def test_errors_say_what_is_wrong(changes, message):
    arguments = {"instances": np.eye(4)[:, :2], "sign": [1, -1, 1, -1], "cost": 1.0} | changes
    with pytest.raises(ValueError, match=message), np.errstate(all="ignore"):
        solve_linear_svm(**arguments)


# ------------------------------------------------------------------------------ the stages alone

RHO = {"free": 0.0, "penalized": 1.0, "none": None}


def stage(intercept, cost=0.05, n=40, d=4):
    """Return a hinge problem without what comes before and after a stage, and its solution."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, d))
    sign = np.where(X[:, 0] + rng.normal(size=n) > 0.0, 1.0, -1.0)
    cost = cost * rng.uniform(0.5, 2.0, n)
    problem = LinearProblem(FeatureRows(X), sign, cost, np.ones(n), False, RHO[intercept])
    solved = solve_linear_svm(X, sign, cost, intercept=intercept, tol=1e-10)
    return linear_dual._Search(problem, 1e-6, 100), problem.point(solved.x)


@pytest.mark.parametrize("intercept", RHO)
def test_polishing_takes_rows_to_the_bounds_that_they_reach(intercept):
    search, end = stage(intercept)
    cap, alpha = search.problem.cap, end.alpha.copy()
    full, none = np.flatnonzero(alpha >= cap), np.flatnonzero(alpha <= 0.0)
    for row, value in ((full[0], 0.999 * cap[full[0]]), (none[0], 1e-3 * cap[none[0]])):
        alpha[:] = end.alpha
        alpha[row] = value
        polished = search._polish(search.problem.point(search.problem.feasible(alpha)))
        assert polished.residual <= 1e-8
        assert polished.alpha[row] == end.alpha[row]


def test_a_primal_point_is_taken_only_where_it_is_better():
    search, end = stage("none")
    coarse = search.problem.point(0.5 * end.alpha)
    better = search._or_better(coarse, end.w, end.b, end.z)
    assert (better.primal, better.dual) == (end.primal, coarse.dual)
    assert better.w is end.w
    worse = 30.0 * coarse.w, coarse.b, 30.0 * coarse.z
    assert search.problem.primal(*worse) > coarse.primal
    assert search._or_better(coarse, *worse) is coarse


@pytest.mark.parametrize("size", [6, 20, 100])
def test_a_sample_has_the_cost_of_all_rows(size):
    search, _ = stage("free")
    whole = search.problem
    sample = whole.sample(np.random.default_rng(0), size)
    for s in (-1.0, 1.0):
        assert (sample.sign == s).sum() == min(size // 2, (whole.sign == s).sum())
        assert sample.cost[sample.sign == s].sum() == pytest.approx(
            whole.cost[whole.sign == s].sum()
        )


@pytest.mark.parametrize("cost", [1.0, 100.0])
def test_weights_that_do_not_help_are_exactly_0(cost):
    """Few positives amid many negatives: no weights, and a slack of 2 for each positive."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(2000, 5)), 0.3 * rng.normal(size=(100, 5))])
    result = solve_linear_svm(X, np.repeat([-1.0, 1.0], [2000, 100]), cost)
    assert not result.coef.any()
    assert result.intercept == -1.0
    assert (result.decision == -1.0).all()
    assert result.objective == 200.0 * cost
    assert result.lower_bound == pytest.approx(200.0 * cost)
