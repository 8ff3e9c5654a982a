"""The embedded cloud: nodes and servers in our own tables."""

from cluster.drivers.embedded.cloud import EmbeddedCloud

__all__ = [
    "EmbeddedCloud",
]
