"""The graph of actions: proposals, derived actions, and the propagation of failures."""
