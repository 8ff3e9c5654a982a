"""The graph of a plan: its layers, and the picture of them."""
