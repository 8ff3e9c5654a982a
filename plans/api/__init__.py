"""The API of action plans, and of the resources that are changed by action plans."""
