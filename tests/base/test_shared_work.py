"""Shared work: the same results as without it, for its own bags only, and nothing left behind."""

import copy
import gc
import pickle
import threading
from contextlib import closing
from weakref import ref

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest
from sklearn.preprocessing import StandardScaler

from bagwise import Bags
from bagwise.base import Share, SharedWork, shared_by
from bagwise.base._cache import Cache, Same, digest, size_of
from bagwise.embedding import MILES
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import (
    MICA,
    MISVM,
    SIL,
    BagKISVM,
    InsKISVM,
    MIGraphSVM,
    MIKernelSVM,
    MinimaxKernelSVM,
    StatisticKernelSVM,
    miSVM,
)
from bagwise.testing import make_toy_bags

MODELS = [
    SIL(),
    SIL(kernel="linear"),
    SIL(approx="cholesky", rank=8),
    MISVM(),
    MISVM(negative_slack="bag"),
    miSVM(n_init=2, random_state=0),
    MIKernelSVM(),
    MIKernelSVM(normalization="feature_space"),
    MIKernelSVM(kernel="poly", degree=2),
    StatisticKernelSVM(),
    StatisticKernelSVM(statistic="mean_std", gamma=0.2),
    StatisticKernelSVM(kernel="linear"),
    MinimaxKernelSVM(),
    MICA(),
    MICA(kernel="poly", degree=2, n_init=2, random_state=0),
    InsKISVM(random_state=0),
    InsKISVM(kernel="linear", random_state=0),
    BagKISVM(threshold="training", random_state=0),
    MIGraphSVM(graph="edges"),
    MIGraphSVM(graph="edges", normalization="parts"),
    MILES(),
]


@pytest.fixture(scope="module")
def toy():
    bags, y = make_toy_bags(30, max_size=4)
    return Bags.from_list(bags), np.asarray(y)


@pytest.fixture
def known(toy):
    """The same bags with a memory, and their labels."""
    bags, y = toy
    with closing(SharedWork(1e8)) as work:
        yield bags.with_shared(work), y


def short(model):
    return repr(model).replace(" ", "")


@pytest.mark.parametrize("order", ["given", "sparse", "scattered"])
@pytest.mark.parametrize("model", MODELS, ids=short)
def test_fits_are_those_without_it(toy, model, order):
    bags, y = toy
    if order == "sparse":
        bags = Bags(sparse.csr_array(np.maximum(bags.instances, 0.0)), bags.offsets)
    if order == "scattered":  # then the whole is a selection itself
        bags, y = bags[::-1], y[::-1]
    rng = np.random.default_rng(0)
    known = bags.with_shared(SharedWork(1e8))
    for C in (0.1, 1.0, 10.0):
        places = rng.permutation(len(y))
        train, test = places[:20], places[20:]
        plain = clone(model).set_params(C=C).fit(bags[train], y[train])
        shared = clone(model).set_params(C=C).fit(known[train], y[train])
        for part in (train, test, np.arange(len(y))):
            np.testing.assert_allclose(
                shared.decision_function(known[part]),
                plain.decision_function(bags[part]),
                atol=1e-5,
            )
        # The model is complete: it scores bags that nobody shares.
        np.testing.assert_allclose(
            shared.decision_function(bags), plain.decision_function(bags), atol=1e-5
        )
        assert shared.result_.objective == pytest.approx(plain.result_.objective, rel=1e-5)
        if hasattr(plain, "support_"):
            np.testing.assert_array_equal(shared.support_, plain.support_)


ALIKE = [  # one parameter of each differs from one of those above
    MICA(gamma=0.2),
    InsKISVM(bias=0.5, random_state=0),
    BagKISVM(threshold="zero", random_state=0),
    MIGraphSVM(graph="edges", edge_gamma=9.0),
    MIGraphSVM(graph="edges", max_edges=1),
    MIGraphSVM(graph="edges", threshold=0.8),
    MIGraphSVM(graph="edges", include_self_pairs=False),
    MIGraphSVM(graph="edges", kernel="poly"),
    MILES(gamma=0.2),
]


