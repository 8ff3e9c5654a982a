"""The API of clusters, their nodes and their policies."""
