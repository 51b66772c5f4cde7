"""Programmes, clusters, assignments and expansions on hard rows, straight from the docs."""

from itertools import combinations, permutations

import numpy as np

import bagwise.solvers as solvers
from bagwise import Bags
from bagwise.bags import BagSource
from bagwise.kernels import InstanceKernel
from solvers.problems import EPS, Problem, Value, hinges, rows


def qp(kind):
    A, sign, cost = rows(kind)
    X, (n, d) = A.astype(float), A.shape
    P = np.diag(np.r_[np.ones(d), np.zeros(n + 1)])
    q = np.r_[np.zeros(d + 1), cost]
    A_ub = -np.hstack([sign[:, None] * X, sign[:, None], np.eye(n)])
    lower = np.r_[np.full(d + 1, -np.inf), np.zeros(n)]

    def objective(result):
        return Value.of(0.5 * np.outer(result.x, result.x) * P, q * result.x)

    return Problem(
        "solve_qp", kind,
        {"P": P, "q": q, "A_ub": A_ub, "b_ub": -np.ones(n), "lower": lower},
        objective, least=1, history="none", exact={},
    )  # fmt: skip


def cuts(kind, C, eps=0.0):
    A, sign, _ = rows(kind)
    X, (n, d) = A.astype(float), A.shape

    def loss(w):
        slack = 1.0 - sign * (X @ w)
        inside = slack > 0.0
        return solvers.Cut(
            slope=-(sign * inside) @ X / n, offset=inside.mean(), value=slack[inside].sum() / n
        )

    def objective(result):
        return Value.of(0.5 * result.x**2, hinges(X @ result.x, sign, C / n))

    def criterion(result):
        value, gap = objective(result).value, result.objective - result.lower_bound
        return Value(gap / (max(tol * value, C * eps) / tol), 1.0)

    def residual(result):
        return Value(1.0 - result.lower_bound / objective(result).value, 1.0)

    tol = 1e-9 if eps else 1e-3
    return Problem(
        "minimize_by_cuts", f"{kind}-{C:g}-{eps:g}",
        {"loss": loss, "n_weights": d, "C": C, "eps": eps, "tol": tol},
        objective, None, criterion, residual, least=1, exact={} if eps else {"tol": 1e-7},
    )  # fmt: skip


# ------------------------------------------------------------------------------------ clustering


def key_rows(kind):
    """Return rows with clusters of their own, and a direction."""
    X, sign, _ = rows(kind)
    X[:, 1] += 2.0 * sign
    cluster = (sign > 0).astype(int) + (X[:, 1] > X[:, 1].mean())
    return X, cluster, np.asarray(X.sum(axis=0), float)


def bag_mmc(kind, solver, *, C=1.0, balance=np.inf):
    X, cluster, direction = key_rows(kind)
    k, Y = 3, X.astype(float)

    def objective(result):
        W = result.coef
        assert np.ptp(W @ direction) <= balance + 1e-9 * np.abs(W * direction).sum()
        margin = 1.5 * ((W - W.mean(axis=0))[cluster] * Y).sum(axis=1)
        return Value.of(0.5 * W**2, hinges(margin, 1.0, C / len(Y)))

    def criterion(result):
        value = objective(result).value
        return Value((value - result.lower_bound) / value, 1.0)

    is_cuts = solver == "solve_bag_mmc_by_cuts"
    return Problem(
        solver, f"{kind}-{C:g}-{balance:g}",
        {"instances": X, "cluster": cluster, "n_clusters": k, "C": C,
         "balance": balance, "direction": direction},
        objective, None, criterion, least=int(is_cuts), exact={"tol": 1e-7, "max_iter": 3000},
        history="falls" if is_cuts else "ends",
    )  # fmt: skip


def toy_bags(kind):
    A, _, _ = rows(kind)
    n = len(A)
    return Bags(A, np.r_[0, 3, 4, np.arange(8, n, 4), n])


