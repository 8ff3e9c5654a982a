"""The strategy that makes room for PENDING servers."""
