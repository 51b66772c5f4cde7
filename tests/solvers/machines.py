"""Machines on hard rows: primal, dual and optimality conditions, straight from the docs."""

import numpy as np
import scipy.sparse as sp

import bagwise.solvers as solvers
from bagwise import Bags
from solvers.problems import EPS, Problem, Value, hinges, pair_violation, rows


def svm_dual(kind, *, squared=False, as_operator=False):
    A, sign, cost = rows(kind)
    gram = A @ A.T
    K = gram.astype(float)
    ridge = np.divide(0.5, cost, out=np.zeros(len(cost)), where=cost > 0) * squared
    cap = np.where(cost > 0, np.inf, 0.0) if squared else cost

    def objective(result):
        beta = sign * result.x
        size = np.abs(K) @ np.abs(beta) + abs(result.intercept)
        loss = hinges(K @ beta + result.intercept, sign, cost, size, squared=squared)
        return Value.of(0.5 * np.outer(beta, beta) * K, loss)

    def dual(result):
        assert (result.x >= 0).all()
        assert (result.x <= cap).all()
        assert abs(sign @ result.x) <= 1e-12 * result.x.sum()
        beta = sign * result.x
        return Value.of(result.x, -0.5 * np.outer(beta, beta) * K, -0.5 * ridge * result.x**2)

    def criterion(result):
        beta = sign * result.x
        found = pair_violation(sign - K @ beta - ridge * beta, sign, result.x, cap)
        return Value(found, (np.abs(K) @ result.x).max())

    loss = "squared_hinge" if squared else "hinge"
    given = solvers.CachedRows(solvers.DenseGram(gram), max_bytes=10_000) if as_operator else gram
    return Problem(
        "solve_svm_dual", f"{kind}-{loss}" + "-operator" * as_operator,
        {"gram": given, "sign": sign, "cost": cost, "loss": loss},
        objective, dual, criterion, history="dual",
    )  # fmt: skip


def linear_svm(kind, loss, intercept, *, sparse=False):
    A, sign, cost = rows(kind)
    X, squared = A.astype(float), loss == "squared_hinge"
    rho = 1.0 if intercept == "penalized" else 0.0
    ridge = np.divide(0.5, cost, out=np.zeros(len(cost)), where=cost > 0) * squared
    cap = np.where(cost > 0, np.inf, 0.0) if squared else cost

    def objective(result):
        w, b = result.coef, result.intercept
        size = np.abs(X) @ np.abs(w) + abs(b)
        loss = hinges(X @ w + b, sign, cost, size, squared=squared)
        return Value.of(0.5 * w**2, 0.5 * rho * b**2, loss)

    def dual(result):
        alpha = result.x
        assert (alpha >= 0).all()
        assert (alpha <= cap).all()
        if intercept == "free":
            assert abs(sign @ alpha) <= 1e-12 * alpha.sum()
        terms = (sign * alpha)[:, None] * X
        w = terms.sum(axis=0)
        value = Value.of(
            alpha, -0.5 * w**2, -0.5 * ridge * alpha**2, -0.5 * rho * (sign @ alpha) ** 2
        )
        return value._replace(size=value.size + float((np.abs(terms).sum(axis=0) ** 2).sum()))

    def residual(result):
        alpha = result.x
        w = X.T @ (sign * alpha)
        v = sign * (1.0 - ridge * alpha) - X @ w
        if intercept == "free":
            violation = pair_violation(v, sign, alpha, cap)
        else:
            away = sign * (v - rho * (sign @ alpha))
            violation = max(away[alpha < cap].max(initial=0.0), -away[alpha > 0].min(initial=0.0))
        return Value(violation, (np.abs(X) @ (np.abs(X).T @ alpha)).max())

    def criterion(result):
        (value, _), (violation, size) = objective(result), residual(result)
        gap = (value - dual(result).value) / abs(value)
        return Value(min(violation, 1e3 * max(gap, EPS)), size)

    return Problem(
        "solve_linear_svm", f"{kind}-{loss}-{intercept}" + "-sparse" * sparse,
        {"instances": sp.csr_array(A) if sparse else A, "sign": sign, "cost": cost,
         "loss": loss, "intercept": intercept},
        objective, dual, criterion, residual, history="ends",
    )  # fmt: skip