def blurred(value, bags):
    """Return a value that is computed in the precision of the bags."""
    factor = float(np.finfo(bags.dtype).eps) / EPS
    return value._replace(size=value.size * min(factor, 1e7))


def mmc(kind, solver, *, C=1.0, balance=np.inf):
    bags = toy_bags(kind)
    X = bags.instances.astype(float)
    start = X[[0, 9, 17]]
    direction = X.sum(axis=0)

    def objective(result):
        W = getattr(result, "coef", result.x if hasattr(result, "x") else None)
        assert np.ptp(W @ direction) <= balance + 1e-9 * np.abs(W * direction).sum()
        scores = X @ W.T
        if solver == "search_bag_mmc":
            lead = 1.5 * (scores.max(axis=1) - scores.mean(axis=1))
            margin = np.maximum.reduceat(lead, bags.offsets[:-1])
        else:
            ranked = np.sort(scores, axis=1)
            margin = ranked[:, -1] - ranked[:, -2]
        value = Value.of(0.5 * W**2, hinges(margin, 1.0, C / len(margin)))
        return blurred(value, bags)  # scores are in single precision

    first = {"starts": np.stack([start, X[[1, 5, 30 % len(X)]]])}
    return Problem(
        solver, f"{kind}-{C:g}-{balance:g}",
        {"source": BagSource(bags), **(first if solver == "search_bag_mmc" else {"start": start}),
         "C": C, "balance": balance, "direction": direction},
        objective, least=1, exact={"tol": 1e-8},
        budget="max_cuts" if solver == "solve_mmc_by_cuts" else "max_iter",
    )  # fmt: skip


def k_means(kind):
    bags = toy_bags(kind)
    X = bags.instances.astype(float)
    start = X[[0, 9, 17]]
    weight = np.linspace(0.5, 2.0, len(X))

    def objective(result):
        """Take as many plain steps of Lloyd from the start."""
        centres = start
        for _ in range(result.n_iter):
            square = ((X[:, None] - centres) ** 2).sum(axis=2)
            label = square.argmin(axis=1)
            centres = np.stack([np.average(X[label == p], 0, weight[label == p]) for p in range(3)])
        np.testing.assert_allclose(
            result.x, centres, rtol=1e-4 if bags.dtype.itemsize < 8 else 1e-9
        )
        value = Value.of(weight[:, None] * (X - centres[label]) ** 2)
        return value._replace(size=value.size * (1e9 if bags.dtype.itemsize < 8 else 1.0))

    return Problem(
        "solve_k_means", kind,
        {"source": BagSource(bags), "start": start, "weight": weight},
        objective, least=1, exact={"tol": 0.0},
    )  # fmt: skip


def mixture(kind):
    bags = toy_bags(kind)
    X = bags.instances.astype(float)
    unit = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(unit > 0, unit, 1.0)
    start = solvers.Mixture(X[[0, 9, 17]], np.ones((3, X.shape[1])), np.array([0.2, 0.3, 0.5]))
    weight = np.linspace(0.5, 2.0, len(X))

    def objective(result):
        m = result.mixture
        apart = (X[:, None] - m.means) ** 2 / m.variances + np.log(2.0 * np.pi * m.variances)
        logs = np.logaddexp.reduce(np.log(m.shares) - 0.5 * apart.sum(axis=2), axis=1)
        assert m.variances.min() >= 1e-3
        return Value.of(-weight * logs / weight.sum())._replace(size=np.abs(apart).max())

    return Problem(
        "solve_mixture", kind,
        {"rows": X, "start": start, "weight": weight, "min_variance": 1e-3},
        objective, exact={"tol": 1e-9, "max_iter": 5000},
    )  # fmt: skip


