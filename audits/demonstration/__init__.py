"""The demonstration: a small cloud with a plan on it."""
