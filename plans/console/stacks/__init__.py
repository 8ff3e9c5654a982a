"""The console's pages of stacks."""
