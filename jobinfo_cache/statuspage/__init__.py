"""A status page of a cache, for people and probes."""

from jobinfo_cache.statuspage.site import StatusPage, serve

__all__ = ["StatusPage", "serve"]
