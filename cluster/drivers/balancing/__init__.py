"""The drivers of load balancers."""
