"""The table of a plan's actions: its filters, and the selections of actions that are skipped or restored."""
