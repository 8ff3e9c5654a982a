"""Readings of a real Nova."""
