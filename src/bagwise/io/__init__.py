"""Readers of users' own files, behind one door; any of them to a store; what is inside."""

from bagwise.io._inspect import Description, inspect
from bagwise.io._pack import pack
from bagwise.io._read import read

__all__ = ["Description", "inspect", "pack", "read"]
