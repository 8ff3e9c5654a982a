"""Monitoring: the metrics of processes and of the database, and their export to Prometheus."""