def test_machines_are_not_mistaken_for_each_other(toy, known):
    bags, y = toy
    before = []
    for model in (*MODELS, *ALIKE):
        shared = clone(model).fit(known[0], y).decision_function(known[0])
        scores = clone(model).fit(bags, y).decision_function(bags)
        np.testing.assert_allclose(shared, scores, atol=1e-5, err_msg=short(model))
        if model in ALIKE:
            assert all(np.abs(scores - others).max() > 1e-3 for others in before)
        before.append(scores)


@pytest.mark.parametrize("model", MODELS, ids=short)
def test_fits_with_other_weights_are_not_mistaken(toy, known, model):
    bags, y = toy
    weights = np.random.default_rng(0).uniform(0.2, 5.0, (2, len(y)))
    for weight in (None, *weights, None):
        shared = clone(model).fit(known[0], y, weight).decision_function(known[0])
        plain = clone(model).fit(bags, y, weight).decision_function(bags)
        np.testing.assert_allclose(shared, plain, atol=1e-5)


def test_only_selections_of_its_bags_are_known(toy, known):
    bags, (whole, _) = toy[0], known
    assert shared_by(bags) is None
    share = shared_by(whole[[9, 4, 2, 7]][1:])
    np.testing.assert_array_equal(share.index, [4, 2, 7])
    np.testing.assert_array_equal(whole.instances[share.rows], bags[[4, 2, 7]].instances)
    assert share.whole is whole
    assert shared_by(whole[[4, 4]]) is None
    assert shared_by(whole[[4, 2]].compact()) is None
    assert shared_by(whole.map_instances(np.square)) is None
    assert shared_by(Bags.concatenate([whole, whole])) is None
    for other in (pickle.loads(pickle.dumps(whole[:9])), copy.deepcopy(whole), copy.copy(whole)):
        assert shared_by(other) is None
    other = bags.with_shared(SharedWork(1e8))
    assert shared_by(other).work is other.shared
    assert shared_by(whole).work is whole.shared
    whole.shared.close()
    assert shared_by(whole) is None
    assert shared_by(other) is not None


def test_bags_made_of_each_are_shared_too(known):
    whole, made = known[0], []

    def squares(bags):
        made.append(bags)
        return bags.map_instances(np.square)

    some, others = (shared_by(whole[part]).of_each("squares", squares) for part in ([3, 1], [5]))
    assert len(made) == 1
    np.testing.assert_array_equal(some[1], whole[1] ** 2)
    share = shared_by(some)
    np.testing.assert_array_equal(share.index, [3, 1])
    assert share.whole is others.selection[0]
    assert share.of_whole("number", len) == shared_by(whole).of_whole("number", lambda _: 0) + 30


def test_nothing_is_kept_after_the_end(toy):
    bags, y = toy
    work = SharedWork(1e8)
    whole = bags.with_shared(work)
    model = SIL().fit(whole[:20], y[:20])
    share = shared_by(whole)
    late = share.of_each("late", lambda bags: (work.close(), bags.map_instances(np.square))[1])
    assert shared_by(late) is None
    assert not work.kept._values
    assert not work.solutions._values
    np.testing.assert_array_equal(model.decision_function(whole), model.decision_function(bags))
    SIL().fit(whole[:20], y[:20])
    assert not work.kept._values


def test_matrices_live_no_longer_than_they_are_kept(toy):
    bags, y = toy
    n_bytes = 1.5 * 8 * bags.n_instances**2
    whole = bags.with_shared(SharedWork(n_bytes))
    models = [SIL(gamma=gamma).fit(whole, y) for gamma in (0.5, 2.0)]
    gc.collect()
    matrices = [
        value.matrix() for value, _ in whole.shared.solutions._values.values()
        if hasattr(value, "matrix")
    ]  # fmt: skip
    assert [matrix is None for matrix in matrices] == [True, False]
    for model in models:
        np.testing.assert_allclose(model.decision_function(whole), model.decision_function(bags))
    work = ref(whole.shared.kept)
    whole.shared.close()
    del whole, matrices
    gc.collect()
    assert work() is None


