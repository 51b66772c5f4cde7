"""Copies of the instance matrix while estimators fit and predict: none that is not in the tables.

The bags are few and have many features, so that kernel matrices are small beside the instances and
memory counts copies of rows. Whatever works on blocks of 512 rows, or on chunks of 4 MB, works on
the whole matrix at once here.
"""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from bagwise import Bags, all_estimators
from bagwise.bags import _matrix

ESTIMATORS = dict(all_estimators())
N_BAGS, SIZE = 24, 3
#: Features; fewer where a fit takes as long as the features are many.
WIDTH = {"CPM3C": 1000}
MANY = 16_000

#: Where a fit with the default takes long, or vectors of features are many by default. Seeds are
#: fixed, and none of the models is constant: that would be fitted again in folds, which are copies.
PARAMETERS = {
    "CPM3C": {"n_init": 1, "max_iter": 1, "random_state": 0},
    "DDSVM": {"n_candidates": 1},
    "DiverseDensity": {"n_init": 1, "max_iter": 5},
    "EMDD": {"n_init": 1, "max_iter": 1},
    "M3IC": {"n_init": 1, "max_iter": 5, "random_state": 0},
    "MC2B": {"n_components": 5},
    "MIML": {"n_components": 5},
    "MIMLCA": {"n_components": 5},
    "MildML": {"n_components": 5},
    "PPMMSVM": {"n_components": 2},
    "RandomSetSVM": {"n_vectors": 2, "random_state": 1},
    "ReducedSetSVM": {"n_vectors": 2, "n_starts": 1, "refit": None},
    "RegSVM": {"max_iter": 3},
    "SparseMI": {"n_vectors": 2, "n_init": 1, "max_iter": 20, "random_state": 1},
}

#: Memory of a fit, beside the model, and of a prediction, in sizes of the instance matrix.
USUAL = {
    "dense": (0.1, 0.1),  # no copy at all
    "mapped": (0.1, 0.1),
    "scattered": (1.1, 1.1),  # the rows of the selection, which kernels take as one matrix
    "sparse": (2.2, 3.3),  # slices of a CSR matrix are copies: a block of rows on each side
}

#: Reason -> {estimator: {layout: memory}}; layouts that are left out are as usual.
ALLOWED = {
    "distances: blocks of rows are centred, one on each side, dense if one side is": {
        "BAMIC": {"dense": (2.5, 1.6), "scattered": (3.5, 2.6), "sparse": (5.0, 4.2)},
        "BagKMeans": {"dense": (2.5, 1.6), "scattered": (3.5, 2.6), "sparse": (16.0, 16.0)},
        "MILES": {"dense": (2.5, 1.6), "scattered": (3.5, 2.6), "sparse": (5.0, 4.2)},
        **{
            name: {"dense": (2.5, 2.5), "scattered": (3.5, 3.5), "sparse": (5.0, 5.0)}
            for name in ("CitationKNN", "CitationKNNROI", "MInD")
        },
    },
    "labels: training bags are scored, to see whether their threshold has to move": {
        "SIL": {"sparse": (3.3, 3.3)},
    },
    "labels: two thirds of the bags are learned from again, and the others scored": {
        "MIMLCA": {"dense": (1.1, 0.1), "sparse": (2.3, 3.3)},
        "ODM": {"dense": (2.2, 0.1), "scattered": (2.2, 1.1), "sparse": (3.3, 3.3)},
    },
    "key instances: rows to choose from and negative rows, for one block of the kernel each": {
        "InsKISVM": {"dense": (1.1, 0.1), "mapped": (1.1, 0.1), "scattered": (2.1, 1.1)},
    },
    "mean instances: stacked under the instances for the kernel matrix, and dense": {
        name: {"dense": (1.4, 0.1), "scattered": (2.4, 1.1), "sparse": (10.5, 3.3)}
        for name in ("MIODM", "MISVM", "PCSVM")
    },
    "concepts: standardised rows, their squares and vectors of each start, all dense": {
        name: {"dense": (6.0, 2.2), "scattered": (7.0, 3.2), "sparse": (46.0, 20.0)}
        for name in ("DDSVM", "DiverseDensity", "EMDD", "PPMMSVM")
    },
    "rectangles: rows of the solver and its sorted rows, of four fifths of the bags again, dense": {
        "APR": {"dense": (4.1, 0.1), "scattered": (5.1, 1.1), "sparse": (35.0, 3.3)},
    },
    "stumps: rows, their columns, and these sorted with their order, all dense": {
        "MILBoost": {"dense": (3.8, 0.1), "scattered": (4.8, 1.1), "sparse": (33.0, 3.3)},
    },
    "maps: rows less their mean, dense, and the vectors that map them, once for each thread": {
        name: {"dense": (1.3, 0.2), "scattered": (2.2, 1.2), "sparse": (14.0, 3.8)}
        for name in ("MC2B", "MIML", "MildML")
    },
    "statistics: two vectors of features for each bag of three instances, and dense": {
        name: {"dense": (0.8, 1.5), "scattered": (0.8, 1.5), "sparse": (9.0, 13.5)}
        for name in ("MinimaxKernelSVM", "StatisticKernelSVM")
    },
    "expansions: the minimiser keeps some vectors of features for each vector, all dense": {
        # Two threads copy a part each; on some fits, and not on others, at the same moment.
        "RandomSetSVM": {"dense": (0.6, 0.1), "mapped": (1.1, 0.1), "scattered": (1.6, 1.1)},
        "ReducedSetSVM": {"dense": (4.2, 0.1), "scattered": (4.2, 1.1), "sparse": (16.0, 3.3)},
        "SparseMI": {"dense": (1.6, 0.1), "scattered": (2.6, 1.1), "sparse": (7.0, 3.3)},
    },
    "streams: chunks that are read ahead, sums and cuts, which are vectors of features": {
        "CPM3C": {"dense": (8.0, 0.1), "scattered": (8.0, 1.1), "sparse": (25.0, 0.6)},
        "M3IC": {"dense": (1.0, 0.1), "sparse": (3.0, 0.4)},
    },
}

