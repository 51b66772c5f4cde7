"""The search for key instances and clusters."""

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise import Bags
from bagwise.bags import BagSource
from bagwise.solvers import Status
from bagwise.solvers.clustering._bag_mmc import solve_bag_mmc
from bagwise.solvers.clustering._bag_mmc_by_cuts import solve_bag_mmc_by_cuts
from bagwise.solvers.clustering._bag_mmc_search import balance_direction, search_bag_mmc


def draw(n=40, d=4, seed=0, dtype=np.float64, mean=0.5):
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(rng.integers(1, 6, n)))
    X = (rng.normal(size=(offsets[-1], d)) + mean).astype(dtype)
    return Bags(X, offsets)


def starts_for(bags, k=3, n_starts=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n_starts, k, bags.n_features))


def chosen(bags, W):
    """Return cluster, place and score of each bag, one after another."""
    out = []
    for bag in bags.to_list():
        scores = bag @ (W - W.mean(axis=0)).T
        place, cluster = np.unravel_index(scores.argmax(), scores.shape)
        out.append((cluster, place, scores.max()))
    return tuple(np.array(part) for part in zip(*out, strict=True))


def value(bags, W, C):
    k = len(W)
    loss = np.maximum(0.0, 1.0 - k / (k - 1) * chosen(bags, W)[2])
    return 0.5 * (W**2).sum() + C * loss.mean()


def plain_search(bags, W, C, balance, m, rounds=200):
    """Alternate until nothing changes, each problem solved well."""
    X, before = bags.instances, None
    for _ in range(rounds):
        cluster, place, _ = chosen(bags, W)
        if before is not None and np.array_equal(before, (cluster, place)):
            return W
        before = cluster, place
        W = solve_bag_mmc(
            X, cluster, len(W), C=C, balance=balance, direction=m,
            rows=bags.offsets[:-1] + place, tol=1e-7, max_iter=20_000,
        ).coef  # fmt: skip
    raise AssertionError