def test_a_model_that_is_fitted_again_is_not_mistaken(toy, known):
    bags, y = toy
    for model in (SIL(), MIKernelSVM(), MICA(), MIGraphSVM(graph="edges"), MILES()):
        model.fit(known[0], y)
        model.set_params(gamma=3.0).fit(bags, y)
        np.testing.assert_allclose(
            model.decision_function(known[0]), model.decision_function(bags), atol=1e-10
        )


@pytest.mark.parametrize(
    "model", [SIL(), MIKernelSVM(), MICA(), MIGraphSVM(graph="edges"), MILES()], ids=short
)
def test_scores_come_from_the_matrix(known, monkeypatch, model):
    found, columns = [], Share._columns

    def spied(share, *args):
        found.append(columns(share, *args))
        return found[-1]

    monkeypatch.setattr(Share, "_columns", spied)
    fitted = clone(model).fit(known[0][:20], known[1][:20])
    fitted.decision_function(known[0][20:])
    assert found[0] is not None
    copy.deepcopy(fitted).decision_function(known[0][20:])  # its arrays are others
    assert found[-1] is None


@pytest.mark.parametrize("share", [0.0, 0.99])
@pytest.mark.parametrize("model", MODELS, ids=short)
def test_what_does_not_fit_is_not_even_made(toy, monkeypatch, model, share):
    bags, y = toy
    room = 100.0 + share * 8 * bags.n_instances**2  # less than the matrix between instances
    whole = bags.with_shared(SharedWork(room))
    put, sizes = Cache.put, []

    def spied(cache, key, value):
        put(cache, key, value)
        sizes.append(size_of(value) if cache is whole.shared.kept else 0)

    monkeypatch.setattr(Cache, "put", spied)
    shared = clone(model).fit(whole[:20], y[:20])
    plain = clone(model).fit(bags[:20], y[:20])
    np.testing.assert_allclose(
        shared.decision_function(whole), plain.decision_function(bags), atol=1e-10
    )
    assert max(sizes, default=0) <= room
    assert whole.shared.kept._held <= room


def test_a_transformer_is_fitted_and_applied_once(toy, known, monkeypatch):
    bags, y = toy
    whole, _ = known
    counts = {"fit": 0, "transform": 0}
    for name in counts:
        method = getattr(StandardScaler, name)

        def counted(self, *args, _name=name, _method=method, **params):
            # A few rows are transformed alone and among others, to see that it makes no difference.
            counts[_name] += _name == "fit" or len(args[0]) == bags.n_instances
            return _method(self, *args, **params)

        monkeypatch.setattr(StandardScaler, name, counted)
    steps = [InstanceTransformer(StandardScaler()) for _ in range(3)]
    parts = [step.fit_transform(whole[:20], y[:20]) for step in steps]
    assert counts == {"fit": 1, "transform": 1}
    assert parts[0].segments[0] is parts[2].segments[0]
    test = steps[0].transform(whole[20:])
    assert test.segments[0] is parts[0].segments[0]
    assert shared_by(test).whole is shared_by(parts[0]).whole
    assert counts["transform"] == 1
    plain = InstanceTransformer(StandardScaler()).fit(bags[:20], y[:20])
    np.testing.assert_allclose(test.instances, plain.transform(bags[20:]).instances)
    np.testing.assert_array_equal(
        steps[0].transform(bags).instances, plain.transform(bags).instances
    )
    for changed, train in (({"with_std": False}, slice(20)), ({}, slice(5, 30))):
        before = counts["fit"]
        InstanceTransformer(StandardScaler(**changed)).fit(whole[train], y[train])
        assert counts["fit"] == before + 1
    again = pickle.loads(pickle.dumps(steps[0]))
    np.testing.assert_array_equal(again.transform(bags).instances, plain.transform(bags).instances)


def test_a_transformer_that_learns_from_labels_is_shared_for_the_same_ones(known):
    whole, y = known
    by_labels = InstanceTransformer(SelectKBest(k=1))
    first, same, other = (clone(by_labels).fit(whole, labels) for labels in (y, y, y % 2 == 0))
    assert same.transformer_ is first.transformer_
    assert other.transformer_ is not first.transformer_


