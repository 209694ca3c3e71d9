"""Ask for a Ray job's status without ever waiting for the network."""

from jobinfo_cache._version import __version__

__all__ = ["__version__"]