@pytest.mark.parametrize("balance", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("k", [2, 3])
def test_result_is_consistent(balance, k):
    bags = draw()
    source = BagSource(bags)
    m, _ = balance_direction(source)
    found = search_bag_mmc(
        source, starts_for(bags, k), C=2.0, balance=balance, direction=m, tol=0.0
    )
    assert found.converged
    cluster, place, score = chosen(bags, found.coef)
    np.testing.assert_array_equal(found.cluster, cluster)
    np.testing.assert_array_equal(found.place, place)
    np.testing.assert_allclose(found.score, score, rtol=1e-12)
    assert found.objective == pytest.approx(value(bags, found.coef, 2.0), rel=1e-12)
    assert np.ptp(found.coef @ m) <= min(balance, 1e9) + 1e-10
    # A fixed point: the best weights for these key instances are those found.
    again = solve_bag_mmc(
        bags.instances, cluster, k, C=2.0, balance=balance, direction=m,
        rows=bags.offsets[:-1] + place, tol=1e-8, max_iter=20_000,
    )  # fmt: skip
    assert found.objective <= again.objective * (1 + 2e-3)


@pytest.mark.parametrize("seed", range(4))
def test_as_good_as_plain_alternation(seed):
    bags = draw(seed=seed)
    m, _ = balance_direction(BagSource(bags))
    starts = starts_for(bags, n_starts=6, seed=seed)
    plain = [value(bags, plain_search(bags, W, 1.0, 0.5, m), 1.0) for W in starts]
    found = search_bag_mmc(
        BagSource(bags), starts, C=1.0, balance=0.5, direction=m, tol=0.0, inner_tol=1e-6
    )
    parts = [part.objective for part in found.parts]
    assert np.mean(parts) <= 1.1 * np.mean(plain)
    assert np.min(parts) <= 1.05 * np.min(plain)


def test_objective_falls_and_parts_are_kept():
    bags = draw(n=80)
    found = search_bag_mmc(BagSource(bags), starts_for(bags, n_starts=5), tol=0.0)
    assert len(found.parts) == 5
    for part in found.parts:
        assert part.converged
        assert (np.diff(part.history) <= 0).all()
        assert part.history[-1] == part.objective
        assert len(part.history) == len(part.gap_history) == part.n_iter
        assert part.gap_history[-1] <= 1e-3 * part.objective * 1.01
        assert part.objective <= 1.0  # that of weights of 0
    assert found.objective == found.parts[found.chosen].objective
    assert found.n_empty == 3 - len(np.unique(found.cluster))


def test_searches_without_empty_clusters_come_first():
    bags = draw(n=30, d=3)
    starts = starts_for(bags, n_starts=30)
    alone = [search_bag_mmc(BagSource(bags), W[None], C=0.3) for W in starts]
    assert 0 < sum(one.n_empty == 0 for one in alone) < 30
    together = search_bag_mmc(BagSource(bags), starts, C=0.3)
    assert together.n_empty == 0
    assert together.objective > min(part.objective for part in together.parts)
    empty = [W for W, one in zip(starts, alone, strict=True) if one.n_empty]
    together = search_bag_mmc(BagSource(bags), empty, C=0.3)
    assert together.objective == min(part.objective for part in together.parts)


def test_size_and_common_part_of_a_start_make_no_difference():
    bags = draw()
    starts = starts_for(bags)
    a = search_bag_mmc(BagSource(bags), starts)
    for size in (2.0**-20, 2.0**20):
        b = search_bag_mmc(BagSource(bags), size * starts)
        np.testing.assert_array_equal(a.coef, b.coef)
        assert [x.objective for x in a.parts] == [x.objective for x in b.parts]
    c = search_bag_mmc(BagSource(bags), starts + 7.0)
    assert c.objective == pytest.approx(a.objective, rel=1e-6)


def test_no_range_is_the_problem_without_the_direction():
    bags = draw(n=60)
    m, _ = balance_direction(BagSource(bags))
    X = bags.instances
    explicit = Bags(X - np.outer(X @ m, m) / (m @ m), bags.offsets)
    starts = starts_for(bags, n_starts=1)
    a = search_bag_mmc(BagSource(bags), starts, balance=0.0, direction=m, tol=0.0, inner_tol=1e-5)
    b = search_bag_mmc(BagSource(explicit), starts, tol=0.0, inner_tol=1e-5)
    np.testing.assert_array_equal(a.cluster, b.cluster)
    np.testing.assert_array_equal(a.place, b.place)
    assert a.objective == pytest.approx(b.objective, rel=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_file_gives_the_same_bits(tmp_path, dtype, sparse):
    bags = draw(n=3000, d=150, dtype=dtype)
    if sparse:
        X = np.where(bags.instances > 1.0, bags.instances, 0)
        bags = Bags(sp.csr_array(X), bags.offsets)
    bags.write(tmp_path / "some.bags")
    stored = Bags.open(tmp_path / "some.bags")
    assert stored.is_memory_mapped
    starts = starts_for(bags, n_starts=2)
    m, length = balance_direction(BagSource(bags))
    m_stored, length_stored = balance_direction(BagSource(stored))
    np.testing.assert_array_equal(m, m_stored)
    assert length == length_stored
    given = {"C": 1.0, "balance": 1.0, "direction": m, "max_iter": 4}
    a = search_bag_mmc(BagSource(bags), starts, **given, n_threads=1)
    assert BagSource(bags).n_chunks > 1 or sparse
    limited = None if sparse else "40MB"
    for source in (BagSource(bags), BagSource(stored), BagSource(stored, max_memory=limited)):
        b = search_bag_mmc(source, starts, **given, n_threads=2)
        np.testing.assert_array_equal(a.coef, b.coef)
        np.testing.assert_array_equal(a.place, b.place)
        np.testing.assert_array_equal(a.cluster, b.cluster)
        assert a.objective == b.objective


def test_sparse_equals_dense_and_selections_are_read_in_place():
    bags = draw(n=60)
    X = np.where(np.abs(bags.instances) > 0.4, bags.instances, 0.0)
    dense = Bags(X, bags.offsets)
    starts = starts_for(bags)
    a = search_bag_mmc(BagSource(dense), starts, balance=1.0, direction=np.ones(4))
    b = search_bag_mmc(
        BagSource(Bags(sp.csr_array(X), bags.offsets)), starts, balance=1.0, direction=np.ones(4)
    )
    np.testing.assert_array_equal(a.cluster, b.cluster)
    np.testing.assert_allclose(a.coef, b.coef, atol=1e-9)
    order = np.random.default_rng(0).permutation(60)[:30]
    c = search_bag_mmc(BagSource(dense[order]), starts)
    d = search_bag_mmc(BagSource(dense[order].compact()), starts)
    np.testing.assert_array_equal(c.coef, d.coef)


def test_cutting_planes_inside():
    """Solved well, the convex problems have one solution, and so the same way is gone."""
    bags = draw()
    m, _ = balance_direction(BagSource(bags))
    starts = starts_for(bags, n_starts=3)
    a, b = (
        search_bag_mmc(
            BagSource(bags), starts, balance=0.5, direction=m, tol=0.0, inner=inner,
            inner_tol=1e-7, inner_max_iter=10_000,
        )
        for inner in (solve_bag_mmc, solve_bag_mmc_by_cuts)
    )  # fmt: skip
    for one, other in zip(a.parts, b.parts, strict=True):
        assert one.converged
        assert other.converged
        np.testing.assert_allclose(one.history, other.history, rtol=1e-6)
    np.testing.assert_array_equal(a.cluster, b.cluster)
    np.testing.assert_array_equal(a.place, b.place)


def test_balance_direction_is_the_sum_of_means():
    bags = draw(n=20)
    m, length = balance_direction(BagSource(bags))
    np.testing.assert_allclose(m, sum(bag.mean(axis=0) for bag in bags.to_list()))
    lengths = [np.linalg.norm(bag, axis=1).mean() for bag in bags.to_list()]
    assert length == pytest.approx(sum(lengths))
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    np.testing.assert_allclose(balance_direction(BagSource(sparse))[0], m)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_lengths_in_single_precision(scale, sparse):
    bags = draw(n=20)
    X = (scale * bags.instances).astype(np.float32)
    m, length = balance_direction(BagSource(Bags(sp.csr_array(X) if sparse else X, bags.offsets)))
    expected, expected_length = balance_direction(BagSource(bags))
    np.testing.assert_allclose(m, scale * expected, rtol=1e-5)
    assert length == pytest.approx(scale * expected_length, rel=1e-5)


def test_rounds_are_limited_and_loose_ends_are_told():
    bags = draw(n=80)
    few = search_bag_mmc(BagSource(bags), starts_for(bags, n_starts=1), max_iter=1)
    assert (few.n_iter, few.status) == (1, Status.MAX_ITER)
    loose = search_bag_mmc(
        BagSource(bags), starts_for(bags, n_starts=1), C=1e4, inner_tol=1e-9, inner_max_iter=2
    )
    assert loose.status == Status.STALLED


def test_zero_instances():
    bags = Bags(np.zeros((6, 2)), [0, 2, 4, 6])
    found = search_bag_mmc(BagSource(bags), starts_for(bags, k=2, n_starts=2))
    assert found.converged
    assert found.objective == pytest.approx(1.0)
    assert found.n_empty == 1


@pytest.mark.parametrize("C", [0.0, -1.0, np.inf, np.nan])
def test_bad_costs_are_refused(C):
    bags = draw()
    with pytest.raises(ValueError, match="C of search_bag_mmc must be a positive number"):
        search_bag_mmc(BagSource(bags), starts_for(bags), C=C)


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        (np.ones((2, 4)), r"shape \(n_starts, n_clusters, n_features\)"),
        (np.ones((0, 2, 4)), "at least 1 start"),
        (np.ones((1, 1, 4)), "2 clusters"),
        (np.ones((1, 2, 3)), "weights of 4 features"),
        (np.full((1, 2, 4), np.nan), "finite weights"),
    ],
)
def test_bad_starts_are_refused(starts, message):
    with pytest.raises(ValueError, match=message):
        search_bag_mmc(BagSource(draw()), starts)


