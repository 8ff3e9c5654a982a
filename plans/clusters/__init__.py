"""Clusters of nodes and their policies: the plans that their operations are, the API and the console."""
