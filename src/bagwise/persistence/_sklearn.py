"""The classes of scikit-learn that can be stored: pipelines and transformers of features."""

from collections.abc import Mapping
from typing import Any

from bagwise.persistence._entry import INPUT, Entry, entry
from bagwise.persistence._params import Nested, Nothing, Steps
from bagwise.persistence._schema import (
    Array,
    Field,
    Flag,
    Nullable,
    Number,
    OneOf,
    Optional,
    Scope,
    Text,
)
from bagwise.persistence._state import FloatType, Matrix, Statistics

#: A scaler has NaN for a feature that is all NaN, so these need not be finite.
_PER_FEATURE = Array(shape=("n_features",), finite=False)
_PER_COMPONENT = Array(shape=("n_components",), finite=False)

_COMPONENTS: dict[str, Field] = {
    "components_": Array(shape=("n_components", "n_features")),
    "explained_variance_": _PER_COMPONENT,
    "explained_variance_ratio_": _PER_COMPONENT,
    "singular_values_": _PER_COMPONENT,
}


def _check_indicator(state: Mapping[str, Any], at: Scope) -> None:
    """Check that the features exist whose missing values are marked."""
    at.child("_n_features").bind("n_features", int(state["_n_features"]))
    if (state["features_"] >= at.sizes["n_features"]).any():
        at.child("features_").fail("must count features")


_CACHE = "it names a cache on this machine; set it to None before saving"


#: Keys in the file and entries.
SKLEARN: list[tuple[str, Entry]] = [
    entry("sklearn.pipeline.Pipeline", {}, params={"steps": Steps(), "memory": Nothing(_CACHE)}),
    entry(
        "sklearn.preprocessing.StandardScaler",
        {
            **INPUT,
            "mean_": Nullable(_PER_FEATURE),
            "var_": Nullable(_PER_FEATURE),
            "scale_": Nullable(_PER_FEATURE),
            "n_samples_seen_": OneOf(
                (Number(kinds="if", ge=0), Array(kinds="if", shape=("n_features",), ge=0))
            ),
        },
    ),
    entry(
        "sklearn.preprocessing.MinMaxScaler",
        {
            **INPUT,
            "min_": _PER_FEATURE,
            "scale_": _PER_FEATURE,
            "data_min_": _PER_FEATURE,
            "data_max_": _PER_FEATURE,
            "data_range_": _PER_FEATURE,
            "n_samples_seen_": Number(kinds="i", ge=0),
        },
    ),
    entry(
        "sklearn.preprocessing.MaxAbsScaler",
        {
            **INPUT,
            "scale_": _PER_FEATURE,
            "max_abs_": _PER_FEATURE,
            "n_samples_seen_": Number(kinds="i", ge=0),
        },
    ),
    entry(
        "sklearn.preprocessing.RobustScaler",
        {**INPUT, "center_": Nullable(_PER_FEATURE), "scale_": Nullable(_PER_FEATURE)},
    ),
    entry("sklearn.preprocessing.Normalizer", INPUT),
    entry(
        "sklearn.decomposition.PCA",
        {
            **INPUT,
            **_COMPONENTS,
            "mean_": Array(shape=("n_features",)),
            "noise_variance_": Number(kinds="if", finite=False),
            "n_components_": Number(kinds="i", ge=0, size="n_components"),
            "n_samples_": Number(kinds="i", ge=1),
            "_fit_svd_solver": Optional(Text(("full", "covariance_eigh", "arpack", "randomized"))),
        },
    ),
    entry("sklearn.decomposition.TruncatedSVD", {**INPUT, **_COMPONENTS}),
    entry(
        "sklearn.kernel_approximation.Nystroem",
        {
            **INPUT,
            "components_": Matrix("n_components", "n_features"),
            "component_indices_": Array(kinds="i", shape=("n_components",), ge=0),
            "normalization_": Array(shape=("n_components", "n_components")),
            "_n_features_out": Optional(Number(kinds="i", size="n_components")),
        },
    ),
    entry(
        "sklearn.impute.SimpleImputer",
        {
            **INPUT,
            "statistics_": Statistics("n_features"),
            "indicator_": Nullable(Nested()),
            "_fit_dtype": FloatType(),
            "_fill_dtype": Optional(FloatType()),
        },
    ),
    entry(
        "sklearn.impute.MissingIndicator",
        {
            **INPUT,
            "features_": Array(kinds="i", shape=("n_marked",), ge=0),
            "_n_features": Number(kinds="i", ge=1),
            "_precomputed": Flag(),
        },
        check=_check_indicator,
    ),
    entry("sklearn.feature_selection.VarianceThreshold", {**INPUT, "variances_": _PER_FEATURE}),
]
