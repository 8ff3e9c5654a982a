"""Standing exclusions: the API, the console, and the trial of a rule against a plan."""
