"""``/orchestration/v1``: stacks and their resources, in the format of Heat, for its unmodified clients."""
