"""Fitted attributes that many of our estimators have, and what must be true of them."""

from collections.abc import Mapping
from typing import Any

from bagwise.persistence._entry import INPUT
from bagwise.persistence._params import Value
from bagwise.persistence._schema import Array, Field, Flag, Optional, Scope
from bagwise.persistence._state import Labels

#: The same of our own estimators, which know again the bags that they were fitted to.
BAG_INPUT: dict[str, Field] = {
    **INPUT,
    "_bag_digests": Optional(Array(kinds="u", shape=("n_digests",), itemsizes=(8,))),
}
CLASSES: dict[str, Field] = {"classes_": Labels("n_classes"), "multilabel_": Flag()}

#: The constant of a decision function; files of earlier releases do not say whether it was moved.
SHIFT: dict[str, Field] = {
    "intercept_shift_": Optional(Array(shape=("n_outputs",), itemsizes=(8,))),
}
INTERCEPT: dict[str, Field] = {
    "intercept_": Array(shape=("n_outputs",), itemsizes=(8,)),
    **SHIFT,
}


def check_classes(state: Mapping[str, Any], at: Scope) -> None:
    """Check that there are as many outputs as the classes need."""
    n_classes = at.sizes["n_classes"]
    if n_classes < 2:
        at.child("classes_").fail("must have two classes at least")
    n_outputs = 1 if n_classes == 2 and not state["multilabel_"] else n_classes
    at.child("classes_").bind("n_outputs", n_outputs)


#: Of methods that do not treat two classes alike; earlier releases took the second one.
POSITIVE: dict[str, Field] = {"pos_label_": Optional(Value())}


def check_positive(state: Mapping[str, Any], at: Scope) -> None:
    """Check that the positive class is one of two, and named where there are two."""
    classes, label = state["classes_"].tolist(), state.get("pos_label_")
    if "pos_label_" not in state:
        return
    is_binary = len(classes) == 2 and not state["multilabel_"]
    if not is_binary and label is not None:
        at.child("pos_label_").fail("must be None where there are not two classes")
    if is_binary and not any(type(label) is type(known) and label == known for known in classes):
        at.child("pos_label_").fail("must be one of the two classes")
