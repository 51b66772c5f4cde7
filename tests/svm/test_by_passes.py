"""Machines on instances that are read in passes: one model from memory, a store or a selection."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from bagwise import Bags
from bagwise.bags import _matrix
from bagwise.exceptions import BagFileError, InvalidBagsError
from bagwise.solvers import PassRows
from bagwise.solvers.operators import _pass_rows
from bagwise.solvers.svm import _pass_svm_bounds, _pass_svm_search
from bagwise.svm import MIODM, MISVM, ODM, PCSVM, SIL, miSVM
from bagwise.svm.machinery import _kernel_machine, _pass_trainer, _projection

METHODS = {"SIL": SIL, "MISVM": MISVM, "miSVM": miSVM, "PCSVM": PCSVM}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make small bags count as large ones, and chunks small."""
    monkeypatch.setattr(_kernel_machine, "MANY_VALUES", 1)
    monkeypatch.setattr(_matrix, "_CHUNK_BYTES", 4000)


def make(*, sparse=False, dtype=np.float64):
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 40, 60)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y = np.arange(60) % 2
    X = rng.normal(size=(offsets[-1], 10))
    for i in np.flatnonzero(y):
        X[offsets[i] : offsets[i] + 3, :2] += 3.0
    y[::10] = 1 - y[::10]
    X = sp.csr_array(X * (np.abs(X) > 0.7)) if sparse else X
    return Bags(X.astype(dtype), offsets), y


def fitted(model):
    return np.append(model.coef_.ravel(), model.intercept_)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("shape", ["dense", "sparse", "sparse and wide"])
def test_one_model_wherever_the_bags_lie(name, shape, tmp_path, monkeypatch):
    if shape == "sparse and wide":
        monkeypatch.setattr(_pass_svm_search, "_SETS", 0)
        monkeypatch.setattr(_pass_svm_search, "_WIDE", 1)
        monkeypatch.setattr(_pass_svm_bounds, "_POOL_VALUES", 2000)
    bags, y = make(sparse=shape != "dense", dtype=np.float32)
    model = METHODS[name](kernel="linear", C=0.1).fit(bags, y)
    bags.write(tmp_path / "made.bags")
    for limit in (None, "20kB"):
        stored = METHODS[name](kernel="linear", C=0.1, max_memory=limit)
        stored.fit(Bags.open(tmp_path / "made.bags"), y)
        np.testing.assert_array_equal(fitted(model), fitted(stored))
    fold = np.random.default_rng(1).permutation(60)[:40]
    scattered = METHODS[name](kernel="linear", C=0.1).fit(bags[fold], y[fold])
    compact = METHODS[name](kernel="linear", C=0.1).fit(bags[fold].compact(), y[fold])
    np.testing.assert_array_equal(fitted(scattered), fitted(compact))


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_convex_problem_has_the_solution_that_it_has_in_memory(C, sparse, monkeypatch):
    bags, y = make(sparse=sparse)
    model = SIL(kernel="linear", C=C).fit(bags, y)
    monkeypatch.setattr(_kernel_machine, "MANY_VALUES", np.inf)
    exact = SIL(kernel="linear", C=C).fit(bags, y).result_
    assert model.result_.converged
    assert model.result_.gap <= 1e-3 * model.result_.objective
    assert model.result_.lower_bound <= exact.objective * (1 + 1e-9)
    assert exact.objective * (1 - 1e-6) <= model.result_.objective <= exact.objective * (1 + 1e-3)


