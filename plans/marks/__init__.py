"""Marking resources of stacks unhealthy: locks, the API and the console."""