#: How often the rows of a scattered selection are copied, one copy after another, by a fit and by
#: a prediction: a rule for gamma reads them, then the kernel matrix; the scores read them.
USUAL_GATHERS = (2, 1)
ALLOWED_GATHERS = {
    "labels: training bags are scored": {"SIL": (3, 1)},
    "selections: distances and statistics find the rows where they are": {
        "BAMIC": (0, 0),
        "MILES": (2, 0),
        "MinimaxKernelSVM": (0, 0),
        "StatisticKernelSVM": (0, 0),
    },
    "support vectors: they are taken from another copy": {
        "BagKISVM": (3, 1),
        "InsKISVM": (3, 1),
    },
    "weights of cliques: they are aligned with the rows of a matrix": {"MIGraphSVM": (4, 2)},
    "streams: each pass copies chunk by chunk": {
        "CPM3C": (1000, 1),
        "M3IC": (4, 0),
        "RandomSetSVM": (4, 1),
        "SparseMI": (4, 1),
    },
}

#: How often most rows are copied because bags are left out of the fit, whatever the layout.
FOLDS = {"APR": 11, "MIMLCA": 6, "ODM": 3}


def _find(table, name):
    return next((found[name] for found in table.values() if name in found), None)


@pytest.fixture(scope="module")
def make_bags(tmp_path_factory):
    """Return a function of layout and number of features that makes bags and labels."""
    made = {}

    def make(layout, n_features):
        if (layout, n_features) not in made:
            made[layout, n_features] = _make(layout, n_features, tmp_path_factory)
        return made[layout, n_features]

    return make


def _make(layout, n_features, folders):
    rng = np.random.default_rng(0)
    y = np.arange(N_BAGS) % 2
    X = rng.normal(size=(N_BAGS * SIZE, n_features))
    X[::SIZE] += 0.5 * y[:, None]
    offsets = np.arange(0, len(X) + 1, SIZE)
    if layout == "sparse":
        return Bags(sp.csr_array(X * (rng.random(X.shape) < 0.1)), offsets), y
    if layout == "mapped":
        path = folders.mktemp("copies") / "made.bags"
        Bags(X, offsets).write(path)
        return Bags.open(path), y
    if layout == "scattered":
        fold = rng.permutation(N_BAGS)
        every = Bags(np.concatenate([X, X]), np.arange(0, 2 * len(X) + 1, SIZE))
        return every[fold], y[fold]
    return Bags(X, offsets), y


class Gathers:
    """Counts copies of most rows of the bags."""

    def __init__(self, monkeypatch):
        self.number, self.real = 0, _matrix.take_rows
        monkeypatch.setattr(_matrix, "take_rows", self.take)

    def take(self, matrix, rows):
        self.number += len(rows) > N_BAGS * SIZE / 2
        return self.real(matrix, rows)

    def during(self, run):
        """Return the number of copies and the peak of memory of a call."""
        self.number = 0
        tracemalloc.start()
        try:
            run()
            return self.number, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def _size_of_model(model):
    arrays = [value for value in vars(model).values() if hasattr(value, "dtype")]
    return sum(_matrix.matrix_bytes(array) for array in arrays if getattr(array, "ndim", 0))


