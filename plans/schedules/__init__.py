"""The times of a plan: its start, its maintenance windows, and their notifications."""
