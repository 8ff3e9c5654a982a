"""Decisions on requests of the API and pages of the console by the rules of a policy file."""
