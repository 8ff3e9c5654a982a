"""The operations on clusters, nodes, servers and stacks, each of which is an action plan."""
