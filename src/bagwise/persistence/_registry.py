"""Which classes can be stored, and what their fitted state is.

The table is fixed. A file names a class by a key of this table; modules and classes to import
are written here and never taken from a file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from bagwise.persistence._schema import (
    Array,
    CertificateField,
    Field,
    Flag,
    Labels,
    Matrix,
    Nested,
    Nothing,
    Nullable,
    Number,
    OneOf,
    Optional,
    Scope,
    Steps,
    Strings,
    Text,
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """How estimators of one class are stored.

    Parameters
    ----------
    name : str
        Name of the class.
    find : callable
        Imports and returns the class.
    state : mapping of str to Field
        Attributes that `fit` sets. All that are not `Optional` are there, or the estimator is
        not fitted.
    params : mapping of str to Field
        Parameters that are more than plain values.
    check : callable
        Called with the state and its scope; raises if attributes contradict each other.
    """

    name: str
    find: Callable[[], type]
    state: Mapping[str, Field]
    params: Mapping[str, Field] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any], Scope], None] = lambda state, at: None


#: Attributes that scikit-learn's own input validation sets.
_INPUT: dict[str, Field] = {
    "n_features_in_": Number(kinds="i", ge=1, size="n_features"),
    "feature_names_in_": Optional(Strings("n_features")),
}
_CLASSES: dict[str, Field] = {
    "classes_": Labels("n_classes"),
    "multilabel_": Flag(),
}


def _check_classes(state: Mapping[str, Any], at: Scope) -> None:
    """Check that there are as many outputs as the classes need."""
    classes, n_classes = state["classes_"], at.sizes["n_classes"]
    if n_classes < 2:
        at.child("classes_").fail("must have two classes at least")
    if state["multilabel_"] and not np.array_equal(classes, np.arange(n_classes)):
        at.child("classes_").fail("must count the columns of a multi-label target")
    n_outputs = 1 if n_classes == 2 and not state["multilabel_"] else n_classes
    at.child("classes_").bind("n_outputs", n_outputs)


_SUPPORT_VECTORS: dict[str, Field] = {
    **_INPUT,
    **_CLASSES,
    "support_vectors_": Matrix("n_support", "n_features"),
    "support_": Array(kinds="i", shape=("n_support_rows",), ge=0),
    "dual_coef_": Array(shape=("n_outputs", "n_support"), itemsizes=(8,)),
    "intercept_": Array(shape=("n_outputs",), itemsizes=(8,)),
    "gamma_": Number(gt=0),
    "result_": CertificateField(),
}


def _per_feature(*names: str, finite: bool = False) -> dict[str, Field]:
    """Return one number per feature; scalers give NaN for a feature that is all NaN."""
    return {name: Array(shape=("n_features",), finite=finite) for name in names}


def _per_component(*names: str) -> dict[str, Field]:
    return {name: Array(shape=("n_components",), finite=False) for name in names}


_COMPONENTS: dict[str, Field] = {
    "components_": Array(shape=("n_components", "n_features")),
    **_per_component("explained_variance_", "explained_variance_ratio_", "singular_values_"),
}

_CACHE = "it names a cache on this machine; set it to None before saving"

_TABLE: dict[str, tuple[Mapping[str, Field], dict[str, Any]]] = {
    "bagwise.svm.SIL": (_SUPPORT_VECTORS, {"check": _check_classes}),
    "bagwise.svm.MIKernelSVM": (_SUPPORT_VECTORS, {"check": _check_classes}),
    "bagwise.preprocessing.InstanceTransformer": (
        {**_INPUT, "transformer_": Nested()},
        {"params": {"transformer": Nested()}},
    ),
    "sklearn.pipeline.Pipeline": (
        {},
        {"params": {"steps": Steps(), "memory": Nothing(_CACHE)}},
    ),
    "sklearn.preprocessing.StandardScaler": (
        {
            **_INPUT,
            "mean_": Nullable(Array(shape=("n_features",), finite=False)),
            "var_": Nullable(Array(shape=("n_features",), finite=False)),
            "scale_": Nullable(Array(shape=("n_features",), finite=False)),
            "n_samples_seen_": OneOf(
                (
                    Number(kinds="if", ge=0),
                    Array(kinds="if", shape=("n_features",), ge=0),
                )
            ),
        },
        {},
    ),
    "sklearn.preprocessing.MinMaxScaler": (
        {
            **_INPUT,
            **_per_feature("min_", "scale_", "data_min_", "data_max_", "data_range_"),
            "n_samples_seen_": Number(kinds="i", ge=0),
        },
        {},
    ),
    "sklearn.preprocessing.MaxAbsScaler": (
        {
            **_INPUT,
            **_per_feature("scale_", "max_abs_"),
            "n_samples_seen_": Number(kinds="i", ge=0),
        },
        {},
    ),
    "sklearn.preprocessing.RobustScaler": (
        {
            **_INPUT,
            "center_": Nullable(Array(shape=("n_features",), finite=False)),
            "scale_": Nullable(Array(shape=("n_features",), finite=False)),
        },
        {},
    ),
    "sklearn.preprocessing.Normalizer": (_INPUT, {}),
    "sklearn.decomposition.PCA": (
        {
            **_INPUT,
            **_COMPONENTS,
            "mean_": Array(shape=("n_features",)),
            "noise_variance_": Number(kinds="if", finite=False),
            "n_components_": Number(kinds="i", ge=0, size="n_components"),
            "n_samples_": Number(kinds="i", ge=1),
            "_fit_svd_solver": Optional(
                Text(("full", "covariance_eigh", "arpack", "randomized"))
            ),
        },
        {},
    ),
    "sklearn.decomposition.TruncatedSVD": ({**_INPUT, **_COMPONENTS}, {}),
    "sklearn.kernel_approximation.Nystroem": (
        {
            **_INPUT,
            "components_": Matrix("n_components", "n_features"),
            "component_indices_": Array(kinds="i", shape=("n_components",), ge=0),
            "normalization_": Array(shape=("n_components", "n_components")),
            "_n_features_out": Optional(Number(kinds="i", size="n_components")),
        },
        {},
    ),
    "sklearn.feature_selection.VarianceThreshold": (
        {**_INPUT, **_per_feature("variances_")},
        {},
    ),
}


def _importer(path: str) -> Callable[[], type]:
    module, _, name = path.rpartition(".")
    return lambda: getattr(import_module(module), name)  # type: ignore[no-any-return]


#: Key in the file -> how the class is stored. Keys are public import paths and never change.
REGISTRY: Mapping[str, Entry] = MappingProxyType(
    {
        path: Entry(
            name=path.rpartition(".")[2],
            find=_importer(path),
            state=MappingProxyType(dict(state)),
            **rest,
        )
        for path, (state, rest) in _TABLE.items()
    }
)
