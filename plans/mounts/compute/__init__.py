"""``/compute/v2.1``: servers and what was done to them, as Nova speaks of them to its unmodified clients."""