def test_a_transformer_that_cannot_be_named_is_fitted_each_time(known):
    class Local(StandardScaler):
        pass

    whole, y = known
    steps = [InstanceTransformer(Local()).fit(whole, y) for _ in range(2)]
    assert steps[0].transformer_ is not steps[1].transformer_


def test_a_transformer_that_refuses_other_bags(toy, known):
    class OnlySmall(StandardScaler):
        def transform(self, X):
            if len(X) > 50:
                msg = "too many"
                raise ValueError(msg)
            return super().transform(X)

    bags, y = toy
    step = InstanceTransformer(OnlySmall()).fit(known[0], y)
    few = slice(10)
    assert len(bags[few].instances) <= 50 < len(bags.instances)
    np.testing.assert_array_equal(
        step.transform(known[0][few]).instances, step.transform(bags[few]).instances
    )
    with pytest.raises(ValueError, match="too many"):
        step.transform(known[0])


def test_sizes_of_what_is_kept(toy, known):
    bags, y = toy
    whole, _ = known
    MICA(gamma=0.5).fit(whole, y)
    SIL(gamma=0.5).fit(whole, y)
    n = bags.n_instances
    assert whole.shared.kept._held == pytest.approx(8 * n**2, abs=200)  # both use one matrix
    of_mica, _, of_sil, _ = (size for _, size in whole.shared.solutions._values.values())
    assert of_mica > 8 * 4 * n  # weights, multipliers and decisions beside the rows
    assert of_sil > 8 * 3 * n
    assert size_of((np.zeros(3), sparse.csr_array(np.eye(2, dtype=np.float64)))) == 24 + 16 + 20


def test_cache_makes_a_value_once_and_forgets_the_oldest():
    cache, made = Cache(1000.0), []

    def value(name):
        made.append(name)
        return np.zeros(50)  # 400 bytes

    barrier = threading.Barrier(4)

    def ask():
        barrier.wait()
        cache.get("a", lambda: value("a"))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["a"]
    cache.get("b", lambda: value("b"))
    cache.get("a", lambda: value("a"))
    cache.get("c", lambda: value("c"))  # b was used least recently
    assert cache.find("b") is None
    assert made == ["a", "b", "c"]
    with pytest.raises(ZeroDivisionError):
        cache.get("d", lambda: 1 / 0)
    assert not cache._making
    assert cache.get("d", lambda: 5.0) == 5.0
    cache.put("e", np.zeros(200))  # larger than all of it
    assert cache.find("e") is None
    assert cache._held <= 1000
    cache.close()
    cache.put("f", 1.0)
    assert cache.find("f") is None


def test_cache_holds_what_was_used_last_up_to_its_limit():
    """Beside a plain list of keys and sizes, the one used last at its end."""
    rng = np.random.default_rng(0)
    cache, used = Cache(1000.0), []
    for _ in range(300):
        key = int(rng.integers(6))
        if rng.random() < 0.3:
            found = [pair for pair in used if pair[0] == key]
            assert (cache.find(key) is not None) == bool(found)
            used = [pair for pair in used if pair[0] != key] + found
            continue
        size = 8 * int(rng.integers(1, 150))
        cache.put(key, np.zeros(size // 8))
        used = [pair for pair in used if pair[0] != key]
        used += [(key, size)] if size <= 1000 else []
        while sum(size for _, size in used) > 1000:
            del used[0]
        assert list(cache._values) == [key for key, _ in used]
        assert cache._held == sum(size for _, size in used)


def test_arrays_have_names_of_their_own():
    zeros = [np.zeros(4), np.zeros((2, 2)), np.zeros((4, 1)), np.zeros(4, int), np.zeros(8, "f4")]
    several = [[a] for a in zeros] + [[np.zeros(2), np.zeros(2)], [np.zeros(4), np.zeros(0)], []]
    assert len({digest(*arrays) for arrays in several}) == len(several)
    assert digest(np.arange(8)[::2]) == digest(np.arange(0, 8, 2))


def test_a_key_of_one_object():
    first, second = np.zeros(3), np.zeros(3)
    values = {Same(first): 1}
    assert values[Same(first)] == 1
    assert Same(second) not in values
    assert Same(first) != first
