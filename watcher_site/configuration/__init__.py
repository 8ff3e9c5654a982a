"""The readers of the settings: environment variables, rules of policies, plug-in paths."""