def pass_svm(kind, *, sparse=False):
    A, sign, cost = rows(kind)
    X = A.astype(float)

    def objective(result):
        w, b = result.x, result.intercept
        size = np.abs(X) @ np.abs(w) + abs(b)
        return Value.of(0.5 * w**2, hinges(X @ w + b, sign, cost, size))

    def dual(result):
        alpha = result.dual
        assert (alpha >= 0).all()
        assert (alpha <= cost).all()
        assert abs(sign @ alpha) <= 1e-12 * alpha.sum()
        terms = (sign * alpha)[:, None] * X
        value = Value.of(alpha, -0.5 * terms.sum(axis=0) ** 2)
        return value._replace(size=value.size + float((np.abs(terms).sum(axis=0) ** 2).sum()))

    def criterion(result):
        value, size = objective(result)
        return Value(value - dual(result).value, size).over(value)

    bags = Bags(sp.csr_array(A) if sparse else A, [0, 7, 20, len(A)])
    return Problem(
        "solve_svm_by_passes", kind + "-sparse" * sparse,
        {"rows": solvers.PassRows(bags), "sign": sign, "cost": cost, "tol": 1e-5},
        objective, dual, criterion, exact={"tol": 1e-6},
    )  # fmt: skip


def squared_hinge(kind, *, metric="", fit_intercept=True):
    A, sign, cost = rows(kind)
    X, d = A.astype(float), A.shape[1]
    R = np.eye(d)
    if metric == "metric":
        root = np.random.default_rng(5).normal(size=(d, d))
        R = root @ root.T
    elif metric == "singular":
        R[2:] = 0.0
    length = max(np.sqrt((X**2).sum(axis=1).max()), float(fit_intercept))

    def objective(result):
        size = np.abs(X) @ np.abs(result.x) + abs(result.intercept)
        loss = hinges(X @ result.x + result.intercept, sign, cost, size, squared=True)
        return Value.of(0.5 * np.outer(result.x, result.x) * R, loss)

    def criterion(result):
        alpha = 2.0 * cost * np.maximum(1.0 - sign * (X @ result.x + result.intercept), 0.0)
        gradient = R @ result.x - X.T @ (sign * alpha)
        size = max(np.abs(gradient).max(), abs(sign @ alpha) if fit_intercept else 0.0)
        blur = cost @ (1.0 + np.abs(X) @ np.abs(result.x) + abs(result.intercept))
        return Value(size, blur * length).over(alpha.sum() * length) if size else Value(0.0, 0.0)

    return Problem(
        "minimize_squared_hinge", f"{kind}-{metric}" + "-origin" * (not fit_intercept),
        {"A": A, "sign": sign, "cost": cost, "quadratic": R if metric else None,
         "fit_intercept": fit_intercept},
        objective, None, criterion, exact={"tol": 1e-13},
    )  # fmt: skip


def grouped(kind, solver, *, masked=False):
    A, sign, cost = rows(kind)
    n, rng = len(sign), np.random.default_rng(3)
    group = np.where(sign > 0, rng.integers(0, 8, n), rng.integers(8, 20, n))
    cap = np.array([cost[group == g].sum() for g in range(20)])
    mask = np.ones(n, bool)
    if masked:
        mask = group % 3 > 0
    by_rows = solver == "solve_grouped_svm"
    gram = A @ A.T
    K = A.astype(float) @ A.T.astype(float) if by_rows else gram.astype(float)

    def objective(result):
        beta = sign * result.x
        slack = np.maximum(1.0 - sign * (K @ beta + result.intercept * mask), 0.0)
        size = np.abs(K) @ result.x + abs(result.intercept)
        worst = [cap[g] * slack[group == g].max(initial=0.0) for g in range(20)]
        blur = [cap[g] * size[group == g].max(initial=0.0) for g in range(20)]
        return Value.of(
            0.5 * np.outer(beta, beta) * K, worst, 0.5 * np.array(blur), -0.5 * np.array(blur)
        )

    def room(result):
        left = cap - np.bincount(group, result.x, minlength=20)
        assert (left >= -1e-12 * cap).all()
        return np.where(left <= 1e-12 * cap, 0.0, left)[group]

    def dual(result):
        room(result)
        assert (result.x >= 0).all()
        assert abs((sign * mask) @ result.x) <= 1e-12 * result.x.sum()
        beta = sign * result.x
        return Value.of(result.x, -0.5 * np.outer(beta, beta) * K)

    def criterion(result):
        """Look at feasible steps along two rows with intercept, two of a full group, or one."""
        slope = 1.0 - sign * (K @ (sign * result.x))
        grows, shrinks = room(result) > 0, result.x > 0
        same = (group[:, None] == group) & (cap > 0)[group]
        worst = 0.0
        worst = max(worst, slope[~mask & grows].max(initial=0.0))
        worst = max(worst, -slope[~mask & shrinks].min(initial=0.0))
        for i, j in ((1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)):
            balanced = sign[:, None] * i + sign * j == 0
            balanced &= mask[:, None] & mask
            swap = same & (i * j < 0)
            first = (grows if i > 0 else shrinks)[:, None] | (swap & (i > 0))
            second = (grows if j > 0 else shrinks)[None, :] | (swap & (j > 0))
            allowed = (balanced | (swap & ~mask & (room(result) == 0))) & first & second
            gain = i * slope[:, None] + j * slope
            worst = max(worst, gain[allowed].max(initial=0.0))
        return Value(worst, (np.abs(K) @ result.x).max())

    given = {"rows": solvers.FeatureRows(A)} if by_rows else {"gram": gram}
    return Problem(
        solver, kind + "-masked" * masked,
        {**given, "sign": sign, "group": group, "cap": cap, "intercept": mask},
        objective, dual, criterion, "other" if by_rows else None,
        history="ends" if by_rows else "dual", least=int(by_rows),
    )  # fmt: skip


