"""The estimators that the common tests run on, and the checks that cannot hold for them."""

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from bagwise import all_estimators
from bagwise.cluster import BAMIC, CPM3C, M3IC, BagKMeans
from bagwise.density import APR, EMDD, DiverseDensity
from bagwise.embedding import MILES, MInD
from bagwise.ensemble import MILBoost
from bagwise.metric import MC2B, MIML, MIMLCA, MLCA, MildML
from bagwise.neighbors import CitationKNN, CitationKNNROI
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import (
    MICA,
    MIODM,
    MISVM,
    ODM,
    PCSVM,
    SBMIL,
    SIL,
    SMIL,
    STMIL,
    BagKISVM,
    InsKISVM,
    LabelMeanSVM,
    MIGraphSVM,
    MIKernelSVM,
    MinimaxKernelSVM,
    MissSVM,
    RandomSetSVM,
    ReducedSetSVM,
    RegSVM,
    SparseMI,
    StatisticKernelSVM,
    miSVM,
)

#: Every estimator as it comes, and the transformer, which needs an argument.
DEFAULTS = [
    *(cls() for _, cls in all_estimators()),
    InstanceTransformer(StandardScaler()),
]

#: Less effort than by default, for the checks, which fit hundreds of times.
_LESS_EFFORT = {
    "BagKISVM": {"n_restarts": 3},
    "BagKMeans": {"n_init": 3},
    "CPM3C": {"n_init": 2},
    "DDSVM": {"n_candidates": 3},
    "DiverseDensity": {"n_init": 3},
    "EMDD": {"n_init": 2},
    "InsKISVM": {"n_restarts": 3},
    "M3IC": {"n_init": 3},
    "MILBoost": {"n_estimators": 20},
    "MIODM": {"n_restarts": 3},
    "ReducedSetSVM": {"n_vectors": 4, "n_starts": 2},
}

#: The same estimators as the checks see them.
LIGHT_DEFAULTS = [
    clone(estimator).set_params(**_LESS_EFFORT.get(type(estimator).__name__, {}))
    for estimator in DEFAULTS
]

