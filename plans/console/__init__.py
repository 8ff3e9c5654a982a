"""The pages of action plans, and of the resources that action plans change."""
