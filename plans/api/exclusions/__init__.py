"""The API of exclusions, with the trial of a rule against a plan."""
