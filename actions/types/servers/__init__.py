"""Actions on single servers: creation, changes and deletion."""