def few_and_wide(n_bags=30, size=5, n_features=1100):
    """Return float32 bags whose inner products are kept, and labels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_bags * size, n_features)), np.arange(n_bags) % 2
    X[::size, :20] += y[:, None]
    return Bags(X.astype(np.float32), np.arange(0, len(X) + 1, size)), y


WIDE_METHODS = {**METHODS, "ODM": ODM, "MIODM": partial(MIODM, solver="local")}


@pytest.mark.parametrize("name", WIDE_METHODS)
def test_few_rows_of_many_features_are_known_by_inner_products(name, tmp_path, monkeypatch):
    """One model wherever they lie; and that of the kernel matrix, if it is given."""
    monkeypatch.setattr(_pass_rows, "_FEW_VALUES", 40_000)  # a third of the rows at a time
    bags, y = few_and_wide()
    bags.write(tmp_path / "made.bags")
    places = [(bags, None), *((Bags.open(tmp_path / "made.bags"), m) for m in (None, "60kB"))]
    make = partial(WIDE_METHODS[name], C=0.1, kernel="linear")
    models = [make(max_memory=limit).fit(place, y) for place, limit in places]
    fold = np.random.default_rng(1).permutation(30)[:20]
    models += [make().fit(some, y[fold]) for some in (bags[fold], bags[fold].compact())]
    for model, same in (models[:2], models[1:3], models[3:]):
        np.testing.assert_array_equal(fitted(model), fitted(same))
    if name in ("SIL", "ODM"):
        X = bags.instances.astype(float)
        given = WIDE_METHODS[name](C=0.1, kernel="precomputed")
        given.fit(Bags(X @ X.T, bags.offsets), y)
        assert models[0].result_.objective == pytest.approx(given.result_.objective, rel=1e-5)
    scores = bags.instances @ models[0].coef_[0] + models[0].intercept_
    np.testing.assert_allclose(scores, models[0].instance_decision_function(bags), atol=1e-5)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_few_rows_of_many_features_are_certified_at_any_cost(C, monkeypatch):
    bags, y = few_and_wide()
    passes, dot = [], PassRows.dot
    monkeypatch.setattr(PassRows, "dot", lambda rows, w: passes.append(w) or dot(rows, w))
    result = SIL(kernel="linear", C=C).fit(bags, y).result_
    assert result.converged
    assert 0.0 <= result.gap <= 1e-3 * max(1.0, result.objective)
    assert len(passes) <= 4  # to score training bags, not to learn
    monkeypatch.setattr(_pass_trainer, "_FEW_POINTS", 10)
    other = SIL(kernel="linear", C=C).fit(bags, y).result_
    assert other.objective == pytest.approx(result.objective, rel=2e-3)
    assert result.lower_bound <= other.objective * (1 + 1e-9)


@pytest.mark.parametrize("n_features", [1100, 1600])
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_few_rows_of_noise_are_certified(n_features, C, monkeypatch):
    """Half as many features nearly separate noise: there steps on pairs of rows get nowhere."""
    bags, _ = few_and_wide(240, 10, n_features)
    y = np.arange(240) % 2
    monkeypatch.setattr(_pass_trainer, "_PAIR_STEPS", 20)
    result = SIL(kernel="linear", C=C, positive_cost=1.0).fit(bags, y).result_
    assert result.converged
    assert 0.0 <= result.gap <= 1e-3 * max(1.0, result.objective)


@pytest.mark.parametrize("steps", [500, 0])
def test_inner_products_are_made_once(steps, monkeypatch):
    """Whether steps on pairs of rows end or not, in loose rounds and in exact ones."""
    made, gram = [], PassRows.gram
    monkeypatch.setattr(PassRows, "gram", lambda rows: made.append(rows.n) or gram(rows))
    monkeypatch.setattr(_pass_trainer, "_PAIR_STEPS", steps)
    bags, y = few_and_wide(80)
    model = miSVM(kernel="linear", C=1.0).fit(bags, y)
    assert made == [400]
    assert model.result_.converged
    assert model.score(bags, y) == 1.0


@pytest.mark.parametrize("C", [1e-4, 1e-3])
def test_features_far_from_zero_are_certified_by_themselves(C):
    """Their inner products are too large to tell what was found."""
    bags, y = few_and_wide(80)
    X = bags.instances.astype(float)
    near, far = (
        SIL(kernel="linear", C=C, positive_cost=1.0).fit(Bags(X + shift, bags.offsets), y)
        for shift in (0.0, 1e6)
    )
    sign, w = np.repeat(2.0 * y - 1.0, 5), far.coef_[0]
    scores = X @ w + (far.intercept_[0] + 1e6 * w.sum())
    value = 0.5 * w @ w + C * np.maximum(1.0 - sign * scores, 0.0).sum()
    assert far.result_.objective == pytest.approx(value, rel=1e-5)
    assert far.result_.lower_bound <= near.result_.objective * (1 + 1e-6)
    assert value <= near.result_.objective * 1.002


@pytest.mark.parametrize("C", [1e4, 1e11])
def test_what_a_large_cost_magnifies_is_mended_by_a_factor(C, monkeypatch):
    """Rows that can be separated have an optimum that no larger cost changes."""
    monkeypatch.setattr(_pass_trainer, "solve_svm_by_passes", None)  # there is no need of passes
    bags, y = few_and_wide(320)
    models = [SIL(kernel="linear", C=cost, positive_cost=1.0).fit(bags, y) for cost in (1e3, C)]
    for model in models:
        assert model.result_.converged
        assert model.result_.gap <= 1e-3 * model.result_.objective
        sign = np.repeat(2.0 * y - 1.0, 5)
        assert (sign * model.instance_decision_function(bags)).min() >= 1.0 - 1e-7
    first, last = (model.result_.objective for model in models)
    assert last == pytest.approx(first, rel=1e-3)
    assert last == pytest.approx(0.5 * np.sum(models[1].coef_ ** 2), rel=1e-3)


@pytest.mark.parametrize("name", ["MISVM", "miSVM"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_rounds_lower_the_objective_and_end(name, C):
    bags, y = make()
    model = METHODS[name](kernel="linear", C=C).fit(bags, y)
    assert model.result_.converged
    assert (np.diff(model.result_.history) <= 0.0).all()
    scores = bags.instances @ model.coef_[0] + (model.intercept_ - model.intercept_shift_)
    best = np.maximum.reduceat(scores, bags.offsets[:-1])
    inside = np.repeat(y, bags.sizes)
    loss = np.maximum(1.0 + scores[inside == 0], 0.0).sum()
    if name == "MISVM":
        loss += np.maximum(1.0 - best[y == 1], 0.0).sum()
    else:  # labels of least loss: signs, and one +1 in each positive bag
        labels = np.where(scores >= 0.0, 1.0, -1.0)
        for i in np.flatnonzero(y):
            labels[bags.offsets[i] + np.argmax(bags[i] @ model.coef_[0])] = 1.0
        loss += np.maximum(1.0 - labels * scores, 0.0)[inside == 1].sum()
    found = 0.5 * (model.coef_**2).sum() + C * loss
    assert model.result_.objective == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 50])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_last_round_of_labels_is_solved_to_the_full_accuracy(C, max_iter, monkeypatch):
    bags, y = make()
    results, solve = [], _pass_trainer.solve_svm_by_passes

    def solve_and_keep(*args, **options):
        results.append(solve(*args, **options))
        return results[-1]

    monkeypatch.setattr(_pass_trainer, "solve_svm_by_passes", solve_and_keep)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = miSVM(C, kernel="linear", max_iter=max_iter).fit(bags, y)
    last = [result for result in results if np.array_equal(result.x, model.coef_[0])][-1]
    assert last.gap <= 1e-3 * last.objective


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("centering", ["bag", "none"])
def test_constraints_are_met_and_paid_for_as_in_memory(sparse, centering, monkeypatch):
    bags, y = make(sparse=sparse)
    model = PCSVM(C=0.1, kernel="linear", penalty=1.0, centering=centering).fit(bags, y)
    bounds = model.lambda_range(bags, y)
    monkeypatch.setattr(_kernel_machine, "MANY_VALUES", np.inf)
    exact = PCSVM(C=0.1, kernel="linear", penalty=1.0, centering=centering).fit(bags, y)
    assert model.result_.converged
    assert (np.diff(model.result_.history) <= 0.0).all()
    assert model.result_.objective == pytest.approx(exact.result_.objective, rel=1e-6)
    np.testing.assert_allclose(fitted(model), fitted(exact), atol=1e-4)
    np.testing.assert_array_equal(model.constraints_, exact.constraints_)
    np.testing.assert_allclose(bounds, exact.lambda_range(bags, y), rtol=1e-9)


def test_a_round_with_constraints_is_a_few_passes(monkeypatch):
    bags, y = make()
    passes, counts = [], []
    dot, solve = PassRows.dot, _projection.solve_cone_svm

    def solve_and_count(*args, **options):
        before = len(passes)
        result = solve(*args, **options)
        counts.append(len(passes) - before)
        return result

    monkeypatch.setattr(PassRows, "dot", lambda self, w: passes.append(w) or dot(self, w))
    monkeypatch.setattr(_projection, "solve_cone_svm", solve_and_count)
    PCSVM(C=0.1, kernel="linear", spread=0.0).fit(bags, y)
    assert len(counts) >= 2
    assert max(counts) <= 10


def test_no_inner_products_of_all_instances_under_constraints_are_formed(monkeypatch):
    """Contrasts are written down as features instead."""
    bags, y = make()
    most, block = [], PassRows.block
    bag = np.repeat(np.arange(len(bags)), bags.sizes)

    def block_and_note(self, rows, *others):
        most.append(np.bincount(bag[rows], minlength=len(bags))[y == 1].max())
        return block(self, rows, *others)

    monkeypatch.setattr(PassRows, "block", block_and_note)
    PCSVM(C=10.0, kernel="linear", spread=0.0).fit(bags, y)
    assert most
    assert max(most) == 1  # key instance of a positive bag


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("approx", ["nystroem", "fourier"])
def test_maps_that_do_not_fit_are_made_as_instances_are_read(name, approx, tmp_path, monkeypatch):
    bags, y = make()
    calls, solve = [], _pass_trainer.solve_svm_by_passes
    monkeypatch.setattr(
        _pass_trainer,
        "solve_svm_by_passes",
        lambda *args, **options: calls.append(args) or solve(*args, **options),
    )
    bags.write(tmp_path / "made.bags")
    settings = {"C": 0.1, "approx": approx, "rank": 12, "gamma": 0.1, "random_state": 0}
    kept = METHODS[name](**settings).fit(bags, y)
    assert not calls
    model = METHODS[name](**settings, cache_size=0.01).fit(bags, y)
    stored = METHODS[name](**settings, cache_size=0.01).fit(Bags.open(tmp_path / "made.bags"), y)
    assert calls
    np.testing.assert_array_equal(model.decision_function(bags), stored.decision_function(bags))
    assert model.result_.objective == pytest.approx(kept.result_.objective, rel=2e-2)
    optimum, other = (m.decision_function(bags) - m.intercept_shift_ for m in (model, kept))
    assert np.mean((optimum > 0) == (other > 0)) > 0.9


def test_the_convex_problem_on_a_map_has_the_solution_that_it_has_in_memory():
    bags, y = make()
    settings = {"C": 0.1, "approx": "nystroem", "rank": 12, "random_state": 0}
    kept = SIL(**settings).fit(bags, y).result_
    model = SIL(**settings, cache_size=0.01).fit(bags, y).result_
    assert model.gap <= 1e-3 * model.objective
    assert kept.objective * (1 - 1e-6) <= model.objective <= kept.objective * (1 + 1e-3)


def test_more_than_two_classes_and_labels_that_no_bag_has():
    bags, y = make()
    y = y + (np.arange(60) % 5 == 0)
    model = MISVM(kernel="linear").fit(bags, y)
    assert model.coef_.shape == (3, 10)
    assert model.score(bags, y) > 0.5


def _spoil(folder, row):
    stored = np.load(folder / "instances.npy", mmap_mode="r+")
    stored[row, 4] = np.inf
    stored.flush()


@pytest.mark.parametrize("name", METHODS)
def test_a_bad_value_in_a_late_chunk_is_named_and_the_fit_before_stays(name, tmp_path):
    bags, y = make()
    bags.write(tmp_path / "made.bags")
    model = METHODS[name](kernel="linear").fit(bags, y)
    before = fitted(model)
    _spoil(tmp_path / "made.bags", bags.n_instances - 2)
    size = bags.sizes[-1]
    with pytest.raises(InvalidBagsError, match=f"bag 59 holds infinity at instance {size - 2}, "):
        model.fit(Bags.open(tmp_path / "made.bags"), y)
    np.testing.assert_array_equal(fitted(model), before)


def test_a_store_that_changes_under_a_fit_is_refused(tmp_path, monkeypatch):
    bags, y = make()
    bags.write(tmp_path / "made.bags")
    model, solve = SIL(kernel="linear"), _pass_trainer.solve_svm_by_passes

    def solve_later(*args, **options):
        np.save(tmp_path / "made.bags" / "instances.npy", bags.instances[::-1])
        return solve(*args, **options)

    monkeypatch.setattr(_pass_trainer, "solve_svm_by_passes", solve_later)
    with pytest.raises(BagFileError, match="has changed since"):
        model.fit(Bags.open(tmp_path / "made.bags"), y)
    assert not hasattr(model, "coef_")
