"""Action types on nodes of clusters."""
