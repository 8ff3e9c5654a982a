"""Policies: what decides, before and after an action on a cluster, how it is done (seed 3)."""
