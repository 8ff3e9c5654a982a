"""The times of a plan in the console: its pauses, its timeline, and an estimate of the time left."""
