"""The console's pages of history."""
