"""Metrics between instances, learned from bags: classifiers and transformers at once."""

from bagwise.metric._mimlca import MIMLCA
from bagwise.metric._mlca import MLCA

__all__ = ["MIMLCA", "MLCA"]
