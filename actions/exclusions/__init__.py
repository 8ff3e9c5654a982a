"""Exclusions: rules that keep actions from being executed, in present and future plans."""
