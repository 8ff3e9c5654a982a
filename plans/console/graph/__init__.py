"""The graph of a plan: its layers, and their picture."""