#: Other parameters that take other paths through the code; these get the bag checks only.
VARIANTS = [
    MIKernelSVM(normalization="feature_space"),
    MIKernelSVM(normalization="feature_space", kernel="poly", coef0=1.0),
    MIKernelSVM(C=1.0, kernel="linear"),
    MIKernelSVM(loss="squared_hinge", normalization="feature_space"),
    LabelMeanSVM(approx="fourier", rank=50, random_state=0),
    StatisticKernelSVM(statistic="mean_std", gamma="median"),
    StatisticKernelSVM(kernel="linear"),
    MinimaxKernelSVM(C=0.01, degree=3, coef0=0.5, gamma="2/d"),
    MIGraphSVM(normalization="feature_space", include_self_pairs=False),
    MIGraphSVM(C=1.0, kernel="linear", threshold=1.0),
    MIGraphSVM(graph="edges"),
    MIGraphSVM(graph="edges", normalization="parts", max_edges=2),
    SIL(kernel="poly", degree=2, coef0=1.0),
    SIL(C=0.1, gamma="median", class_weight="balanced", positive_cost=1.0),
    SIL(positive_cost="sqrt"),
    SMIL(C=1.0, kernel="linear"),
    STMIL(approx="fourier", rank=50, random_state=0),
    STMIL(kernel="linear"),
    SBMIL(eta=0.9, kernel="poly", degree=2, coef0=1.0),
    SIL(kernel="laplacian", cache_size=0.001),
    MISVM(C=1.0, kernel="linear", negative_slack="bag", n_init=1),
    MISVM(cache_size=0.001, negative_slack="bag"),
    PCSVM(C=1.0, kernel="linear", n_init=1),
    PCSVM(approx="fourier", rank=50, centering="none", random_state=0),
    miSVM(kernel="linear", C=10.0, gamma="2/d"),
    miSVM(approx="fourier", rank=50, random_state=0),
    MissSVM(kernel="linear"),
    MissSVM(cache_size=0.001),
    InsKISVM(kernel="linear", threshold="zero", n_restarts=3),
    InsKISVM(C=10.0, negative_cost=0.5, n_restarts=5),
    BagKISVM(kernel="linear", n_restarts=3),
    BagKISVM(C=10.0, bias=0.0, threshold="zero", n_restarts=3),
    ODM(kernel="linear"),
    ODM(C=10.0, theta=0.0, nu=0.5, bias=0.0),
    ODM(approx="fourier", rank=50, random_state=0),
    MIODM(kernel="linear", solver="local"),
    MIODM(approx="fourier", rank=50, solver="local", n_key=2, random_state=0),
    MIODM(C=1.0, solver="relaxed", negative_cost=0.5, tol=1e-8, n_restarts=5),
    RegSVM(normalization="feature_space", kernel="linear", C=10.0, n_init=2, random_state=0),
    RegSVM(C=1.0, consistency=1.0, kernel="linear"),
    RegSVM(consistency=1.0, cache_size=0.001),
    RegSVM(C=1.0, approx="nystroem", rank=50, random_state=0),
    MICA(kernel="linear"),
    MICA(C=10.0, n_init=2, cache_size=0.001, random_state=0),
    SparseMI(n_vectors=5, C=10.0, n_init=1, max_memory=2500),
    SparseMI(n_vectors=4, kernel="poly", degree=2, coef0=1.0, init="kmeans", n_init=1),
    SparseMI(n_vectors=2, kernel="linear", optimizer="gradient", n_init=2),
    RandomSetSVM(n_vectors=5, kernel="laplacian"),
    ReducedSetSVM(n_vectors=4, n_starts=2, kernel="poly", degree=2, coef0=1.0, refit="coef"),
    ReducedSetSVM(n_vectors=5, n_starts=1, refit=None),
    MILES(C=2.0, gamma="median", class_weight="balanced"),
    MInD(10.0, dissimilarity="maxmin", direction="pooled", metric="cityblock"),
    MInD(direction="mean", n_prototypes=8),
    BAMIC(3, distance="min", method="alternate"),
    BAMIC(distance="max", metric="cityblock", init="build"),
    BAMIC(3, init="lab", n_init=2),
    BagKMeans(vote="mil", n_init=3),
    BagKMeans(init="random", n_init=3),
    CPM3C(balance=0.0, init="kmeans", n_init=2),
    CPM3C(C=0.1, solver="cutting_plane", n_init=2),
    M3IC(balance=0.0, init="kmeans", n_init=3),
    M3IC(C=10.0, balance=np.inf, n_init=20),
    M3IC(solver="cutting_plane", n_init=2),
    DiverseDensity(n_init=3, cause="most_likely", threshold="half"),
    EMDD(n_init=2, class_weight="balanced"),
    APR(margin=0.3, tau=0.9, epsilon=0.1),
    MILBoost(variant="isr", class_weight="balanced", n_estimators=10),
    MILBoost(variant="average"),
    MIMLCA(solver="lloyd", center=True),
    MIMLCA(kernel="rbf", n_components=8, random_state=0),
    MIMLCA(kernel="rbf", approx="fourier", rank=50, ridge=1.0, n_init=2, random_state=0),
    MLCA(reject=-5.0, ridge=0.1),
    MC2B(n_components=2, tol=1e-6),
    MIML(n_components=2),
    MildML(n_components=2, max_iter=20),
    CitationKNN(5, 3, distance="average", metric="cityblock"),
    CitationKNN(3, 0, distance="max"),
    CitationKNN(metric=InstanceTransformer(StandardScaler(with_mean=False))),
    CitationKNNROI(4, 4, distance="max"),
    M3IC(kernel="rbf"),
    M3IC(kernel="rbf", approx="fourier", rank=50),
    InstanceTransformer(StandardScaler(with_mean=False)),
]

#: Checks of scikit-learn that cannot hold: class name -> {check: the mathematical reason}.
EXPECTED_SKLEARN_FAILURES: dict[str, dict[str, str]] = {}

#: Checks of ours that cannot hold, likewise.
EXPECTED_BAG_FAILURES: dict[str, dict[str, str]] = {}


def expected_sklearn_failures(estimator):
    return EXPECTED_SKLEARN_FAILURES.get(type(estimator).__name__, {})


def expected_bag_failures(estimator):
    return EXPECTED_BAG_FAILURES.get(type(estimator).__name__, {})
