"""Decisions on requests of the API by the rules of a policy file."""
