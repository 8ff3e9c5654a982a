"""Standing exclusions: rules that keep actions from being executed, now and in every plan to come."""
