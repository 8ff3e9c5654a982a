"""The embedded cloud, whose nodes and servers exist only in the site's tables."""

from cluster.drivers.embedded.cloud import EmbeddedCloud

__all__ = [
    "EmbeddedCloud",
]