@pytest.mark.parametrize("C", [1.0, 30.0])
@pytest.mark.parametrize("layout", ["float64", "float32", "csr", "equal bags"])
def test_every_search_goes_the_same_way_in_any_order_of_bags(C, layout):
    bags = draw(120, 6, seed=5, dtype=np.float32 if layout == "float32" else np.float64)
    X = np.where(bags.instances > 0, bags.instances, 0.0) if layout == "csr" else bags.instances
    bags = Bags(sp.csr_array(X) if layout == "csr" else X, bags.offsets)
    places = np.arange(120) // (3 if layout == "equal bags" else 1)
    bags, starts = bags[places], starts_for(bags, n_starts=10)
    tolerance = 1e-5 if layout == "float32" else 1e-9
    for balance in (1.0, np.inf):
        runs = []
        for order in (np.arange(120), np.random.default_rng(0).permutation(120)):
            source = BagSource(bags[order])
            m, _ = balance_direction(source)
            runs.append(search_bag_mmc(source, starts, C=C, balance=balance, direction=m))
        for first, second in zip(runs[0].parts, runs[1].parts, strict=True):
            np.testing.assert_allclose(second.history, first.history, rtol=tolerance)
        np.testing.assert_allclose(runs[1].coef, runs[0].coef, atol=100 * tolerance)
