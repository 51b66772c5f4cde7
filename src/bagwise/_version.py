"""The version, in one place: read here by the build and by `bagwise.__version__`."""

__version__ = "0.1.0.dev0"
