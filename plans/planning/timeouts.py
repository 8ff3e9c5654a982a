"""The timeouts of the actions that a plan repeats when it continues another plan."""

from collections.abc import Sequence
from typing import Any

from actions.models import Action
from actions.types.clusters.clusters import ClusterAction
from actions.types.stacks.resources import ResourceAction
from actions.types.stacks.stacks import StackAction
from cluster.models import Cluster, Stack
from cluster.operations.lookup import is_uuid
from watcher_site import plugins

# The timeout of an operation is that of the record that it acts on.
TIMED_BY: tuple[tuple[type[Any], type[Any]], ...] = ((ClusterAction, Cluster), (StackAction, Stack))


def current_timeouts(actions: Sequence[Action]) -> dict[int, int | None]:
    """Return the timeout of each action in seconds, by primary key; None: the site's default.

    An action on a cluster or a stack takes the timeout that this has now, and the planned actions on a stack's
    resources that of their origin. All others keep theirs. An action follows the one that is to derive it.
    """
    types = plugins.load("ACTION_TYPES")
    timeouts: dict[int, int | None] = {action.pk: action.timeout for action in actions}
    for base, model in TIMED_BY:
        timed = [action for action in actions if is_of(types, action, base)]
        targets = {str(action.target) for action in timed if is_uuid(str(action.target))}
        records = {str(one.uuid): one for one in model.objects.filter(uuid__in=targets)} if targets else {}
        for action in timed:
            if found := records.get(str(action.target)):
                timeouts[action.pk] = own_timeout(action) or found.seconds_allowed
    for action in actions:
        if action.derived_from_id in timeouts and is_of(types, action, ResourceAction):
            timeouts[action.pk] = timeouts[action.derived_from_id]
    return timeouts


def is_of(types: Any, action: Action, base: type[Any] | tuple[type[Any], ...]) -> bool:
    installed = types.get(action.action_type)
    return installed is not None and issubclass(installed, base)


def own_timeout(action: Action) -> int | None:
    """Return the timeout, in seconds, that an operation on a stack sets for itself and all later ones."""
    minutes = action.input_parameters.get("timeout_mins")
    return minutes and int(minutes) * 60
