"""Which classes can be stored, and what their fitted state is.

The table is fixed. A file names a class by a key of this table; modules and classes to import
are written here and never taken from a file.

Files outlive releases. A key is never renamed, and an attribute that `fit` begins to set in a
later release is `Optional` here, with an estimator that works without it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bagwise.persistence._embedding import EMBEDDING
from bagwise.persistence._entry import Entry, entry
from bagwise.persistence._fitted import (
    BAG_INPUT,
    CLASSES,
    INTERCEPT,
    POSITIVE,
    SHIFT,
    check_classes,
    check_positive,
)
from bagwise.persistence._metric import LearnedMetric, Metric
from bagwise.persistence._params import Nested, Nothing, Value
from bagwise.persistence._schema import (
    Array,
    Field,
    Number,
    Optional,
    Scope,
)
from bagwise.persistence._sklearn import SKLEARN
from bagwise.persistence._state import (
    CertificateField,
    Matrix,
    check_offsets,
)

#: The decision function of `KernelMachine`: which of these are there depends on the kernel.
_EXPANSION: dict[str, Field] = {
    "support_vectors_": Optional(Matrix("n_support", "n_features")),
    "dual_coef_": Optional(Array(shape=("n_outputs", "n_support"), itemsizes=(8,))),
    "coef_": Optional(Array(shape=("n_outputs", "n_weights"), itemsizes=(8,))),
    "fourier_weights_": Optional(Array(shape=("n_features", "n_weights"), itemsizes=(8,))),
    "fourier_offset_": Optional(Array(shape=("n_weights",), itemsizes=(8,))),
    "gamma_": Optional(Number(gt=0)),
}


def _kernel_machine(support_size: str = "n_support") -> dict[str, Field]:
    """Return the state of `KernelMachine`; what ``support_`` counts is up to the subclass."""
    return {
        **BAG_INPUT,
        **CLASSES,
        **_EXPANSION,
        "support_": Optional(Array(kinds="i", shape=(support_size,), itemsizes=(8,), ge=0)),
        **INTERCEPT,
        "result_": CertificateField(),
    }


def _check_machine(state: Mapping[str, Any], at: Scope, *, width: str = "n_features") -> None:
    """Check that the attributes make a decision function: one, and a whole one.

    It is one of as many numbers as ``width`` says.
    """
    check_classes(state, at)
    _check_expansion(state, at, width=width)


def _check_expansion(state: Mapping[str, Any], at: Scope, *, width: str = "n_features") -> None:
    """Check that scores are linear in features of ``width``, or an expansion, and whole."""
    if ("coef_" in state) == ("dual_coef_" in state):
        at.child("coef_").fail("must be there, or dual_coef_, and not both")
    if ("fourier_weights_" in state) != ("fourier_offset_" in state):
        at.child("fourier_weights_").fail("must come together with fourier_offset_")
    if "dual_coef_" in state:
        if "fourier_weights_" in state:
            at.child("fourier_weights_").fail("must come with coef_")
        if "support_vectors_" in state:
            return
        if "support_" not in state:
            at.child("dual_coef_").fail("must come with support_vectors_ or support_")
        at.child("support_").bind("n_support", len(state["support_"]))
        if (state["support_"] >= at.sizes["n_features"]).any():
            at.child("support_").fail("must count columns of the kernel matrix")
        return
    if "fourier_weights_" not in state:
        at.child("coef_").bind("n_weights", at.sizes[width])


def _check_asymmetric_machine(state: Mapping[str, Any], at: Scope) -> None:
    """Check a decision function, and which class is the positive one."""
    _check_machine(state, at)
    check_positive(state, at)


#: `SIL` and `ODM`: what instances of positive bags cost, in earlier releases what was asked for.
_INHERITED_COST: dict[str, Field] = {"positive_cost_": Optional(Value())}


def _check_inherited_machine(state: Mapping[str, Any], at: Scope) -> None:
    """Check a decision function, and that there is a cost for each output."""
    _check_asymmetric_machine(state, at)
    if "positive_cost_" not in state:
        return
    costs, at = state["positive_cost_"], at.child("positive_cost_")
    if type(costs) is not list:
        at.fail("must be a list")
    at.bind("n_outputs", len(costs))
    if not all(cost == "sqrt" or (type(cost) in (int, float) and cost > 0) for cost in costs):
        at.fail("must hold positive numbers, or 'sqrt'")


#: `StatisticKernelSVM` and `MinimaxKernelSVM`: an expansion in statistics of bags.
_STATISTIC_MACHINE: dict[str, Field] = {
    **_kernel_machine(),
    "support_vectors_": Optional(Matrix("n_support", "n_statistics")),
    "fourier_weights_": Optional(Array(shape=("n_statistics", "n_weights"), itemsizes=(8,))),
}


def _check_statistic_machine(state: Mapping[str, Any], at: Scope) -> None:
    """Check a decision function of statistics, one or two for each feature."""
    n_features = at.sizes["n_features"]
    if "coef_" in state and "fourier_weights_" not in state:
        at.child("coef_").bind("n_statistics", at.sizes["n_weights"])
    if at.sizes.setdefault("n_statistics", n_features) not in (n_features, 2 * n_features):
        at.child("n_features_in_").fail("must be the number of statistics, or half of it")
    _check_machine(state, at, width="n_statistics")


#: `MIGraphSVM`: with edges of bags, a second expansion.
_GRAPH_MACHINE: dict[str, Field] = {
    **_kernel_machine("n_support_bags"),
    "support_edges_": Optional(Array(shape=("n_support_edges", "n_edge_features"), itemsizes=(8,))),
    "edge_coef_": Optional(Array(shape=("n_outputs", "n_support_edges"), itemsizes=(8,))),
}


def _check_graph_machine(state: Mapping[str, Any], at: Scope) -> None:
    """Check that a decision function of edges goes with one of instances."""
    _check_machine(state, at)
    if ("support_edges_" in state) != ("edge_coef_" in state):
        at.child("support_edges_").fail("must come together with edge_coef_")
    if "support_edges_" in state:
        at.child("support_edges_").bind("n_edge_features", 4)
        if "support_vectors_" not in state:
            at.child("support_edges_").fail("must come with support_vectors_")


#: `DiverseDensity`, `EMDD`: a point and the scales of features for each problem.
_CONCEPTS: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    **POSITIVE,
    "concepts_": Array(shape=("n_outputs", "n_features"), itemsizes=(8,)),
    "scales_": Array(shape=("n_outputs", "n_features"), itemsizes=(8,), ge=0),
    "far_": Optional(Array(kinds="b", shape=("n_outputs",), itemsizes=(1,))),
    "intercept_": Array(shape=("n_outputs",), itemsizes=(8,)),
    "result_": CertificateField(),
}


def _check_concepts(state: Mapping[str, Any], at: Scope) -> None:
    """Check the classes, and which one is positive."""
    check_classes(state, at)
    check_positive(state, at)


#: `APR`: a rectangle for each problem, with infinite bounds of features that do not matter.
_RECTANGLES: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    **POSITIVE,
    **SHIFT,
    "lower_": Array(shape=("n_outputs", "n_features"), itemsizes=(8,), finite=False),
    "upper_": Array(shape=("n_outputs", "n_features"), itemsizes=(8,), finite=False),
    "scale_": Number(gt=0),
    "cut_": Optional(Array(kinds="b", shape=("n_outputs",), itemsizes=(1,))),
    "result_": CertificateField(),
}


def _check_rectangles(state: Mapping[str, Any], at: Scope) -> None:
    """Check the classes, and that bounds are numbers."""
    _check_concepts(state, at)
    for name in ("lower_", "upper_"):
        if np.isnan(state[name]).any():
            at.child(name).fail("must be numbers")


_WEAK = "model files hold decision stumps (estimator=None) only; use skops for other learners"

#: `MILBoost`: a table of stumps for each problem; other weak learners are not data.
_PER_ROUND = ("n_outputs", "n_rounds")
_BOOST: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    **POSITIVE,
    "estimator_weights_": Array(shape=_PER_ROUND, itemsizes=(8,), ge=0),
    "stump_features_": Array(kinds="i", shape=_PER_ROUND, itemsizes=(8,), ge=0),
    "stump_thresholds_": Array(shape=_PER_ROUND, itemsizes=(8,), finite=False),
    "stump_signs_": Array(shape=_PER_ROUND, itemsizes=(8,)),
    "estimators_": Optional(Nothing(_WEAK)),
    "intercept_": Array(shape=("n_outputs",), itemsizes=(8,)),
    "result_": CertificateField(),
}


def _check_boost(state: Mapping[str, Any], at: Scope) -> None:
    """Check the classes, and that stumps are such and look at features."""
    check_classes(state, at)
    check_positive(state, at)
    if (state["stump_features_"] >= at.sizes["n_features"]).any():
        at.child("stump_features_").fail("must count features")
    if (np.abs(state["stump_signs_"]) != 1.0).any():
        at.child("stump_signs_").fail("must be 1 or -1")
    if np.isnan(state["stump_thresholds_"]).any():
        at.child("stump_thresholds_").fail("must be numbers")


#: `MIML`, `MIMLCA`: the variance of each class.
_SPREADS = Optional(Array(shape=("n_used",), itemsizes=(8,), ge=float(np.finfo(np.float64).tiny)))
#: `MIML`: a linear map of features, and centres of labels.
_LINEAR_METRIC: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    **SHIFT,
    "used_": Array(kinds="i", shape=("n_used",), itemsizes=(8,), ge=0),
    "components_": Array(shape=("n_components", "n_features"), itemsizes=(8,)),
    "centroids_": Array(shape=("n_used", "n_features"), itemsizes=(8,)),
    "mapped_centroids_": Array(shape=("n_used", "n_components"), itemsizes=(8,)),
    "offset_": Array(shape=("n_components",), itemsizes=(8,)),
    "result_": CertificateField(),
}
#: `MC2B`, `MildML`: likewise, and the labels of instances.
_NAMING_METRIC: dict[str, Field] = {
    **_LINEAR_METRIC,
    "assignments_": Array(kinds="i", shape=("n_instances",), itemsizes=(8,), ge=-1),
}


def _check_columns(state: Mapping[str, Any], at: Scope) -> None:
    """Check that labels are columns."""
    check_classes(state, at)
    for name in ("used_", "assignments_"):
        if (np.asarray(state.get(name, [])) >= at.sizes["n_classes"]).any():
            at.child(name).fail("must hold columns of labels")


#: `MLCA`, `MIMLCA`: a linear map of features, or an expansion, and centres of labels after it.
_CLUSTER_METRIC: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    **SHIFT,
    "used_": Array(kinds="i", shape=("n_used",), itemsizes=(8,), ge=0),
    "components_": Optional(Array(shape=("n_used", "n_features"), itemsizes=(8,))),
    "centroids_": Optional(Array(shape=("n_used", "n_features"), itemsizes=(8,))),
    "support_vectors_": Optional(Matrix("n_support", "n_features")),
    "dual_coef_": Optional(Array(shape=("n_used", "n_support"), itemsizes=(8,))),
    "coef_": Optional(Array(shape=("n_used", "n_weights"), itemsizes=(8,))),
    "fourier_weights_": Optional(Array(shape=("n_features", "n_weights"), itemsizes=(8,))),
    "fourier_offset_": Optional(Array(shape=("n_weights",), itemsizes=(8,))),
    "gamma_": Optional(Number(gt=0)),
    "mapped_centroids_": Array(shape=("n_used", "n_used"), itemsizes=(8,)),
    "offset_": Array(shape=("n_used",), itemsizes=(8,)),
    "n_labelled_": Number(gt=0),
    "assignments_": Array(kinds="i", shape=("n_instances",), itemsizes=(8,), ge=-1),
    "result_": CertificateField(),
}


def _check_cluster_metric(state: Mapping[str, Any], at: Scope) -> None:
    """Check that there is one map, and that labels are columns."""
    _check_columns(state, at)
    if ("components_" in state) != ("centroids_" in state):
        at.child("components_").fail("must come together with centroids_")
    maps = [name for name in ("components_", "dual_coef_", "coef_") if name in state]
    if len(maps) != 1:
        at.child("components_").fail("must be there, or dual_coef_ or coef_, and no two of them")
    if ("dual_coef_" in state) != ("support_vectors_" in state):
        at.child("dual_coef_").fail("must come together with support_vectors_")
    fourier = {name in state for name in ("coef_", "fourier_weights_", "fourier_offset_")}
    if len(fourier) != 1:
        at.child("coef_").fail("must come together with fourier_weights_ and fourier_offset_")


def _check_asymmetric_metric(state: Mapping[str, Any], at: Scope) -> None:
    """Check that there is one map, that labels are columns, and which class is positive."""
    _check_cluster_metric(state, at)
    check_positive(state, at)
    if ("class_means_" in state) != ("spreads_" in state):
        at.child("spreads_").fail("must come together with class_means_")


#: Which training bags are where, and how the fit ended.
_CLUSTERER: dict[str, Field] = {
    **BAG_INPUT,
    "labels_": Array(kinds="i", shape=("n_bags",), itemsizes=(8,), ge=0),
    "result_": CertificateField(),
}


def _check_clusters(state: Mapping[str, Any], at: Scope) -> None:
    """Check that the labels count the clusters."""
    if (state["labels_"] >= at.sizes["n_clusters"]).any():
        at.child("labels_").fail(f"must be below the number of clusters, {at.sizes['n_clusters']}")


#: `BAMIC`: the medoids, whole bags unless the distances were given.
_BAMIC: dict[str, Field] = {
    **_CLUSTERER,
    "medoids_": Array(kinds="i", shape=("n_clusters",), itemsizes=(8,), ge=0),
    "medoid_instances_": Optional(Matrix("n_medoid_instances", "n_features")),
    "medoid_offsets_": Optional(Array(kinds="i", shape=("n_offsets",), itemsizes=(8,), ge=0)),
    "inertia_": Number(ge=0),
}


def _check_bamic(state: Mapping[str, Any], at: Scope) -> None:
    """Check that the medoids are training bags, and that their instances are theirs."""
    _check_clusters(state, at)
    if (state["medoids_"] >= at.sizes["n_bags"]).any():
        at.child("medoids_").fail(f"must be below the number of bags, {at.sizes['n_bags']}")
    if ("medoid_instances_" in state) != ("medoid_offsets_" in state):
        at.child("medoid_instances_").fail("must come together with medoid_offsets_")
    if "medoid_offsets_" not in state:
        if at.sizes["n_features"] != at.sizes["n_bags"]:
            at.child("n_features_in_").fail("must be the number of bags without medoid_instances_")
        return
    offsets, n_members = state["medoid_offsets_"], at.sizes["n_medoid_instances"]
    check_offsets(offsets, at.child("medoid_offsets_"), at.sizes["n_clusters"], n_members)


#: `CitationKNN`: the training bags, how far they reach and where they are positive.
_CITATION_KNN: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    "metric_": Optional(Nested()),
    "bag_instances_": Optional(Matrix("n_instances", "n_mapped")),
    "bag_offsets_": Optional(Array(kinds="i", shape=("n_offsets",), itemsizes=(8,), ge=0)),
    "radius_": Array(shape=("n_bags",), itemsizes=(8,), finite=False, ge=-1),
    "label_columns_": Array(kinds="i", shape=("n_listed",), itemsizes=(8,), ge=0),
    "label_offsets_": Array(kinds="i", shape=("n_offsets",), itemsizes=(8,), ge=0),
    "result_": CertificateField(),
}

#: `CitationKNNROI`: instances have a distance of their own; not in files of earlier releases.
_CITATION_KNN_ROI: dict[str, Field] = {
    **_CITATION_KNN,
    "instance_radius_": Optional(Array(shape=("n_bags",), itemsizes=(8,), finite=False, ge=-1)),
}


def _check_citation_knn(state: Mapping[str, Any], at: Scope) -> None:
    """Check that there are bags, or as many features, and that lists name outputs."""
    check_classes(state, at)
    n_bags, scope = at.sizes["n_bags"], at.child("label_offsets_")
    check_offsets(state["label_offsets_"], scope, n_bags, at.sizes["n_listed"], least=0)
    if (state["label_columns_"] >= at.sizes["n_outputs"]).any():
        at.child("label_columns_").fail(f"must be below {at.sizes['n_outputs']}")
    if ("bag_instances_" in state) != ("bag_offsets_" in state):
        at.child("bag_instances_").fail("must come together with bag_offsets_")
    if "bag_instances_" not in state:
        if at.sizes["n_features"] != n_bags:
            at.child("n_features_in_").fail("must be the number of bags without bag_instances_")
        return
    n_members = at.sizes["n_instances"]
    check_offsets(state["bag_offsets_"], at.child("bag_offsets_"), n_bags, n_members)
    if "metric_" not in state:
        at.child("bag_instances_").bind("n_mapped", at.sizes["n_features"])


#: `BagKMeans`: centres of instances, and their votes.
_BAG_KMEANS: dict[str, Field] = {
    **_CLUSTERER,
    "instance_labels_": Array(kinds="i", shape=("n_instances",), itemsizes=(8,), ge=0),
    "key_instances_": Array(kinds="i", shape=("n_bags",), itemsizes=(8,), ge=0),
    "cluster_centers_": Array(shape=("n_clusters", "n_features"), itemsizes=(4, 8)),
    "vote_weights_": Array(shape=("n_clusters",), itemsizes=(8,), ge=0),
    "inertia_": Number(ge=0),
}


#: `CPM3C`: weights of clusters of instances.
_CPM3C: dict[str, Field] = {
    **_CLUSTERER,
    "instance_labels_": Array(kinds="i", shape=("n_instances",), itemsizes=(8,), ge=0),
    "key_instances_": Array(kinds="i", shape=("n_bags",), itemsizes=(8,), ge=0),
    "coef_": Array(shape=("n_clusters", "n_features"), itemsizes=(8,)),
}


#: `M3IC`: the scores of clusters, as the decision function of a kernel machine.
_M3IC: dict[str, Field] = {
    **_CLUSTERER,
    **_EXPANSION,
    "key_instances_": Array(kinds="i", shape=("n_bags",), itemsizes=(8,), ge=0),
}


def _check_m3ic(state: Mapping[str, Any], at: Scope) -> None:
    """Check that there are scores, and a label of each bag among them."""
    _check_expansion(state, at)
    at.child("labels_").bind("n_clusters", at.sizes["n_outputs"])
    _check_clusters(state, at)


#: `SparseMI` and `RandomSetSVM`: an expansion in few vectors.
_EXPANSION_MACHINE: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    "expansion_vectors_": Array(shape=("n_vectors", "n_features")),
    "coef_": Array(shape=("n_outputs", "n_vectors"), itemsizes=(8,)),
    **INTERCEPT,
    "gamma_": Optional(Number(gt=0)),
    "result_": CertificateField(),
}


#: Key in the file -> how the class is stored. Keys are public import paths and never change.
REGISTRY: Mapping[str, Entry] = dict(
    [
        *(
            entry(
                f"bagwise.svm.{name}",
                {**_kernel_machine(), **POSITIVE},
                check=_check_asymmetric_machine,
            )
            for name in (
                "MISVM",
                "miSVM",
                "SMIL",
                "SBMIL",
                "MissSVM",
                "InsKISVM",
                "BagKISVM",
                "MICA",
                "RegSVM",
            )
        ),
        *(
            entry(
                f"bagwise.svm.{name}",
                {**_kernel_machine(), **POSITIVE, **_INHERITED_COST},
                check=_check_inherited_machine,
            )
            for name in ("SIL", "ODM")
        ),
        entry(
            "bagwise.svm.MIODM",
            {**_kernel_machine(), **POSITIVE, "gap_estimate_": Number(finite=False)},
            check=_check_asymmetric_machine,
        ),
        entry(
            "bagwise.svm.STMIL",
            {
                **_kernel_machine(),
                **POSITIVE,
                "threshold_": Array(shape=("n_outputs",), itemsizes=(8,)),
            },
            check=_check_asymmetric_machine,
        ),
        entry(
            "bagwise.svm.PCSVM",
            {
                **_kernel_machine(),
                **POSITIVE,
                "lam_": Array(shape=("n_outputs",), itemsizes=(8,), finite=False),
                "lam_range_": Optional(
                    Array(shape=("n_outputs", None), itemsizes=(8,), finite=False)
                ),
                "penalty_": Array(shape=("n_outputs",), itemsizes=(8,), finite=False),
                "constraint_codes_": Array(kinds="i", shape=(None, "n_outputs"), itemsizes=(8,)),
                "weight_norm_": Array(shape=("n_outputs",), itemsizes=(8,), ge=0),
            },
            check=_check_asymmetric_machine,
        ),
        *(
            entry(f"bagwise.svm.{name}", _kernel_machine("n_support_bags"), check=_check_machine)
            for name in ("MIKernelSVM", "LabelMeanSVM")
        ),
        *(
            entry(f"bagwise.svm.{name}", _STATISTIC_MACHINE, check=_check_statistic_machine)
            for name in ("StatisticKernelSVM", "MinimaxKernelSVM")
        ),
        entry("bagwise.svm.MIGraphSVM", _GRAPH_MACHINE, check=_check_graph_machine),
        *(
            entry(f"bagwise.svm.{name}", _EXPANSION_MACHINE, check=check_classes)
            for name in ("SparseMI", "RandomSetSVM")
        ),
        entry(
            "bagwise.svm.ReducedSetSVM",
            {
                **_EXPANSION_MACHINE,
                "approximation_error_": Array(shape=("n_outputs",), itemsizes=(8,), ge=0),
                "machine_result_": CertificateField(),
            },
            check=check_classes,
        ),
        *EMBEDDING,
        entry("bagwise.metric.MLCA", _CLUSTER_METRIC, check=_check_cluster_metric),
        entry(
            "bagwise.metric.MIMLCA",
            {
                **_CLUSTER_METRIC,
                **POSITIVE,
                "class_means_": Optional(Array(shape=("n_used", "n_features"), itemsizes=(8,))),
                "spreads_": _SPREADS,
            },
            check=_check_asymmetric_metric,
        ),
        entry(
            "bagwise.metric.MIML",
            {**_LINEAR_METRIC, "spreads_": _SPREADS},
            check=_check_columns,
        ),
        entry("bagwise.metric.MC2B", _NAMING_METRIC, check=_check_columns),
        entry(
            "bagwise.metric.MildML",
            {**_NAMING_METRIC, "threshold_": Number()},
            check=_check_columns,
        ),
        *(
            entry(f"bagwise.density.{name}", _CONCEPTS, check=_check_concepts)
            for name in ("DiverseDensity", "EMDD")
        ),
        entry("bagwise.density.APR", _RECTANGLES, check=_check_rectangles),
        *(
            entry(
                f"bagwise.neighbors.{name}",
                fields,
                params={"metric": LearnedMetric()},
                check=_check_citation_knn,
            )
            for name, fields in (
                ("CitationKNN", _CITATION_KNN),
                ("CitationKNNROI", _CITATION_KNN_ROI),
            )
        ),
        entry(
            "bagwise.ensemble.MILBoost",
            _BOOST,
            params={"estimator": Nothing(_WEAK)},
            check=_check_boost,
        ),
        entry("bagwise.cluster.BAMIC", _BAMIC, params={"metric": Metric()}, check=_check_bamic),
        entry("bagwise.cluster.BagKMeans", _BAG_KMEANS, check=_check_clusters),
        entry("bagwise.cluster.M3IC", _M3IC, check=_check_m3ic),
        entry("bagwise.cluster.CPM3C", _CPM3C, check=_check_clusters),
        entry(
            "bagwise.preprocessing.InstanceTransformer",
            {**BAG_INPUT, "transformer_": Nested()},
            params={"transformer": Nested()},
        ),
        *SKLEARN,
    ]
)