def nu_svm(kind):
    A, sign, cost = rows(kind)
    gram = A @ A.T
    ridge = 1.0 / np.maximum(cost, 1e-3)
    Q = sign[:, None] * gram.astype(float) * sign + np.diag(ridge)

    def objective(result):
        return Value.of(0.5 * np.outer(result.x, result.x) * Q)

    def dual(result):
        assert (result.x >= 0).all()
        assert abs(result.x.sum() - 1.0) <= 1e-12
        value, size = objective(result)
        return Value((Q @ result.x).min() - value, size + (np.abs(Q) @ result.x).max())

    def criterion(result):
        value, size = objective(result)
        return Value(value - dual(result).value, size).over(value)

    return Problem(
        "solve_nu_svm", kind, {"gram": gram, "sign": sign, "ridge": ridge},
        objective, dual, criterion, history="ends", exact={"tol": 1e-10},
    )  # fmt: skip


def one_norm(kind, *, sparse=False):
    A, sign, cost = rows(kind)
    X = A.astype(float)
    penalty = np.linspace(1.0, 2.0, X.shape[1])

    def objective(result):
        size = np.abs(X) @ np.abs(result.x) + abs(result.intercept)
        loss = hinges(X @ result.x + result.intercept, sign, cost, size)
        return Value.of(penalty * np.abs(result.x), loss)

    def dual(result):
        alpha, price = result.alpha, X.T @ (sign * result.alpha)
        assert (alpha >= 0).all()
        assert (alpha <= cost).all()
        assert abs(sign @ alpha) <= 1e-12 * alpha.sum()
        rounding = 1e-12 * np.abs(X).T @ alpha
        assert (np.abs(price) <= penalty + rounding).all()
        return Value.of(alpha)

    def criterion(result):
        value, size = objective(result)
        return Value(value - dual(result).value, size).over(max(1.0, value))

    return Problem(
        "solve_one_norm_svm", kind + "-sparse" * sparse,
        {"A": sp.csr_array(A) if sparse else A, "sign": sign, "cost": cost, "penalty": penalty},
        objective, dual, criterion, history="ends",
    )  # fmt: skip


def cone(kind, *, as_operator=False, by_program=False):
    A, sign, cost = rows(kind)
    n, p, rng = len(sign), 4, np.random.default_rng(4)
    contrasts = np.zeros((p, n))
    for k in range(p):
        contrasts[k, 5 * k : 5 * k + 5] = rng.normal(size=5)
    contrasts -= np.where(contrasts != 0, contrasts.sum(axis=1, keepdims=True) / 5, 0.0)
    gram = A @ A.T
    index = np.arange(n)[::-1]
    sums = np.vstack([np.eye(n)[index], contrasts])
    K = sums @ gram.astype(float) @ sums.T  # of rows and contrasts
    length = np.sqrt(K.diagonal())
    radius = np.array([0.2, 0.6, 1.0, 0.0]) * length[n:]
    price = np.array([0.3, 0.1, 0.03, 1.0]) * np.median(cost)
    side, costs = sign[index], cost[index]

    def of(result):
        """Return norm and products of the weights, and the size of what these are sums of."""
        x = np.concatenate([side * result.x, result.mu])
        total = np.sqrt(max(x @ K @ x, 0.0))
        norm = max(0.0, total - radius @ result.mu)
        return norm, norm / total * (K @ x) if total else 0.0 * x, np.abs(x) @ length

    def objective(result):
        norm, along, size = of(result)
        loss = hinges(along[:n] + result.intercept, side, costs, size * length[:n])
        short = price * np.maximum(radius * norm - along[n:], 0.0)
        blur = 0.5 * size * price @ length[n:] + 0.5 * size**2
        return Value.of([0.5 * norm**2], loss, short, [blur, -blur])

    def dual(result):
        assert (result.x >= 0).all()
        assert (result.x <= costs).all()
        assert (result.mu >= 0).all()
        assert (result.mu <= price).all()
        assert abs(side @ result.x) <= 1e-12 * result.x.sum()
        norm, _, size = of(result)
        return Value.of(result.x, [-0.5 * norm**2, 0.5 * size**2, -0.5 * size**2])

    def criterion(result):
        norm, along, size = of(result)
        pairs = pair_violation(side - along[:n], side, result.x, costs)
        slope = radius * norm - along[n:]
        grows, shrinks = result.mu < price, result.mu > 0
        single = max(slope[grows].max(initial=0.0), -slope[shrinks].min(initial=0.0))
        return Value(max(pairs, single), size * length.max())

    points = solvers.CachedRows(solvers.DenseGram(gram), max_bytes=10_000) if as_operator else gram
    settings = {"criterion": criterion, "history": "dual"}
    if by_program:
        settings = {"history": "none", "exact": {"tol": 1e-10}}
    return Problem(
        "solve_cone_svm" + "_by_program" * by_program, kind + "-operator" * as_operator,
        {"points": points, "index": index, "sign": side, "cost": costs, "contrasts": contrasts,
         "radius": radius, "price": price},
        objective, dual, **settings,
    )  # fmt: skip


