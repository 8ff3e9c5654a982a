"""Strategies that empty compute nodes."""
