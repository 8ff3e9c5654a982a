"""Stacks: the plans that their operations are, the API and the console."""
