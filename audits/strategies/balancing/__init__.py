"""Strategies that balance loads and temperatures."""