def k_medoids(kind, method):
    A, _, _ = rows(kind)
    D = np.sqrt(((A[:, None] - A) ** 2).sum(axis=2))
    E = D.astype(float)

    def objective(result):
        return Value.of(E[:, result.medoids].min(axis=1))

    def criterion(result):
        """Look at every exchange, or at every other medoid of a cluster."""
        value = objective(result).value
        if method == "alternate":
            own = [E[np.ix_(result.labels == p, result.labels == p)] for p in range(4)]
            least = sum(block.sum(axis=0).min() for block in own)
        else:
            others = [np.delete(result.medoids, p) for p in range(4)]
            near = [E[:, other].min(axis=1) for other in others]
            least = min(np.minimum(E, part[:, None]).sum(axis=0).min() for part in near)
        return Value(float(least < (1.0 - 1e-12) * value), 0.0)

    return Problem(
        "solve_k_medoids", f"{kind}-{method}",
        {"distance": D, "n_clusters": 4, "method": method, "n_init": 1,
         "rng": np.random.default_rng(0), "init": [0, 1, 2, 3]},
        objective, None, criterion, least=1, exact={}, tol=0.0, is_sure=False,
    )  # fmt: skip


# ------------------------------------------------------------- assignments, expansions, surrogates


def boosted(kind, loss):
    A, _, cost = rows(kind)
    X = A[:24].astype(float)
    signs = np.r_[np.ones(4), -np.ones(4)]
    weight = np.maximum(cost[:8], 1e-3)

    def objective(result):
        F = np.full(24, result.intercept)
        for coef, stump in zip(result.x, result.learners, strict=True):
            F += coef * stump.sign * np.where(X[:, stump.feature] > stump.threshold, 1.0, -1.0)
        F = F.reshape(8, 3)
        if loss == "average":
            terms = weight * np.exp(-signs * F.mean(axis=1))
        elif loss == "isr":
            terms = weight * np.logaddexp(0.0, -signs * np.logaddexp.reduce(F, axis=1))
        else:
            missed = np.logaddexp(0.0, F).sum(axis=1)
            hit = -np.log1p(-np.exp(-np.maximum(missed, 1.0)))
            hit = np.where(missed < 1.0, -np.log(-np.expm1(-missed)), hit)
            terms = weight * np.where(signs > 0, hit, missed)
        return Value(float(terms.sum()), 100.0 * float(np.abs(terms).sum()))

    return Problem(
        "boost_bags", f"{kind}-{loss}",
        {
            "weak": solvers.Stumps(X), "offsets": np.arange(0, 25, 3), "sign": signs,
            "weight": weight, "loss": loss,
        },
        objective, exact={}, is_sure=False,
    )  # fmt: skip


def concepts(kind, solver, cause="most_likely"):
    A, _, cost = rows(kind)
    X = A[:24].astype(float)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    offsets = np.arange(0, 25, 3)
    signs = np.r_[np.ones(4), -np.ones(4)]
    weight = np.maximum(cost[:8], 1e-3)
    density = solvers.Density(X, offsets, signs, weight, cause)
    d = X.shape[1]

    def objective(result):
        h, s = result.x[:d], result.x[d:]
        p = np.exp(-np.maximum((s * (X - h)) ** 2 @ np.ones(d), 1e-12)).reshape(8, 3)
        P = p.max(axis=1) if cause == "most_likely" else 1.0 - np.prod(1.0 - p, axis=1)
        terms = -weight * np.log(np.where(signs > 0, P, 1.0 - P))
        return Value(float(terms.sum()), 1e8 * float(np.abs(terms).sum()))

    return Problem(
        solver, f"{kind}-{cause}",
        {"density": density, "starts": np.r_[X[0], np.full(d, 0.3)][None]},
        objective, exact={}, is_sure=False,
    )  # fmt: skip


