"""The execution of one action, and its dry run: phases, writes, leases, checkpoints, signals and timeouts."""
