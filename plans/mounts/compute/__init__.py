"""``/compute/v2.1``: servers and their instance actions, in the format of Nova, for its unmodified clients."""
