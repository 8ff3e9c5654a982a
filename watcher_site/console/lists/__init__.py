"""The filters of lists, and the lookups that they need."""
