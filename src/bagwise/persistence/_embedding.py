"""How classifiers of bags that become points are stored."""

from collections.abc import Mapping
from typing import Any

from bagwise.persistence._entry import Entry, entry
from bagwise.persistence._fitted import BAG_INPUT, CLASSES, INTERCEPT, check_classes
from bagwise.persistence._metric import Metric
from bagwise.persistence._params import Nothing
from bagwise.persistence._schema import Array, Field, Number, Optional, Scope
from bagwise.persistence._state import CertificateField, Matrix, check_offsets

#: `MILES`: weights of instances that bags are compared with.
_MILES: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    "prototypes_": Matrix("n_prototypes", "n_features"),
    "support_": Array(kinds="i", shape=("n_prototypes",), itemsizes=(8,), ge=0),
    "coef_": Array(shape=("n_outputs", "n_prototypes"), itemsizes=(8,)),
    **INTERCEPT,
    "gamma_": Number(gt=0),
    "result_": CertificateField(),
}


_ON_TOP = "model files hold the support vector machine (estimator=None) only; use skops for others"

#: `MInD`: bags that others are compared with, and weights of the dissimilarities.
_MIND: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    "prototypes_": Array(kinds="i", shape=("n_prototypes",), itemsizes=(8,), ge=0),
    "prototype_instances_": Matrix("n_instances", "n_features"),
    "prototype_offsets_": Array(kinds="i", shape=("n_offsets",), itemsizes=(8,), ge=0),
    "coef_": Array(shape=("n_outputs", "n_prototypes"), itemsizes=(8,)),
    **INTERCEPT,
    "estimators_": Optional(Nothing(_ON_TOP)),
    "factors_": Optional(Nothing(_ON_TOP)),
    "result_": CertificateField(),
}


def _check_mind(state: Mapping[str, Any], at: Scope) -> None:
    """Check the classes, and that the instances of prototypes are theirs."""
    check_classes(state, at)
    scope, sizes = at.child("prototype_offsets_"), at.sizes
    check_offsets(state["prototype_offsets_"], scope, sizes["n_prototypes"], sizes["n_instances"])


#: `DDSVM`: points with scales of features, and an expansion in the distances from them.
_DD_SVM: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    "prototypes_": Array(shape=("n_prototypes", "n_features"), itemsizes=(8,)),
    "scales_": Array(shape=("n_prototypes", "n_features"), itemsizes=(8,), ge=0),
    "prototype_outputs_": Array(kinds="i", shape=("n_prototypes",), itemsizes=(8,), ge=0),
    "prototype_signs_": Array(shape=("n_prototypes",), itemsizes=(8,)),
    "units_": Array(shape=("n_prototypes",), itemsizes=(8,), ge=0),
    "support_": Array(kinds="i", shape=("n_support",), itemsizes=(8,), ge=0),
    "support_vectors_": Array(shape=("n_support", "n_prototypes"), itemsizes=(8,)),
    "dual_coef_": Array(shape=("n_outputs", "n_support"), itemsizes=(8,)),
    **INTERCEPT,
    "result_": CertificateField(),
}


def _check_dd_svm(state: Mapping[str, Any], at: Scope) -> None:
    """Check the classes, that prototypes belong to outputs, and that their units divide."""
    check_classes(state, at)
    if (state["prototype_outputs_"] >= at.sizes["n_outputs"]).any():
        at.child("prototype_outputs_").fail(f"must be below {at.sizes['n_outputs']}")
    if (state["units_"] == 0).any():
        at.child("units_").fail("must be above 0")


#: `PPMMSVM`: a mixture of Gaussians, and weights of what its posteriors come to.
_PPMM_SVM: dict[str, Field] = {
    **BAG_INPUT,
    **CLASSES,
    "means_": Array(shape=("n_components", "n_features"), itemsizes=(8,)),
    "variances_": Array(shape=("n_components", "n_features"), itemsizes=(8,), ge=0),
    "shares_": Array(shape=("n_components",), itemsizes=(8,), ge=0),
    "powers_": Array(shape=("n_outputs",), itemsizes=(8,), ge=0),
    "coef_": Array(shape=("n_outputs", "n_components"), itemsizes=(8,)),
    **INTERCEPT,
    "result_": CertificateField(),
}


def _check_ppmm_svm(state: Mapping[str, Any], at: Scope) -> None:
    """Check the classes, and that the Gaussians are such and occur."""
    check_classes(state, at)
    if (state["variances_"] == 0).any():
        at.child("variances_").fail("must be above 0")
    if not state["shares_"].any():
        at.child("shares_").fail("must not all be 0")


#: Keys in the file and entries.
EMBEDDING: list[tuple[str, Entry]] = [
    entry("bagwise.embedding.MILES", _MILES, check=check_classes),
    entry("bagwise.embedding.DDSVM", _DD_SVM, check=_check_dd_svm),
    entry("bagwise.embedding.PPMMSVM", _PPMM_SVM, check=_check_ppmm_svm),
    entry(
        "bagwise.embedding.MInD",
        _MIND,
        params={"metric": Metric(), "estimator": Nothing(_ON_TOP)},
        check=_check_mind,
    ),
]
