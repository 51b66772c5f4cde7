"""Saving and loading models as plain data: the safetensors layout, a schema and a checksum."""

from bagwise.persistence._models import load, save

__all__ = ["load", "save"]
