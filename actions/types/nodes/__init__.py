"""The action types on nodes of clusters."""
