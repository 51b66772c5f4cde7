"""What tests of searches share: the same search by scikit-learn beside ours."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from bagwise.model_selection import BagGridSearchCV
from bagwise.svm import InsKISVM, MIGraphSVM

C = [10.0, 0.1]
KEY_INSTANCES = InsKISVM(random_state=0)  # else where a fit ends is left to chance
EDGES = MIGraphSVM(graph="edges")
CV = StratifiedKFold(3, shuffle=True, random_state=0)


def rbf(A, B):
    """Return a kernel that the library does not know by name."""
    A, B = (M.toarray() if sparse.issparse(M) else np.asarray(M) for M in (A, B))
    return np.exp(-0.3 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def assert_same(search, reference):
    """Compare everything but the times with the results of GridSearchCV."""
    ours, theirs = search.cv_results_, reference.cv_results_
    assert list(ours) == list(theirs)
    assert ours["params"] == theirs["params"]
    for key, values in theirs.items():
        if key.endswith("_time"):
            assert np.isfinite(ours[key]).all()
        elif key.startswith(("mean_", "std_", "split")):
            np.testing.assert_allclose(ours[key], values, rtol=1e-9, atol=1e-9, err_msg=key)
        else:
            np.testing.assert_array_equal(ours[key], values, err_msg=key)
    assert search.n_splits_ == reference.n_splits_
    assert search.multimetric_ == reference.multimetric_
    for name in ("best_index_", "best_params_", "best_score_"):
        assert hasattr(search, name) == hasattr(reference, name)
        if hasattr(reference, name):
            assert getattr(search, name) == pytest.approx(getattr(reference, name), nan_ok=True)


def both(estimator, grid, X, y, *, params=None, cache_size=1000.0, n_jobs=None, **settings):
    settings = {"cv": CV, **settings}
    reference = GridSearchCV(estimator, grid, **settings).fit(X, y, **(params or {}))
    search = BagGridSearchCV(estimator, grid, cache_size=cache_size, n_jobs=n_jobs, **settings)
    search.fit(X, y, **(params or {}))
    assert_same(search, reference)
    return search, reference


def count_calls(monkeypatch, module, name):
    calls = []
    function = getattr(module, name)

    def counted(*args, **settings):
        calls.append(args)
        return function(*args, **settings)

    monkeypatch.setattr(module, name, counted)
    return calls


class Unchanged(TransformerMixin, BaseEstimator):
    """A step that does nothing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X
