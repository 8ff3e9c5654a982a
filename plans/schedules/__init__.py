"""When a plan may run: its start, its maintenance windows, and what is told of them."""
