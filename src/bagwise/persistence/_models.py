"""Saving and loading estimators."""

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from bagwise._version import __version__
from bagwise.exceptions import ModelFileError
from bagwise.persistence import _format
from bagwise.persistence._params import Value
from bagwise.persistence._registry import REGISTRY, Entry
from bagwise.persistence._schema import Optional, Scope, Text

_OUTPUT = Text(("default", "pandas", "polars"))
_OUTPUT_CONFIG = "_sklearn_output_config"
_LONGEST = 700
_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,40}")


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Save an estimator to a file of plain data.

    The file has the `safetensors <https://github.com/huggingface/safetensors>`__ layout and a
    SHA-256 of its content. An existing file is replaced in one step: whatever happens, the path
    holds either what it held before or the whole new file.

    Parameters
    ----------
    estimator : estimator
        An estimator of bagwise, a scaler or projection of scikit-learn (``StandardScaler``,
        ``MinMaxScaler``, ``MaxAbsScaler``, ``RobustScaler``, ``Normalizer``, ``PCA``,
        ``TruncatedSVD``, ``Nystroem``, ``VarianceThreshold``), ``SimpleImputer`` or
        ``MissingIndicator``, or a ``Pipeline`` of them. Fitted or not: an estimator that is not
        fitted is saved as its parameters. Of a search, save the ``best_estimator_``.
    path : str or os.PathLike
        Where to save; no suffix is added.

    Raises
    ------
    ModelFileError
        If the estimator holds something that is not plain data (a callable kernel, a random
        generator, a class that is not in the list), or if the file cannot be written; then the
        `OSError` is its ``__cause__``.

    See Also
    --------
    load : The way back.

    Notes
    -----
    Parameters that are numpy scalars come back as Python's. Of a `Result` in ``result_`` the
    certificate is kept, not the point. A process that is killed while it saves may leave a file
    ``.bagwise-*.tmp`` beside the path; it can be deleted.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import bagwise
    >>> from sklearn.preprocessing import StandardScaler
    >>> scaler = StandardScaler().fit([[0.0], [2.0]])
    >>> with TemporaryDirectory() as folder:
    ...     bagwise.save(scaler, f"{folder}/scaler.safetensors")
    ...     bagwise.load(f"{folder}/scaler.safetensors").mean_
    array([1.])
    """
    try:
        header, arrays = encode(estimator)
    except ModelFileError as error:
        msg = _sentence(f"This estimator cannot be saved. {error}")
        raise ModelFileError(msg) from error.__cause__
    try:
        _format.write(path, header, arrays)
    except ModelFileError as error:
        msg = _sentence(f"Model file {os.fspath(path)!r} {error}")
        raise ModelFileError(msg) from error.__cause__


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that `save` wrote.

    Nothing in the file is executed, and no name in it is imported: classes come from a fixed
    list, parameters pass the estimator's own validation, and fitted attributes pass a schema. So
    a file of unknown origin may give wrong predictions but cannot do anything else.

    Parameters
    ----------
    path : str or os.PathLike
        The file.

    Returns
    -------
    estimator : estimator
        With the parameters and the fitted attributes that it was saved with.

    Raises
    ------
    FileNotFoundError, PermissionError
        If the file cannot be opened.
    ModelFileError
        If the file is damaged, is not a model file, holds an invalid model, or was written by a
        later release in a format that this one does not know.

    See Also
    --------
    save : Write the file.
    """
    try:
        header, arrays = _format.read(path)
        return decode(header, arrays)
    except ModelFileError as error:
        msg = _sentence(f"Model file {os.fspath(path)!r} {error}")
        raise ModelFileError(msg) from error.__cause__


