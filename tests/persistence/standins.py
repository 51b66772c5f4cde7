"""What the tests of this folder share: an estimator, a comparison, and tools to forge files."""

import dataclasses
import hashlib
import json
import re
from numbers import Real

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils._param_validation import Interval, StrOptions

from bagwise.persistence import _format
from bagwise.persistence._registry import REGISTRY, Entry
from bagwise.solvers import Certificate, Status


def stable_id(value):
    """Name a parameter the same way in every process: without addresses."""
    return re.sub(r" ?(object )?at 0x[0-9A-Fa-f]+", "", repr(value))[:80]


class KernelStandIn(ClassifierMixin, BaseEstimator):
    """Kernel ridge with the attributes of the library's kernel machines."""

    _parameter_constraints = {  # noqa: RUF012
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"rbf"}), callable],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
    }

    def __init__(self, C=1.0, *, kernel="rbf", class_weight=None, random_state=None):
        self.C = C
        self.kernel = kernel
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X, y):
        self._validate_params()
        y = np.asarray(y)
        self.multilabel_ = y.ndim == 2
        self.classes_ = np.arange(y.shape[1]) if self.multilabel_ else np.unique(y)
        targets = y if self.multilabel_ else y[:, None] == self.classes_
        if len(self.classes_) == 2 and not self.multilabel_:
            targets = targets[:, 1:]
        self.n_features_in_ = X.shape[1]
        self.gamma_ = 0.3
        self.support_ = np.arange(0, X.shape[0], 2)
        self.support_vectors_ = X[self.support_]
        K = rbf_kernel(self.support_vectors_, gamma=self.gamma_).astype(float)
        signs = 2.0 * targets[self.support_] - 1
        self.dual_coef_ = np.linalg.solve(K + np.eye(len(K)) / self.C, signs).T.copy()
        self.intercept_ = -self.dual_coef_.mean(axis=1)
        parts = [
            Certificate(
                objective=float(i) / 3,
                status=Status.CONVERGED,
                n_iter=i,
                history=np.linspace(1, 0, i + 2),
            )
            for i in range(len(self.dual_coef_))
        ]
        self.result_ = Certificate.total(parts)
        return self

    def decision_function(self, X):
        K = rbf_kernel(X, self.support_vectors_, gamma=self.gamma_)
        return K @ self.dual_coef_.T + self.intercept_


KEY = "tests.KernelStandIn"


def stand_in_entry():
    real = REGISTRY["bagwise.svm.SIL"]
    return Entry(
        name="KernelStandIn", find=lambda: KernelStandIn, state=real.state, check=real.check
    )


def layout(array):
    """Whether rows or columns are together in memory, and which axes run backwards."""
    backwards = [stride < 0 for stride in array.strides]
    return array.flags.c_contiguous or np.argsort(np.abs(array.strides)).tolist(), backwards


def assert_same(a, b, where="model"):
    """Assert that two models are the same to the last bit.

    The same types and memory layout too, except that a view comes back as a copy.
    """
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        assert a.shape == b.shape, where
        assert layout(a) == layout(b), where
        if a.dtype == object:
            assert a.tolist() == b.tolist(), where
        else:
            assert a.tobytes() == b.tobytes(), where
    elif sparse.issparse(a):
        assert a.shape == b.shape, where
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part), f"{where}.{part}")
    elif isinstance(a, np.generic | float):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), where
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    elif isinstance(a, dict):
        assert_same(list(a.items()), list(b.items()), f"{where}.items()")
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, BaseEstimator):
        for name in sorted({*vars(a), *vars(b)}):
            assert name in vars(a), f"{where}.{name}"
            assert name in vars(b), f"{where}.{name}"
            assert_same(vars(a)[name], vars(b)[name], f"{where}.{name}")
    else:
        assert a == b, where


DIGEST = re.compile(rb'(?<=\\"sha256\\":\\")[^\\"]{64}')


def blob_of(header, arrays):
    """The bytes of a file, with a valid checksum whatever is in it."""
    return b"".join(_format.encode(header, arrays))


def restamp(blob):
    """Repair the checksum after an edit."""
    found = DIGEST.search(blob)
    if found is None:
        return blob
    start, stop = found.span()
    blank = blob[:start] + b"0" * 64 + blob[stop:]
    return blank[:start] + hashlib.sha256(blank).hexdigest().encode() + blank[stop:]


def raw_file(header, data=b""):
    """A file from its safetensors header (bytes or JSON values) and data; checksum repaired."""
    if not isinstance(header, bytes):
        header = json.dumps(header, separators=(",", ":")).encode()
    return restamp(len(header).to_bytes(8, "little") + header + data)


def take_apart(blob):
    """The safetensors header of a file as JSON values, our JSON in it, and the data."""
    length = int.from_bytes(blob[:8], "little")
    outer = json.loads(blob[8 : 8 + length])
    return outer, json.loads(outer["__metadata__"]["bagwise"]), blob[8 + length :]


def put_together(outer, inner, data):
    text = inner if isinstance(inner, str) else json.dumps(inner, separators=(",", ":"))
    return raw_file({**outer, "__metadata__": {"bagwise": text}}, data)
