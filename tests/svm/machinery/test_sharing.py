"""Shared work: the same results as without it, for its own bags only, and nothing left behind."""

import pickle
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import bagwise.svm.machinery._sharing as sharing
from bagwise import Bags
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
from bagwise.svm.machinery._cache import Cache, size_of
from bagwise.svm.machinery._sharing import SharedWork, shared_by
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


def short(model):
    return repr(model).replace(" ", "")


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=short)
def test_fits_are_those_without_it(toy, model, is_sparse):
    bags, y = toy
    if is_sparse:
        bags = Bags(sparse.csr_array(np.maximum(bags.instances, 0.0)), bags.offsets)
    rng = np.random.default_rng(0)
    with SharedWork(bags, 1e8) as work:
        for C in (0.1, 1.0, 10.0):
            order = rng.permutation(len(y))
            train, test = order[:20], order[20:]
            plain = clone(model).set_params(C=C).fit(bags[train], y[train])
            shared = clone(model).set_params(C=C).fit(work.bags[train], y[train])
            for part in (train, test, np.arange(len(y))):
                np.testing.assert_allclose(
                    shared.decision_function(work.bags[part]),
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
    BagKISVM(random_state=0),
    MIGraphSVM(graph="edges", edge_gamma=9.0),
    MIGraphSVM(graph="edges", max_edges=1),
    MIGraphSVM(graph="edges", threshold=0.8),
    MIGraphSVM(graph="edges", include_self_pairs=False),
    MIGraphSVM(graph="edges", kernel="poly"),
    MILES(gamma=0.2),
]


def test_machines_are_not_mistaken_for_each_other(toy):
    bags, y = toy
    before = []
    with SharedWork(bags, 1e8) as work:
        for model in (*MODELS, *ALIKE):
            shared = clone(model).fit(work.bags, y).decision_function(work.bags)
            scores = clone(model).fit(bags, y).decision_function(bags)
            np.testing.assert_allclose(shared, scores, atol=1e-5, err_msg=short(model))
            if model in ALIKE:
                assert all(np.abs(scores - others).max() > 1e-3 for others in before)
            before.append(scores)


def test_only_its_own_bags_are_known(toy):
    bags, _ = toy
    with SharedWork(bags, 1e8) as work:
        assert shared_by(bags) is None
        share = shared_by(work.bags[[4, 2, 7]])
        np.testing.assert_array_equal(share.index, [4, 2, 7])
        np.testing.assert_array_equal(work.bags.instances[share.rows], bags[[4, 2, 7]].instances)
        assert shared_by(work.bags[[4, 4]]) is None
        assert shared_by(work.bags[[4, 2]].compact()) is None
        with SharedWork(bags, 1e8) as other:
            assert shared_by(other.bags).work is other
            assert shared_by(work.bags).work is work
    assert shared_by(work.bags) is None
    assert not sharing._known


def test_ids_that_come_again_are_not_mistaken(toy):
    bags, y = toy
    rng = np.random.default_rng(0)

    def fit_transform(transformer, X, y, **settings):
        return transformer.fit_transform(X, y), transformer

    with SharedWork(bags, 3.0 * bags.instances.nbytes) as work:  # too little to keep four steps
        fit = work.cache(fit_transform)
        for k in range(12):
            train = rng.permutation(len(y))[:20]
            made, _ = fit(InstanceTransformer(StandardScaler()), work.bags[train], y[train])
            StatisticKernelSVM().fit(made, y[train])
            assert all(key == id(b.segments[0]) for key, (_, b, _) in sharing._known.items())
            assert len(sharing._known) <= 9  # those that were forgotten are not known
            del made
            # Whether an address is handed out anew is the allocator's choice; it usually is.
            others = [Bags(bags.instances + k, bags.offsets) for _ in range(50)]
            assert all(shared_by(other) is None for other in others)
        assert shared_by(work.bags) is not None


def test_nothing_is_admitted_after_the_end(toy):
    bags, y = toy

    def late(transformer, X, y, **settings):
        work.__exit__()  # as an interrupt does while a thread is still at work
        return transformer.fit_transform(X, y), transformer

    with SharedWork(bags, 1e8) as work:
        made, _ = work.cache(late)(InstanceTransformer(StandardScaler()), work.bags[:20], y[:20])
        assert not sharing._known
        assert shared_by(made) is None


def test_a_model_that_is_fitted_again_is_not_mistaken(toy):
    bags, y = toy
    with SharedWork(bags, 1e8) as work:
        for model in (SIL(), MIKernelSVM(), MICA(), MIGraphSVM(graph="edges"), MILES()):
            model.fit(work.bags, y)
            model.set_params(gamma=3.0).fit(bags, y)
            np.testing.assert_allclose(
                model.decision_function(work.bags), model.decision_function(bags), atol=1e-10
            )


def test_matrices_that_do_not_fit_are_not_shared(toy):
    bags, y = toy
    with SharedWork(bags, 100.0) as work:
        for model in (
            SIL(),
            MIKernelSVM(),
            MICA(),
            BagKISVM(random_state=0),
            MIGraphSVM(graph="edges"),
            MILES(),
        ):
            shared = clone(model).fit(work.bags[:20], y[:20])
            plain = clone(model).fit(bags[:20], y[:20])
            np.testing.assert_allclose(
                shared.decision_function(work.bags), plain.decision_function(bags), atol=1e-10
            )


def test_copies_of_a_step_are_what_was_fitted(toy):
    bags, y = toy
    with SharedWork(bags, 1e8) as work:

        def fit_transform(transformer, X, y, **settings):
            return transformer.fit_transform(X, y), transformer

        fit = work.cache(fit_transform)
        made, step = fit(InstanceTransformer(StandardScaler()), work.bags[:20], y[:20])
        again, same = fit(InstanceTransformer(StandardScaler()), work.bags[:20], y[:20])
        assert same is step
        assert made.segments[0] is again.segments[0]
        assert step.transform(work.bags[20:]).segments[0] is made.segments[0]
        np.testing.assert_array_equal(
            step.transform(bags[20:]).instances, step.transform(work.bags[20:]).instances
        )
        _, other = fit(InstanceTransformer(StandardScaler()), work.bags[5:], y[5:])
        assert other is not step
        assert step.n_features_in_ == bags.n_features
        assert type(pickle.loads(pickle.dumps(step))) is InstanceTransformer
        assert not hasattr(clone(step), "transformer_")


def test_sizes_of_what_is_kept(toy):
    bags, y = toy
    with SharedWork(bags, 1e8) as work:
        MICA(gamma=0.5).fit(work.bags, y)
        SIL(gamma=0.5).fit(work.bags, y)
        n = bags.n_instances
        assert work.kept._held == pytest.approx(8 * n**2, abs=200)  # both use one matrix
        of_mica, of_sil = (size for _, size, _ in work.starts._values.values())
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
    dropped = []
    cache.get("b", lambda: value("b"), drop=lambda _: dropped.append("b"))
    cache.get("a", lambda: value("a"))
    cache.get("c", lambda: value("c"))  # b was used least recently
    assert dropped == ["b"]
    assert cache.find("b") is None
    assert made == ["a", "b", "c"]
    with pytest.raises(ZeroDivisionError):
        cache.get("d", lambda: 1 / 0)
    assert not cache._making
    assert cache.get("d", lambda: 5.0) == 5.0