def odm(kind, *, theta=0.2, nu=0.2):
    A, sign, cost = rows(kind)
    gram = A @ A.T
    K = gram.astype(float)
    low, high, used = 1.0 - theta, 1.0 + theta, cost > 0

    def objective(result):
        margin, size = sign * (K @ result.x), np.abs(K) @ np.abs(result.x)
        below, above = np.maximum(low - margin, 0.0), np.maximum(margin - high, 0.0)
        blur = cost * (below + nu * above) * size
        loss = cost * (below**2 + nu * above**2)
        return Value.of(0.5 * np.outer(result.x, result.x) * K, loss, blur, -blur)

    def dual(result):
        assert not result.x[~used].any()
        alpha = (sign * result.x)[used]
        up, down = np.maximum(alpha, 0.0), np.maximum(-alpha, 0.0)
        return Value.of(
            low * up, -high * down, -(up**2) / (4 * cost[used]), -(down**2) / (4 * nu * cost[used]),
            -0.5 * np.outer(result.x, result.x) * K,
        )  # fmt: skip

    def criterion(result):
        (value, size), (bound, other) = objective(result), dual(result)
        return Value(value - bound, size + other).over(value)

    return Problem(
        "solve_odm", f"{kind}-{theta}-{nu}",
        {"gram": gram, "sign": sign, "cost": cost, "theta": theta, "nu": nu},
        objective, dual, criterion, exact={"tol": 1e-10},
    )  # fmt: skip


def linear_odm(kind, *, bias=1.0, theta=0.2, nu=0.2, sparse=False, by_passes=False):
    A, sign, cost = rows(kind)
    X = A.astype(float)
    low, high, used = 1.0 - theta, 1.0 + theta, cost > 0

    def constant(result):
        return [0.5 * result.intercept**2 / bias] if bias else [0.0]

    def objective(result):
        margin = sign * (X @ result.x + result.intercept)
        size = np.abs(X) @ np.abs(result.x) + abs(result.intercept)
        below, above = np.maximum(low - margin, 0.0), np.maximum(margin - high, 0.0)
        blur = cost * (below + nu * above) * size
        loss = cost * (below**2 + nu * above**2)
        return Value.of(0.5 * result.x**2, constant(result), loss, blur, -blur)

    def dual(result):
        assert not result.dual[~used].any()
        alpha = (sign * result.dual)[used]
        up, down = np.maximum(alpha, 0.0), np.maximum(-alpha, 0.0)
        q, size = X.T @ result.dual, np.abs(X).T @ np.abs(result.dual)
        blur = np.abs(q) * size
        return Value.of(
            low * up, -high * down, -(up**2) / (4 * cost[used]), -(down**2) / (4 * nu * cost[used]),
            -0.5 * q**2, [-0.5 * bias * result.dual.sum() ** 2], blur, -blur,
        )  # fmt: skip

    def criterion(result):
        (value, size), (bound, other) = objective(result), dual(result)
        return Value(value - bound, size + other).over(value)

    given = sp.csr_array(A) if sparse else A
    if by_passes:
        given = solvers.PassRows(Bags.from_list(np.array_split(A, 5)))
    return Problem(
        "solve_linear_odm", f"{kind}-{bias:g}" + "-sparse" * sparse + "-passes" * by_passes,
        {"rows": given, "sign": sign, "cost": cost, "bias": bias, "theta": theta, "nu": nu},
        objective, dual, criterion, exact={"tol": 1e-10},
    )  # fmt: skip
