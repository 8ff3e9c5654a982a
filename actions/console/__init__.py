"""The console's pages of actions."""