@pytest.mark.parametrize("layout", USUAL)
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_copies_of_the_instance_matrix(name, layout, make_bags, monkeypatch):
    monkeypatch.setenv("BAGWISE_NUM_THREADS", "2")
    bags, y = make_bags(layout, WIDTH.get(name, MANY))
    model, gathers = ESTIMATORS[name](**PARAMETERS.get(name, {})), Gathers(monkeypatch)
    size = _matrix.matrix_bytes(bags.instances)
    allowed = _find(ALLOWED, name) or {}
    limits = allowed.get(layout, allowed.get("dense") if layout == "mapped" else None)
    limits = np.array(USUAL[layout] if limits is None else limits)
    n_allowed = (0, 0)
    if layout == "scattered":
        n_allowed = _find(ALLOWED_GATHERS, name) or USUAL_GATHERS
    n_allowed = n_allowed[0] + FOLDS.get(name, 0), n_allowed[1]

    def measure():
        n_fit, fit = gathers.during(lambda: model.fit(bags, y))
        n_predict, predict = gathers.during(lambda: model.predict(bags))
        memory = np.array([fit - _size_of_model(model), predict]) / size
        return (n_fit, n_predict), memory.round(2)

    # A copy is made in every try. What is imported and compiled takes memory in the first one
    # alone, and that two threads copy at the same moment is chance.
    for _ in range(3):
        counted, memory = measure()
        if (memory <= limits).all():
            break
    assert (memory <= limits).all(), (memory, limits)
    assert counted[0] <= n_allowed[0], (counted, n_allowed)
    assert counted[1] <= n_allowed[1], (counted, n_allowed)


@pytest.mark.parametrize("name", ["SIL", "MISVM", "MICA", "MILES", "MIKernelSVM", "RegSVM"])
def test_a_number_for_gamma_needs_no_look_at_the_rows(name, make_bags, monkeypatch):
    bags, y = make_bags("scattered", 1000)
    gathers, model = Gathers(monkeypatch), ESTIMATORS[name](gamma=1e-3)
    assert gathers.during(lambda: model.fit(bags, y))[0] == 1 + (name == "SIL")  # and its labels


#: Fits that read scattered bags in passes: parameters of the linear kernel, and of low-rank maps.
_FEW = {"C": 0.01}
_SHORT = {**_FEW, "max_iter": 2}
_LOCAL = {**_SHORT, "solver": "local"}
_CLUSTERS = {"n_clusters": 2, "n_init": 1, "max_iter": 5}
BY_PASSES = {
    "BagKMeans": (_CLUSTERS, None),
    "LabelMeanSVM": (_FEW, _FEW),
    "M3IC": (_CLUSTERS, _CLUSTERS),
    "MIKernelSVM": (_FEW, _FEW),
    "MIMLCA": ({"n_components": 5}, {"n_components": 5}),
    "MIODM": (_LOCAL, _LOCAL),
    "MISVM": (_SHORT, _SHORT),
    "MLCA": ({"n_components": 5}, {"n_components": 5}),
    "MinimaxKernelSVM": (_FEW, None),
    "ODM": (_FEW, _FEW),
    "PCSVM": ({**_SHORT, "n_init": 1}, {**_SHORT, "n_init": 1}),
    "RandomSetSVM": ({"n_vectors": 3}, None),
    "SIL": (_FEW, _FEW),
    "SparseMI": ({"n_vectors": 3, "max_iter": 5}, None),
    "StatisticKernelSVM": (_FEW, None),
    "miSVM": (_SHORT, _SHORT),
}
_LOW_RANK = ("nystroem", "fourier", "cholesky")
#: Fits on scattered bags, by their parameters.
STREAMS = [
    *((name, {**found[0], "kernel": "linear"}) for name, found in BY_PASSES.items()),
    *((name, {**found[0], "kernel": "rbf"}) for name, found in BY_PASSES.items() if not found[1]),
    *(
        (name, {**found[1], "kernel": "rbf", "approx": approx, "rank": 10})
        for name, found in BY_PASSES.items()
        for approx in (_LOW_RANK if found[1] else ())
    ),
    ("BagKMeans", {**_CLUSTERS, "init": "random"}),
    ("M3IC", {**_CLUSTERS, "init": "kmeans"}),
    ("SparseMI", {"n_vectors": 3, "init": "kmeans", "max_iter": 5}),
    ("SIL", {**_FEW, "approx": "nystroem", "rank": 10, "gamma": "median"}),
    ("SIL", {**_FEW, "approx": "cholesky", "rank": 10, "gamma": 0.01}),
]
_ROWS, _COLUMNS = 12_000, 250
_AT_ONCE = 2**19 // _COLUMNS  # rows: a chunk, a block of scores, those that a rule for gamma needs
#: Memory of these fits in sizes of the selected rows: fixed numbers of values besides the chunks.
HELD = {
    "solvers: the rows that matter to them, or a matrix between these": {
        ("MIODM", "linear"): 0.8,
        ("MISVM", "linear"): 2.3,
        ("PCSVM", "linear"): 2.3,
        ("SIL", "cholesky"): 6.2,
        ("SIL", "linear"): 0.8,
        ("miSVM", "cholesky"): 1.0,
        ("miSVM", "linear"): 2.2,
    },
    "rules for gamma: distances between 1000 instances": {("SIL", "median"): 2.8},
}
USUALLY_HELD = 0.8


