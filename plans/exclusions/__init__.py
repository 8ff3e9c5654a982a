"""Exclusions: the API, the console, and the test of a rule against a plan."""
