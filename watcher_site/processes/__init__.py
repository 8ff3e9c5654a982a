"""Processes: start, worker loop, heartbeat, health, and the base of the commands."""
