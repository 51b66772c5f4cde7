"""Any scikit-learn transformer, lifted from rows to the instances of bags."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bagwise._compat import HasMethods
from bagwise.bags import Bags
from bagwise.base import all_or_nothing, as_bags, holds_bags, validate_bags


def _transformer_has(method: str) -> Any:
    def check(self: "InstanceTransformer") -> bool:
        getattr(getattr(self, "transformer_", self.transformer), method)
        return True

    return check


def _keep_bags(method: Callable[..., Any]) -> Callable[..., Any]:
    """Take back what scikit-learn adds to a method for ``set_output``, if the output is bags.

    A data frame has one row a sample, so it can hold a transformed matrix but no bags.
    """
    plain: Callable[..., Any] = method.__wrapped__  # type: ignore[attr-defined]

    @wraps(plain)
    def keep_bags(self: "InstanceTransformer", X: Any, *args: Any, **kwargs: Any) -> Any:
        if not holds_bags(X):
            return method(self, X, *args, **kwargs)
        with config_context(transform_output="default"):
            return plain(self, X, *args, **kwargs)

    return keep_bags


class InstanceTransformer(MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """Apply a scikit-learn transformer to the instances of bags.

    The transformer is fitted on the matrix of all instances and transforms them row by row; the
    bags stay. Bags, sequences of matrices and 3-D arrays come back as `Bags`; a plain matrix, which
    means bags of one instance, comes back as a matrix.

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
            bags = validate_bags(self, X, reset=True)
            labels = None if y is None else np.repeat(np.asarray(y), bags.sizes, axis=0)
            self.transformer_ = clone(self.transformer).fit(bags.instances, labels, **fit_params)
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
        bags = validate_bags(self, X, reset=False)
        if not holds_bags(X):
            return self.transformer_.transform(bags.instances)
        return bags.map_instances(self.transformer_, feature_names=self._names_out(bags))

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit the transformer on all instances and transform them.

        Parameters
        ----------
        X : Bags, sequence of matrices, 3-D array or matrix-like
            Bags; a matrix means bags of one instance.
        y : array-like of shape (n_bags,), optional
            Labels of the bags.
        **fit_params
            Passed to the transformer.

        Returns
        -------
        transformed : Bags or matrix
            Bags of the same sizes, or a matrix if a matrix was given.
        """
        return self.fit(X, y, **fit_params).transform(X)

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
        tags.input_tags.three_d_array = True
        tags.target_tags.required = inner.target_tags.required
        tags.transformer_tags = inner.transformer_tags
        return tags


# When the class was made, scikit-learn wrapped these two.
for _name in ("transform", "fit_transform"):
    setattr(InstanceTransformer, _name, _keep_bags(getattr(InstanceTransformer, _name)))
