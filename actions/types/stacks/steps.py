"""Derivation of actions on resources of a stack, by an action on the stack or on a resource that contains it.

In a plan that starts at once, an action derives the actions of a step when the previous step has ended. In a plan for
review, all actions are planned in advance, except for steps after a pause, and final deletions, which are derived when
they are due.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types import messages
from actions.types.base import ActionType, Answer, DerivedAction, Outcome
from cluster.models import StackResource
from cluster.simulated import simulated_cloud
from cluster.stacks.decisions import Change

State = Action.State
CHANGE = "change"
"""The key in an action's data of its `Change`."""
MAX_EDGES = 10_000
"""The maximum number of dependencies between two planned steps; with more, the later step is derived when due."""
UNSUCCESSFUL = (State.FAILED, State.CANCELLED)


class Stepping(ActionType, ABC):
    """An action that derives others, step by step. Resources whose actions were skipped stay unchanged."""

    foresees_go_on = True

    @abstractmethod
    def stop_with_failure(self, reason: str) -> Outcome:
        """Write the failure, and return an outcome with the reason. May be called twice."""

    def next_step(self, steps: Sequence[Sequence[Change]], pause: float = 0) -> Outcome | None:
        """Return the outcome of waiting or of a failure, or None when all steps have succeeded."""
        if not any(steps):
            return None
        derived = self.context.derived
        if any(action.state in UNSUCCESSFUL for action in derived):
            return self.stop_with_failure(find_reason(derived))
        if any(action.state not in Action.FINAL for action in derived):
            return Outcome(Answer.WAIT)
        begun = {action.target for action in derived}
        for number, step in enumerate(steps):
            if step and not begun.intersection(change.uuid for change in step):
                return Outcome(
                    Answer.WAIT,
                    derived=propose(step, delay=pause if number else 0, timeout=self.context.timeout),
                )
        return None

    @property
    def left_out(self) -> list[str]:
        """Return the names of the resources whose actions were skipped."""
        skipped = [action.target for action in self.context.derived if action.state == State.SKIPPED]
        return sorted(row.name for row in find_resources(skipped))


def find_reason(derived: Sequence[DerivedAction]) -> str:
    """Return the reason of the first derived action that failed or was cancelled, from its resource if it failed."""
    unsuccessful = [action for action in derived if action.state in UNSUCCESSFUL]
    rows = find_resources([action.target for action in unsuccessful])
    failed = {str(row.uuid): row for row in rows if row.is_failed}
    for action in unsuccessful:
        if row := failed.get(str(action.target)):
            return messages.RESOURCE_FAILED.fill(name=row.name, reason=row.status_reason)
    first = unsuccessful[0]
    return messages.STEP_FAILED.fill(step=first.action_type, name=first.name, reason=first.status_message)


def find_resources(uuids: Sequence[str | None]) -> list[StackResource]:
    """Return the existing ones of these resources."""
    if model := simulated_cloud():
        return [row for uuid in uuids if uuid and (row := model.stacks.find_resource(uuid))]
    return list(StackResource.objects.present().filter(uuid__in=uuids).select_related("stack")) if uuids else []


def propose(
    changes: Sequence[Change], *, delay: float = 0, parents: Sequence[UUID] = (), timeout: int | None = None
) -> list[ProposedAction]:
    """Return the actions of one step.

    Args:
        delay: the seconds before they may begin.
        timeout: the timeout of each action in seconds, from the stack.
        parents: the actions of the previous step, for which all of them wait.
    """
    actions = {change.uuid: proposal(change, delay, timeout) for change in changes}
    return [
        ProposedAction(
            **{**vars(actions[change.uuid]), "parents": [*parents, *(actions[uuid].uuid for uuid in change.after)]}
        )
        for change in changes
    ]


def proposal(change: Change, delay: float, timeout: int | None) -> ProposedAction:
    inputs, data = {"resource_id": change.uuid, "resource_name": change.name}, {CHANGE: change.as_data()}
    return ProposedAction(f"{change.kind}_resource", inputs, delay=delay, timeout=timeout, data=data)


def propose_all(changes: Sequence[Change], timeout: int | None = None) -> list[ProposedAction]:
    """Return the actions of a plan for review, including actions that others will derive, at any depth."""
    return propose_steps([changes], 0, timeout)


def propose_within(data: Mapping[str, Any]) -> list[ProposedAction]:
    """Return all actions that an action on a resource with this data will derive, at any depth."""
    if CHANGE not in data:
        return []
    change = Change.read(data[CHANGE])
    parts = [part for step in [*change.steps, change.clearing] for part in step]
    derived = [proposal(part, 0, None) for part in parts]
    return [*derived, *(descendant for action in derived for descendant in propose_within(action.data))]


def propose_steps(
    steps: Sequence[Sequence[Change]], pause: float, timeout: int | None, origin: UUID | None = None
) -> list[ProposedAction]:
    """Return the actions of the steps that can be planned. Other steps are derived when they are due."""
    proposals: list[ProposedAction] = []
    before: list[ProposedAction] = []
    for step in filter(None, steps):
        if before and (pause or len(before) * len(step) > MAX_EDGES):
            break
        actions = propose(step, parents=[action.uuid for action in before], timeout=timeout)
        before = [ProposedAction(**{**vars(action), "derived_from": origin}) for action in actions]
        proposals += before
        for action, change in zip(before, step, strict=True):
            proposals += propose_steps(change.steps, change.pause, timeout, action.uuid)
    return proposals
