"""The action types that attach, update and detach policies of clusters."""
