"""Servers: the plans that their operations are, and the API."""
