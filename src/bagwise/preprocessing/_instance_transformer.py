"""Any scikit-learn transformer, lifted from rows to the instances of bags."""

import pickle
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import joblib
import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bagwise._compat import HasMethods, Interval
from bagwise.bags import Bags, instance_bytes, parse_bytes, unchanged_files
from bagwise.base import (
    Same,
    all_or_nothing,
    as_bags,
    holds_bags,
    remember_bags,
    shared_by,
    validate_bags,
)
from bagwise.exceptions import MemoryLimitError
from bagwise.preprocessing._chunked_fit import fit_in_chunks, fits_in_chunks

_TRIED = 10  # rows by which it is found whether rows depend on each other


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

    Instances that take more than ``max_memory`` are not copied. The transformer is fitted chunk by
    chunk with ``partial_fit``, as ``StandardScaler``, ``MinMaxScaler``, ``MaxAbsScaler`` and
    ``IncrementalPCA`` have it, and the bags come back lazy: a chunk is transformed when it is read.
    What learns in passes then works on a store of any size; what needs all instances makes them
    once.

    Parameters
    ----------
    transformer : transformer
        For example ``StandardScaler()``. It is cloned, not fitted itself.
    max_memory : int, str or None
        Bytes, or text like ``"512MB"``, that instances may take to be transformed at once. None:
        any number.

    Attributes
    ----------
    transformer_ : transformer
        The fitted clone.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, if the data had any.

    Notes
    -----
    Whether instances are worked on in chunks depends on their number and width alone, never on
    where they lie. Chunks give the same minima, maxima and ``IncrementalPCA`` to the last bit;
    sums, as those of ``StandardScaler``, to rounding. Rows of a scaler are the same to the last bit
    in chunks and at once; those of a projection to rounding.

    A transformer without ``partial_fit`` that has something to learn, such as ``PCA``, gets all
    instances at once if they are in memory already. Those of a store that take more than
    ``max_memory`` are refused with `MemoryLimitError`, and so is a function whose rows depend on
    each other.

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

    _parameter_constraints = {  # noqa: RUF012
        "transformer": [HasMethods(["fit", "transform"])],
        "max_memory": [str, Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, transformer: Any, *, max_memory: int | str | None = "1GB") -> None:
        self.transformer = transformer
        self.max_memory = max_memory

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
                transformer = clone(self.transformer)
                if holds_bags(X) and self._is_large(bags):
                    if fits_in_chunks(transformer) and not fit_params:
                        return fit_in_chunks(transformer, bags, labels, self.max_memory)
                    reason = "is given fit parameters" if fit_params else "has no partial_fit"
                    self._refuse_large(bags, reason)
                instances = bags.instances if holds_bags(X) else X
                return transformer.fit(instances, labels, **fit_params)

            with unchanged_files(bags):
                remember_bags(self, bags)  # first: it reads all, and names what is not finite
                share = shared_by(bags)
                name = None if share is None else _name(self.transformer, y, fit_params)
                if share is None or name is None:
                    self.transformer_ = fit()
                else:
                    self.transformer_ = share.of_selection(name, fit)
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
        with unchanged_files(bags):
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
        transform, n = RowFunction(self.transformer_), bags.n_instances
        few = bags.take_instances(np.unique(np.linspace(0, n - 1, _TRIED).astype(np.int64)))
        together = _dense(transform(few))
        alone = np.concatenate([_dense(transform(few[i : i + 1])) for i in range(few.shape[0])])
        if alone.shape != together.shape or n == 1:
            return False
        known = ~np.isnan(together)
        difference = np.abs(alone - together)[known].max(initial=0.0)
        rounding = 1e3 * float(np.finfo(together.dtype).eps)
        return bool(difference <= rounding * np.abs(together[known]).max(initial=0.0))

    def _is_large(self, bags: Bags) -> bool:
        """Tell whether instances take more memory than they may."""
        limit = parse_bytes(self.max_memory)
        return limit is not None and instance_bytes(bags) > limit

    def _refuse_large(self, bags: Bags, reason: str) -> None:
        """Raise if a copy of all instances is needed that is not there, and would be too large."""
        if bags.is_memory_mapped or bags.is_lazy:
            name = type(self.transformer).__name__
            msg = (
                f"{name} {reason}, so it needs all instances at once: {instance_bytes(bags):,} "
                f"bytes, more than max_memory={self.max_memory!r} of InstanceTransformer. Raise "
                "max_memory, or choose one that works in chunks, such as StandardScaler or "
                "IncrementalPCA."
            )
            raise MemoryLimitError(msg)

    def _transformed(self, bags: Bags) -> Bags:
        transform, names = RowFunction(self.transformer_), self._names_out(bags)
        if self._is_large(bags):
            if self._goes_row_by_row(bags):
                made = bags.map_instances(transform, feature_names=names, lazy=True)
                return made if self._is_large(made) else made.compact()
            self._refuse_large(bags, "makes rows that depend on each other")
        return bags.map_instances(transform, feature_names=names)

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


@dataclass(frozen=True, eq=False)
class RowFunction:
    """What a fitted transformer makes of rows, always as a matrix: frames do not hold bags."""

    transformer: Any

    def __call__(self, rows: Any) -> Any:
        with config_context(transform_output="default"):
            return self.transformer.transform(rows)


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def _name(*parts: Any) -> str | None:
    """Return a name for what a transformer is about to be fitted with, or None if there is none."""
    try:
        return str(joblib.hash(parts))
    except (pickle.PicklingError, AttributeError, TypeError):  # made of what cannot be pickled
        return None
