"""The console's pages of action plans, and of the resources that are changed by action plans."""
