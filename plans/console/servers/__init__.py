"""The console's pages of servers."""
