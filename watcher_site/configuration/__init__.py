"""Parsing of the settings: environment variables, policy rules and plug-in paths."""
