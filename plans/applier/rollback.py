"""The order in which the actions of a failed plan are reverted."""

from actions.models import Action
from actions.models.querysets import ActionQuerySet
from watcher_site import plugins


def find_next(actions: ActionQuerySet) -> Action | None:
    """Return the next action to revert, or None.

    The last one to end comes first, except for changes of the availability of compute nodes, because no server can
    return to a node that is disabled or switched off. Nodes that were available before the plan are made available
    before all other reverts, and the others are made unavailable after them.
    """
    types = plugins.load("ACTION_TYPES")
    changing = [name for name, action_type in types.items() if action_type.availability]
    left = actions.to_revert()
    changes = list(left.filter(action_type__in=changing))
    # Start with the earliest: also the later changes of a node that was available are reverted before the servers.
    was_available: set[tuple[str, object]] = set()
    first = None
    for change in reversed(changes):
        parameters = change.input_parameters
        node = (change.action_type, parameters.get("resource_name") or parameters.get("resource_id"))
        if types[change.action_type].availability.get(parameters.get("state")) is False:
            was_available.add(node)
        if node in was_available:
            first = change
    return first or left.exclude(action_type__in=changing).first() or (changes[0] if changes else None)
