"""The benchmark: `make bench`, described in `docs/performance.md`. Nothing here is collected as a test."""
