"""``/orchestration/v1``: stacks and their resources, as Heat speaks of them to its unmodified clients."""
