"""Readers of users' own files, behind one door; any of them to a store; what is inside."""

from bagwise.io._describe import Description
from bagwise.io._open import READ_OPTIONS, BagFile, open_bags
from bagwise.io._read import inspect, pack, read

__all__ = ["READ_OPTIONS", "BagFile", "Description", "inspect", "open_bags", "pack", "read"]
