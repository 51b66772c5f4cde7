"""Metrics between instances, learned from bags: classifiers and transformers at once."""

from bagwise.metric._mc2b import MC2B
from bagwise.metric._mildml import MildML
from bagwise.metric._miml import MIML
from bagwise.metric._mimlca import MIMLCA
from bagwise.metric._mlca import MLCA

__all__ = ["MC2B", "MIML", "MIMLCA", "MLCA", "MildML"]