def rectangles(kind):
    A, _, cost = rows(kind)
    X = A[:24].astype(float)
    signs = np.r_[np.ones(4), -np.ones(4)]

    def objective(result):
        inside = X[result.chosen][:, result.features]
        return Value(float(np.ptp(inside, axis=0).sum()), float(np.abs(inside).sum()))

    return Problem(
        "grow_rectangle", kind,
        {
            "rows": X, "offsets": np.arange(0, 25, 3), "sign": signs,
            "weight": np.maximum(cost[:8], 1e-3), "margin": float(X.std()) or 1.0,
        },
        objective, exact={}, least=1, is_sure=False,
    )  # fmt: skip


def cut_rectangles(kind):
    A, _, cost = rows(kind)
    X = A[:24].astype(float)
    signs = np.r_[np.ones(4), -np.ones(4)]
    weight = np.maximum(cost[:8], 1e-3)

    def objective(result):
        lower, upper = result.x.reshape(2, -1)
        inside = ((lower <= X) & (upper >= X)).all(axis=1)
        is_wrong = inside.reshape(8, 3).any(axis=1) != (signs > 0)
        parts = [
            weight[mine] @ is_wrong[mine] / weight[mine].sum() for mine in (signs > 0, signs < 0)
        ]
        return Value(float(sum(parts)), 1.0)

    return Problem(
        "cut_rectangle", kind,
        {"rows": X, "offsets": np.arange(0, 25, 3), "sign": signs, "weight": weight},
        objective, exact={}, least=1, is_sure=False,
    )  # fmt: skip


def label_assignments(kind, method):
    A, _, cost = rows(kind)
    X = A[:24].astype(float)
    offsets = np.array([0, 1, 3, 6, 10, 12, 15, 16, 20, 24])
    lists = np.random.default_rng(3).random((9, 5)) < 0.5
    weight = np.maximum(cost[:9], 1e-3)
    wide = np.repeat(weight, np.diff(offsets))

    def value(labels):
        terms = [np.zeros(1)]
        for c in range(5):
            own, w = X[labels == c], wide[labels == c]
            if len(own):
                terms.append(w[:, None] * (own - w @ own / w.sum()) ** 2)
        return Value.of(*terms)

    def objective(result):
        spread = value(result.labels)
        named = result.labels >= 0
        return Value(spread.value, float(wide[named] @ (X[named] ** 2).sum(axis=1)))

    def criterion(result):
        """Look at all labels of each bag alone."""
        best, found = objective(result), np.inf
        for bag, has in enumerate(lists):
            inside = np.arange(offsets[bag], offsets[bag + 1])
            names = np.flatnonzero(has)
            number = min(len(inside), len(names))
            for some in permutations(inside, number):
                for chosen in combinations(names, number):
                    labels = result.labels.copy()
                    labels[inside] = -1
                    labels[list(some)] = chosen
                    found = min(found, value(labels).value)
        return Value(float(found < best.value - best.rounding), 0.0)

    return Problem(
        "solve_label_assignments", f"{kind}-{method}",
        {"rows": A[:24], "sample_weight": weight, "method": method,
         "lists": solvers.LabelLists.from_indicator(offsets, lists)},
        objective, None, criterion if method == "exact" else None, exact={}, tol=0.0,
        is_sure=False,
    )  # fmt: skip


