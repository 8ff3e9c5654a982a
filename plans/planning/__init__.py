"""The proposal, schedule, continuation and completion of action plans."""
