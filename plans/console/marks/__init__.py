"""The console's forms that mark resources unhealthy."""
