"""Any scikit-learn transformer, lifted from rows to the instances of bags."""

import pickle
from contextlib import suppress
from typing import Any, Self

import joblib
import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bagwise._compat import HasMethods
from bagwise.bags import Bags
from bagwise.base import (
    Same,
    all_or_nothing,
    as_bags,
    holds_bags,
    remember_bags,
    shared_by,
    validate_bags,
)


def _transformer_has(method: str) -> Any:
    def check(self: "InstanceTransformer") -> bool:
        getattr(getattr(self, "transformer_", self.transformer), method)
        return True

    return check


class InstanceTransformer(
    MetaEstimatorMixin,
    TransformerMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,  # type: ignore[call-arg]  # the transformer wraps its own output
):
    """Apply a scikit-learn transformer to the instances of bags.

    The transformer is fitted on the matrix of all instances and transforms them row by row; the
    bags stay. Bags, sequences of matrices and 3-D arrays come back as `Bags`; a plain matrix, which
    means bags of one instance, comes back as a matrix. Missing values are taken where the
    transformer takes them: ``InstanceTransformer(SimpleImputer())`` fills them.

    Parameters
    ----------
    transformer : transformer
        For example ``StandardScaler()``. It is cloned, not fitted itself.

    Attributes
    ----------
    transformer_ : transformer
        The fitted clone.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, if the data had any.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bagwise.preprocessing import InstanceTransformer
    >>> from bagwise.svm import MIKernelSVM
    >>> model = make_pipeline(InstanceTransformer(StandardScaler()), MIKernelSVM())
    >>> bags = [[[0.0, 10.0], [1.0, 30.0]], [[5.0, 20.0]], [[0.5, 10.0]], [[4.0, 5.0]]]
    >>> model.fit(bags, [0, 1, 0, 1]).predict(bags)
    array([0, 1, 0, 1])
    """

    _parameter_constraints = {"transformer": [HasMethods(["fit", "transform"])]}  # noqa: RUF012

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Fit the transformer on all instances.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : array-like of shape (n_bags,), optional
            Labels of the bags; a supervised transformer gets each on all instances of its bag.
        **fit_params
            Passed to the transformer.

        Returns
        -------
        self : InstanceTransformer
            The fitted estimator.
        """
        with all_or_nothing(self):
            self._validate_params()
            bags = validate_bags(self, X, reset=True, allow_nan=self._takes_nan())
            check_consistent_length(bags, y)

            def fit() -> Any:
                labels = None if y is None else np.repeat(np.asarray(y), bags.sizes, axis=0)
                instances = bags.instances if holds_bags(X) else X
                return clone(self.transformer).fit(instances, labels, **fit_params)

            share = shared_by(bags)
            name = None if share is None else _name(self.transformer, y, fit_params)
            if share is None or name is None:
                self.transformer_ = fit()
            else:
                self.transformer_ = share.of_selection(name, fit)
            remember_bags(self, bags)
        return self

    def transform(self, X: Any) -> Any:
        """Transform the instances.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.

        Returns
        -------
        transformed : Bags or matrix
            Bags of the same sizes, or a matrix if a matrix was given.
        """
        check_is_fitted(self)
        bags = validate_bags(self, X, reset=False, allow_nan=self._takes_nan())
        if not holds_bags(X):
            return self.transformer_.transform(X)
        share = shared_by(bags)
        if share is not None:
            with suppress(Exception):  # it may refuse bags that are not among those in hand
                name = Same(self.transformer_)
                if share.of_whole(("row by row", name), self._goes_row_by_row):
                    return share.of_each(name, self._transformed)
        return self._transformed(bags)

    def _takes_nan(self) -> bool:
        """Whether the transformer takes missing values, as scikit-learn's scalers and imputers."""
        return bool(get_tags(self.transformer).input_tags.allow_nan)

    def _goes_row_by_row(self, bags: Bags) -> bool:
        """Tell whether instances become the same alone as among others; a function may look at all.

        Only then what is made of all bags holds for each of them.
        """
        few = bags[:10]
        together = _dense(self._transformed(few).instances)
        alone = np.concatenate(
            [_dense(self._transformed(few[i : i + 1])[0]) for i in range(len(few))]
        )
        rounding = 1e3 * float(np.finfo(together.dtype).eps)
        difference = np.abs(alone - together).max(initial=0.0)
        return len(few) > 1 and bool(difference <= rounding * np.abs(together).max(initial=0.0))

    def _transformed(self, bags: Bags) -> Bags:
        with config_context(transform_output="default"):  # frames hold matrices, not bags
            return bags.map_instances(self.transformer_, feature_names=self._names_out(bags))

    @available_if(_transformer_has("set_output"))
    def set_output(self, *, transform: str | None = None) -> Self:
        """Set what the transformer makes of a plain matrix; bags stay bags.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None
            As for the transformer itself.

        Returns
        -------
        self : InstanceTransformer
            The estimator.
        """
        for transformer in (self.transformer, getattr(self, "transformer_", self.transformer)):
            transformer.set_output(transform=transform)
        return self

    @available_if(_transformer_has("inverse_transform"))
    def inverse_transform(self, X: Any) -> Any:
        """Undo `transform`, if the transformer can.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Transformed bags.

        Returns
        -------
        original : Bags or matrix
            Bags of the same sizes, or a matrix if a matrix was given.
        """
        check_is_fitted(self)
        undo = self.transformer_.inverse_transform
        if not holds_bags(X):
            return undo(X)
        names = getattr(self, "feature_names_in_", None)
        return as_bags(X).map_instances(undo, feature_names=names)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the transformed features, as the transformer gives them."""
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", None)
        return self.transformer_.get_feature_names_out(input_features)

    def _names_out(self, bags: Bags) -> Any:
        if bags.feature_names is None or not hasattr(self.transformer_, "get_feature_names_out"):
            return None
        return self.transformer_.get_feature_names_out(bags.feature_names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.transformer)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.three_d_array = True
        tags.target_tags.required = inner.target_tags.required
        tags.transformer_tags = inner.transformer_tags
        return tags


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def _name(*parts: Any) -> str | None:
    """Return a name for what a transformer is about to be fitted with, or None if there is none."""
    try:
        return str(joblib.hash(parts))
    except (pickle.PicklingError, AttributeError, TypeError):  # made of what cannot be pickled
        return None
