"""Transformations of the instances of bags."""

from bagwise.preprocessing._instance_transformer import InstanceTransformer

__all__ = ["InstanceTransformer"]
