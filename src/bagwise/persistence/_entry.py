"""How estimators of one class are stored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bagwise.persistence._schema import Field, Number, Optional, Scope
from bagwise.persistence._state import Strings


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


def entry(path: str, state: Mapping[str, Field], **rest: Any) -> tuple[str, Entry]:
    """Return the key of a class, its public import path, and its entry."""
    module, _, name = path.rpartition(".")

    def find() -> type:
        cls: type = getattr(import_module(module), name)
        return cls

    return path, Entry(name=name, find=find, state=state, **rest)


#: Attributes that scikit-learn's own input validation sets.
INPUT: dict[str, Field] = {
    "n_features_in_": Number(kinds="i", ge=1, size="n_features"),
    "feature_names_in_": Optional(Strings("n_features")),
}
