"""The execution of one action: phases, states, leases, slots, timeouts, signals and children."""
