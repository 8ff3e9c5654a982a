"""Action types that attach, update and detach policies of clusters."""
