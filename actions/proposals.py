"""The former name of `actions.graph.proposals`, for action types of third parties."""

from actions.graph.proposals import ProposedAction

__all__ = ["ProposedAction"]
