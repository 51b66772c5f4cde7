"""Kernels between instances, and kernels between bags built on them."""

from bagwise.kernels._instance import InstanceKernel, resolve_gamma
from bagwise.kernels._set import normalise_set_gram, set_gram, set_self

__all__ = ["InstanceKernel", "normalise_set_gram", "resolve_gamma", "set_gram", "set_self"]