def encode(estimator: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays that describe an estimator."""
    codec = _Codec()
    arrays: dict[str, np.ndarray] = {}
    model = codec.dump(estimator, _root(arrays, codec))
    return {"versions": _versions(), "model": model}, arrays


def decode(header: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the estimator that a header and its arrays describe; takes the arrays."""
    codec = _Codec()
    root = _root(arrays, codec)
    origin = ""
    try:
        root.members(header, ["versions", "model"])
        origin = _origin(header["versions"], root.child("versions"))
        estimator = codec.load(header["model"], root)
        if arrays:
            root.fail(f"does not use the array {min(arrays)!r}")
    except ModelFileError as error:
        msg = f"does not hold a valid model{origin}. {error}"
        raise ModelFileError(msg) from error.__cause__
    return estimator


class _Codec:
    """Stores an estimator as class, parameters, fitted state and output setting."""

    def dump(self, estimator: Any, at: Scope) -> dict[str, Any]:
        key, entry = _entry_of(estimator, at)
        at = at.inside(entry.name)
        _validate(estimator, at)
        params = estimator.get_params(deep=False)
        known = {*params, *entry.state, _OUTPUT_CONFIG}
        if unknown := sorted(set(vars(estimator)) - known):
            at.fail(f"has attributes that the file format does not know: {unknown}")
        return {
            "class": key,
            "params": {
                name: _param(entry, name).dump(value, at.child(name))
                for name, value in params.items()
            },
            "state": _dump_state(entry, vars(estimator), at),
            "output": _dump_output(estimator, at),
        }

    def load(self, node: Any, at: Scope) -> Any:
        at.members(node, ["class", "params", "state", "output"])
        key = node["class"]
        if not isinstance(key, str) or key not in REGISTRY:
            at.fail(f"is of the class {key!r:.80}; {_supported()}")
        entry = REGISTRY[key]
        at = at.inside(entry.name)
        estimator = _construct(entry, node["params"], at)
        for name, value in _load_state(entry, node["state"], at).items():
            setattr(estimator, name, value)
        if node["output"] is not None:
            output = _OUTPUT.load(node["output"], at.child("output"))
            if not hasattr(estimator, "set_output"):
                at.child("output").fail("does not apply")
            setattr(estimator, _OUTPUT_CONFIG, {"transform": output})
        return estimator


def _entry_of(estimator: Any, at: Scope) -> tuple[str, Entry]:
    """Return key and entry of exactly this class; a subclass may have more state."""
    for key, entry in REGISTRY.items():
        if entry.name == type(estimator).__name__ and _find(entry, at) is type(estimator):
            return key, entry
    if hasattr(estimator, "best_estimator_"):
        at.fail(f"is a {type(estimator).__name__}; save its best_estimator_")
    return at.fail(
        f"is of the class {type(estimator).__module__}.{type(estimator).__qualname__}; "
        f"{_supported()}"
    )


def _find(entry: Entry, at: Scope) -> Any:
    try:
        return entry.find()
    except (ImportError, AttributeError) as error:
        return at.fail(f"is of the class {entry.name}, which is not in this installation", error)


def _supported() -> str:
    others = sorted(entry.name for key, entry in REGISTRY.items() if key.startswith("sklearn."))
    return (
        f"model files hold only the estimators of bagwise, and {', '.join(others)}. "
        "Use skops for other scikit-learn objects"
    )


def _param(entry: Entry, name: str) -> Any:
    return entry.params.get(name, Value())


def _construct(entry: Entry, params: Any, at: Scope) -> Any:
    cls = _find(entry, at)
    if not isinstance(params, dict):
        at.fail("has no parameters")
    if unknown := sorted(set(params) - set(cls._get_param_names())):
        at.fail(f"has parameters that this installation of it does not: {unknown}")
    values = {
        name: _param(entry, name).load(value, at.child(name)) for name, value in params.items()
    }
    try:
        estimator = cls(**values)
    except (TypeError, ValueError) as error:  # a required parameter is missing
        at.fail(f"cannot be constructed: {error}", error)
    _validate(estimator, at)
    return estimator


def _validate(estimator: Any, at: Scope) -> None:
    try:
        estimator._validate_params()
    except (TypeError, ValueError) as error:  # ValueError: scikit-learn's InvalidParameterError
        at.fail(f"has an invalid parameter: {error}", error)


def _dump_state(entry: Entry, attributes: Mapping[str, Any], at: Scope) -> dict[str, Any] | None:
    present = {name: value for name, value in attributes.items() if name in entry.state}
    if not present and entry.state:
        return None
    _check_names(entry, present, at)
    nodes = {name: entry.state[name].dump(value, at.child(name)) for name, value in present.items()}
    entry.check(present, at)
    return nodes


def _load_state(entry: Entry, node: Any, at: Scope) -> dict[str, Any]:
    if node is None and entry.state:
        return {}
    if not isinstance(node, dict):
        at.fail("has no state")
    _check_names(entry, node, at)
    state = {name: entry.state[name].load(value, at.child(name)) for name, value in node.items()}
    entry.check(state, at)
    return state


def _check_names(entry: Entry, present: Mapping[str, Any], at: Scope) -> None:
    required = {name for name, kind in entry.state.items() if not isinstance(kind, Optional)}
    if missing := sorted(required - set(present)):
        at.fail(f"is fitted in part only; it lacks {missing}")
    if unknown := sorted(set(present) - set(entry.state)):
        at.fail(f"has the unknown attributes {unknown}")


def _dump_output(estimator: Any, at: Scope) -> str | None:
    """Return what `set_output` was told."""
    config = vars(estimator).get(_OUTPUT_CONFIG)
    if config is None:
        return None
    at = at.child("set_output")
    output: str = _OUTPUT.dump(at.members(config, ["transform"])["transform"], at)
    return output


def _sentence(text: str) -> str:
    """Return the text of an error fit to be shown, whatever a file has put into it."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text.rstrip("."))
    return f"{text if len(text) <= _LONGEST else f'{text[:_LONGEST]} ...'}."


def _root(arrays: dict[str, np.ndarray], codec: _Codec) -> Scope:
    return Scope(owner="The estimator", path="", arrays=arrays, sizes={}, codec=codec)


def _versions() -> dict[str, str]:
    import sklearn

    return {"bagwise": __version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__}


def _origin(versions: Any, at: Scope) -> str:
    """Return in words what wrote the file."""
    at.members(versions, list(_versions()))
    if not all(isinstance(text, str) and _VERSION.fullmatch(text) for text in versions.values()):
        at.fail("must be version numbers")
    names = ", ".join(f"{name} {text}" for name, text in versions.items())
    return f" (written by {names})"
