"""Everything that bagwise raises or warns with, beyond Python's and scikit-learn's own."""

__all__ = [
    "BagFileError",
    "BagwiseError",
    "ConstantModelWarning",
    "DatasetUnavailableError",
    "InvalidBagsError",
    "MemoryLimitError",
    "ModelFileError",
    "MovedThresholdWarning",
    "PositiveClassWarning",
    "SolverError",
]


class BagwiseError(Exception):
    """Base of the library's own errors."""


class InvalidBagsError(BagwiseError, ValueError):
    """The data are not bags: an empty bag, a NaN, ragged widths, offsets that do not fit."""


class BagFileError(BagwiseError, ValueError):
    """A file or folder of bags cannot be read as what it claims to be."""


class DatasetUnavailableError(BagwiseError, OSError):
    """A data set is neither on this machine nor to be had from elsewhere."""


class ModelFileError(BagwiseError, ValueError):
    """A model file is damaged, foreign, newer than this release, or cannot be written."""


class MemoryLimitError(BagwiseError, MemoryError):
    """A step needs more memory than ``max_memory`` allows."""


class SolverError(BagwiseError, RuntimeError):
    """An optimisation problem has no solution, or its solver broke down."""


class PositiveClassWarning(UserWarning):
    """Which of two classes is the positive one was not said, and their names do not tell."""


class ConstantModelWarning(UserWarning):
    """All bags that a classifier learned from get the same prediction."""


class MovedThresholdWarning(ConstantModelWarning):
    """A classifier called all bags the same, or mistook too many, and its threshold was moved.

    See the fitted attribute ``intercept_shift_``.
    """
