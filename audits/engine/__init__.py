"""The decision engine: the execution of audits."""
