"""The console's pages of exclusions."""