@pytest.fixture(scope="module")
def many_bags(tmp_path_factory):
    """Half of the bags of a store, in random order, and their labels."""
    rng = np.random.default_rng(0)
    y = np.arange(_ROWS // 20) % 2
    X = rng.normal(size=(_ROWS, _COLUMNS))
    X[::20, :5] += 2.0 * y[:, None]
    path = tmp_path_factory.mktemp("many") / "made.bags"
    Bags(X, np.arange(0, _ROWS + 1, 20)).write(path)
    fold = rng.permutation(len(y))[: len(y) // 2]
    return Bags.open(path)[fold], y[fold]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        pytest.param(name, found, id=f"{name}-{number}")
        for number, (name, found) in enumerate(STREAMS)
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The bags are centred")
def test_scattered_bags_are_read_in_passes(name, parameters, many_bags, monkeypatch):
    """No fit holds half of the selected rows, and none copies more than a chunk at a time."""
    monkeypatch.setenv("BAGWISE_NUM_THREADS", "1")
    monkeypatch.setattr(_matrix, "_CHUNK_BYTES", 2**20)
    monkeypatch.setattr("bagwise.svm.machinery._kernel_machine.MANY_VALUES", 1)
    # Blocks of a fixed size would be as large as the few rows here.
    monkeypatch.setattr("bagwise.kernels._rows._PASS_ENTRIES", 2**16)
    monkeypatch.setattr("bagwise.solvers.clustering._kmeans._PIECE_VALUES", 2**16)
    monkeypatch.setattr("bagwise.solvers.operators._pass_rows._FEW_VALUES", 2**19)
    monkeypatch.setattr("bagwise.solvers.metric._feature_passes._ROWS", 256)
    bags, y = many_bags
    known = ESTIMATORS[name]().get_params()
    usual = {"cache_size": 0.1, "max_memory": "3MB", "random_state": 0}
    parameters = {key: value for key, value in {**usual, **parameters}.items() if key in known}
    copied = []
    real = _matrix.take_rows

    def take(matrix, rows):
        copied.append(len(rows))
        return real(matrix, rows)

    monkeypatch.setattr(_matrix, "take_rows", take)

    def fit(data):
        tracemalloc.start()
        try:
            model = ESTIMATORS[name](**parameters).fit(data, y)
            return model, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    size = bags.n_instances * bags.n_features * 8
    kind = parameters.get("approx", parameters.get("kernel"))
    limit = _find(HELD, (name, parameters.get("gamma", kind))) or _find(HELD, (name, kind))
    limit = size * (limit or USUALLY_HELD)
    model, memory = fit(bags)
    if memory > limit:  # what is imported and compiled at first takes memory too
        model, memory = fit(bags)
    assert max(copied, default=0) <= _AT_ONCE
    assert memory <= limit, memory / size
    here, _ = fit(bags.compact())
    for attribute, value in vars(here).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(model, attribute), value, err_msg=attribute)
    assert model.result_.objective == here.result_.objective


def test_tables_speak_of_estimators_and_layouts():
    known = set(ESTIMATORS)
    assert set(WIDTH) | set(PARAMETERS) <= known
    for found in ALLOWED.values():
        assert set(found) <= known
        assert all(set(limits) <= set(USUAL) for limits in found.values())
    assert set().union(*ALLOWED_GATHERS.values()) <= known


def test_a_copy_is_noticed(make_bags, monkeypatch):
    bags, _ = make_bags("scattered", 1000)
    size = bags.n_instances * bags.n_features * 8
    gathers = Gathers(monkeypatch)
    for run, number, copies in [
        (lambda: bags.dtype, 0, 0),
        (lambda: bags.instances, 1, 1),
        (lambda: bags.compact().instances, 1, 1),
        (lambda: [bags.instances, bags.instances], 2, 2),
        (lambda: bags.segments[0][: bags.n_instances].astype(np.float32), 0, 0.5),
    ]:
        found, memory = gathers.during(run)
        assert found == number
        assert memory / size == pytest.approx(copies, abs=0.05)
