"""The applier: the execution of action plans."""