def key_choices(kind, method):
    A, _, cost = rows(kind)
    X = A[:24].astype(float)
    offsets = np.array([0, 1, 3, 6, 10, 12, 15, 16, 20, 24])
    is_positive, weight = np.arange(9) % 3 > 0, np.maximum(cost[:9], 1e-3)
    wide = np.repeat(weight, np.diff(offsets))

    def value(chosen):
        is_key, terms = np.isin(np.arange(24), chosen), []
        for mine in (is_key, ~is_key):
            own, w = X[mine], wide[mine]
            terms.append(w[:, None] * (own - w @ own / w.sum()) ** 2)
        return Value.of(*terms)

    def objective(result):
        center = wide @ X / wide.sum()
        scatter = float(wide @ ((X - center) ** 2 + center**2).sum(axis=1))
        return Value(value(result.chosen).value, scatter)

    def criterion(result):
        """Look at all rows of each positive bag alone."""
        best, found = objective(result), np.inf
        for k, bag in enumerate(np.flatnonzero(is_positive)):
            for row in range(offsets[bag], offsets[bag + 1]):
                chosen = result.chosen.copy()
                chosen[k] = row
                found = min(found, value(chosen).value)
        return Value(float(found < best.value - best.rounding), 0.0)

    return Problem(
        "solve_key_rows", f"{kind}-{method}",
        {"rows": A[:24], "sample_weight": weight, "method": method, "offsets": offsets,
         "is_positive": is_positive},
        objective, None, criterion if method == "exact" else None, exact={}, tol=0.0,
        least=1, is_sure=False,
    )  # fmt: skip


def weak_lists(kind):
    """Return rows in bags, which labels each of these lists, and weights."""
    A, _, cost = rows(kind)
    X = A[:24].astype(float)
    offsets = np.array([0, 1, 3, 6, 10, 12, 15, 16, 20, 24])
    lists = np.random.default_rng(3).random((9, 5)) < 0.5
    left, lengths, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    X = (left * lengths)[:, lengths > 1e-9 * lengths[0]]  # in the space that they span
    return X / np.abs(X).max(), offsets, lists, np.maximum(cost[:9], 1e-3)


def pair_metric(kind):
    X, offsets, lists, weight = weak_lists(kind)
    pairs = solvers.bag_pairs(lists, weight, max_pairs=100, rng=np.random.default_rng(0))

    def objective(result):
        Y = X @ result.components.T
        size = 0.05 * (result.components**2).sum() / len(result.components)
        total = {True: [0.0, 0.0], False: [0.0, 0.0]}
        for (d, e), is_alike, w in zip(pairs.bags, pairs.is_alike, pairs.weight, strict=True):
            first, second = (Y[offsets[bag] : offsets[bag + 1]] for bag in (d, e))
            nearest = ((first[:, None] - second) ** 2).sum(axis=2).min()
            lead = (nearest - result.threshold) * (1.0 if is_alike else -1.0)
            total[bool(is_alike)][0] += w * np.logaddexp(0.0, lead)
            total[bool(is_alike)][1] += w
        return Value.of(size, *(0.5 * loss / mass for loss, mass in total.values()))

    start = np.eye(X.shape[1])[:2] * 2.0
    return Problem(
        "solve_pair_metric", kind,
        {"rows": X, "offsets": offsets, "pairs": pairs, "start": start, "alpha": 0.1},
        objective, exact={"tol": 1e-7}, is_sure=False,
    )  # fmt: skip


def center_metric(kind):
    X, offsets, lists, weight = weak_lists(kind)

    def objective(result):
        A, Z = result.components, result.centers
        np.testing.assert_allclose(A @ A.T, np.eye(len(A)), atol=1e-9)
        within = [
            w * ((X[offsets[i] : offsets[i + 1]] - Z[c]) @ A.T) ** 2
            for i, w in enumerate(weight)
            for c in np.flatnonzero(lists[i])
        ]
        top = sum(part.sum(axis=1).min() for part in within)
        bottom = ((Z[:, None] - Z) @ A.T) ** 2
        return Value(top / bottom.sum(), 1e4 * top / bottom.sum())

    return Problem(
        "solve_center_metric", kind,
        {"rows": X, "lists": solvers.LabelLists.from_indicator(offsets, lists), "n_components": 1,
         "sample_weight": weight},
        objective, exact={}, is_sure=False,
    )  # fmt: skip


