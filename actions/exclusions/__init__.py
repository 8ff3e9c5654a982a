"""Exclusions: rules that prevent the execution of actions, in current and future plans."""
