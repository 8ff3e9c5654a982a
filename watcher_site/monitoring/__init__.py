"""Monitoring: the metrics of processes and of the tables, and their export to Prometheus."""
