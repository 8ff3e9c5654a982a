"""Tests of the repository itself: documentation, imports, state changes."""