def ratio_metric(kind):
    A, sign, cost = rows(kind)
    V = A.astype(float)
    near, far = np.where(sign > 0, cost, 0.0), np.where(sign < 0, cost, 0.0)

    def objective(result):
        U = result.components.T
        np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-9)
        norms = np.sqrt(((V @ U) ** 2).sum(axis=1))
        ratio = float(near @ norms) / float(far @ norms)
        return Value(ratio, ratio)

    return Problem(
        "solve_ratio_metric", kind,
        {"rows": V, "near": near, "far": far, "n_components": 2},
        objective, exact={}, is_sure=False,
    )  # fmt: skip


def assignments(kind):
    A, _, cost = rows(kind)
    X = A.astype(float)
    bags, fixed = X[:15], X[15:23]
    offsets = np.arange(0, 16, 3)
    sign = np.r_[np.ones(5), -np.ones(8)]
    ridge = 1.0 / np.maximum(np.r_[cost[:15:3], cost[15:23]], 1e-3)
    problem = solvers.AssignmentProblem(bags @ bags.T, bags @ fixed.T, fixed @ fixed.T, offsets)

    def objective(result):
        """Mix the Gram matrices of the columns."""
        assert abs(result.x.sum() - 1.0) <= 1e-9
        form = np.zeros((13, 13))
        for weight, column in zip(result.x, result.columns, strict=True):
            parts = np.add.reduceat(column[:, None] * bags, offsets[:-1])
            mixed = np.vstack([parts, fixed])
            form += weight * mixed @ mixed.T
        form += np.diag(ridge)
        return Value.of(-0.5 * np.outer(result.b, result.b) * form)

    def criterion(result):
        return Value(result.gap_estimate / abs(objective(result).value), 1.0)

    return Problem(
        "generate_assignments", kind,
        {"problem": problem, "inner": solvers.NuSVMInner(sign, ridge, tol=1e-11),
         "rng": np.random.default_rng(0)},
        objective, None, criterion, budget="max_rounds", least=1, exact={"tol": 1e-8},
    )  # fmt: skip


def mirror_prox(kind):
    A, _, _ = rows(kind)
    X = A.astype(float)
    X /= np.abs(X).max()
    bags, fixed = X[:15], X[15:23]
    offsets = np.arange(0, 16, 3)
    sign = np.r_[np.ones(5), -np.ones(8)]
    problem = solvers.AssignmentProblem(bags @ bags.T, bags @ fixed.T, fixed @ fixed.T, offsets)
    columns = np.zeros((3, 15))
    for k in range(3):
        columns[k, offsets[:-1] + k] = 1.0

    def objective(result):
        """Solve for the mixture of the Gram matrices."""
        form = np.zeros((13, 13))
        for weight, column in zip(result.x, result.columns, strict=True):
            parts = np.add.reduceat(column[:, None] * bags, offsets[:-1])
            mixed = np.vstack([parts, fixed])
            form += weight * mixed @ mixed.T
        solved = solvers.solve_odm(form, sign, 1.0, tol=1e-12)
        return Value(solved.objective, abs(solved.objective) * 1e6)

    def criterion(result):
        return Value(result.gap_estimate / abs(result.objective), 1.0)

    return Problem(
        "solve_by_mirror_prox", kind,
        {"problem": problem, "inner": solvers.ODMInner(sign, np.ones(13), 0.2, 0.2),
         "columns": columns},
        objective, None, criterion, least=1, history="none", exact={"tol": 1e-6},
    )  # fmt: skip


