"""The console's pages of audits, and its first page."""
