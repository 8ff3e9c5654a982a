"""The strategy that provides capacity for PENDING servers."""
