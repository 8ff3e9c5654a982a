"""Maintenance windows, times and time zones."""
