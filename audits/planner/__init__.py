"""Planners, which strategies name: they give the actions of a solution their parents."""

from collections.abc import Callable, Sequence

from actions.graph.proposals import ProposedAction
from audits.planner.consolidation import plan_consolidation
from audits.planner.explicit import plan_explicitly
from audits.planner.sequences import plan_sequences
from audits.planner.stabilization import plan_stabilization
from audits.planner.weight import plan_by_weight
from audits.strategies.base import SolutionAction

Planner = Callable[[Sequence[SolutionAction]], list[ProposedAction]]

PLANNERS: dict[str, Planner] = {
    "weight": plan_by_weight,
    "workload_stabilization": plan_stabilization,
    "node_resource_consolidation": plan_consolidation,
    "sequences": plan_sequences,
    "explicit": plan_explicitly,
}

__all__ = [
    "PLANNERS",
    "Planner",
    "plan_by_weight",
    "plan_consolidation",
    "plan_explicitly",
    "plan_sequences",
    "plan_stabilization",
]
