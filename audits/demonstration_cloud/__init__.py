"""The topology and the metrics of the demonstration's cloud."""