def expansion(kind, solver, **options):
    bags = toy_bags(kind)
    X, rng = bags.instances.astype(float), np.random.default_rng(4)
    kernel = InstanceKernel("rbf", gamma=1.0 / (X.var() * X.shape[1]))
    sign = np.where(rng.random((len(bags), 2)) < 0.5, 1.0, -1.0)
    cost = np.full(sign.shape, 1e6 if kind == "large" else 10.0)
    cost[0] = 0.0
    start = X[[0, 9, 17]]

    def objective(result):
        Z = np.asarray(result.x, float)
        K = np.exp(-kernel.gamma * ((Z[:, None] - Z) ** 2).sum(axis=2))
        K += result.jitter * np.eye(len(Z))
        values = np.exp(-kernel.gamma * ((X[:, None] - Z) ** 2).sum(axis=2))
        means = np.add.reduceat(values, bags.offsets[:-1]) / bags.sizes[:, None]
        decision = means @ result.coef.T + result.intercept
        forms = 0.5 * np.einsum("ck,kl,cl->ckl", result.coef, K, result.coef)
        value = Value.of(forms, hinges(decision, sign, cost, squared=True))
        return blurred(value, bags)

    vectors = "Z0" if solver == "minimize_expansion" else "Z"
    return Problem(
        solver, "-".join([kind, *map(str, options.values())]),
        {"source": solvers.KernelMeans(bags, kernel, len(start)), vectors: start, "sign": sign,
         "cost": cost, **options},
        objective, least=1, exact={"tol": 1e-7} if vectors == "Z0" else {},
    )  # fmt: skip


def reduced(kind):
    X, sign, _ = rows(kind)
    Y = X.astype(float)
    kernel = InstanceKernel("rbf", gamma=1.0 / (Y.var() * Y.shape[1]))
    coef = np.vstack([sign, np.linspace(0.0, 1.0, len(Y))])

    def objective(result):
        Z = np.vstack([Y, result.x])
        K = np.exp(-kernel.gamma * ((Z[:, None] - Z) ** 2).sum(axis=2))
        factor = np.hstack([coef, -result.coef])
        value = Value.of(np.einsum("ci,ij,cj->cij", factor, K, factor))
        return value._replace(size=100.0 * value.size)  # the history holds a small ridge too

    return Problem(
        "reduce_expansion", kind,
        {"kernel": kernel, "X": X, "coef": coef, "n_vectors": 4},
        objective, least=1, history="ends", exact={"tol": 1e-10},
    )  # fmt: skip


class _Hinges:
    """Squared hinges of weights at several points, as `minimize_lbfgs` asks for them."""

    def __init__(self, X, sign, cost):
        self.X, self.sign, self.cost = X, sign, cost

    def values(self, W, starts):
        self.W = dict(zip(starts.tolist(), W.copy(), strict=True))
        return np.array([0.5 * w @ w + self.losses(w).sum() for w in W])

    def gradients(self, starts):
        return np.array([self.gradient(self.W[start]) for start in starts.tolist()])

    def losses(self, w):
        size = np.abs(self.X) @ np.abs(w)
        return hinges(self.X @ w, self.sign, self.cost, size, squared=True)

    def gradient(self, w):
        slack = np.maximum(1.0 - self.sign * (self.X @ w), 0.0)
        return w - 2.0 * self.X.T @ (self.sign * self.cost * slack)


def lbfgs(kind):
    A, sign, cost = rows(kind)
    losses = _Hinges(A.astype(float), sign, cost)

    def objective(result):
        return Value.of(0.5 * result.x**2, losses.losses(result.x))

    return Problem(
        "minimize_lbfgs", kind, {"objective": losses, "X0": np.zeros((2, A.shape[1]))},
        objective,
    )  # fmt: skip


class _Quartic:
    """``x^4 - 8 x^2 + 3 x``, whose concave part is replaced by a tangent."""

    def value(self, x):
        return x**4 - 8.0 * x**2 + 3.0 * x

    def majorize(self, x):
        return 3.0 - 16.0 * x

    def minimize(self, slope, x, tol):
        return float(np.cbrt(-slope / 4.0))


def majorized(start):
    return Problem(
        "majorize_minimize", f"{start:g}", {"problem": _Quartic(), "x0": start},
        lambda result: Value.of([result.x**4, -8.0 * result.x**2, 3.0 * result.x]),
        exact={"tol": 1e-14, "max_iter": 1000},
    )  # fmt: skip
