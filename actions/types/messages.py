"""The messages of action types, and their reasons of the statuses of clusters, nodes and stacks, stored in English."""

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

MAX_NAMES = 10
"""The maximum number of names in a message."""


class List(NamedTuple):
    """A message with a list of names, for many names and for some."""

    of_many: StoredMessage
    of_some: StoredMessage


def fill_list(message: List, names: Sequence[str], **values: str) -> str:
    """Return the text of a message with the first `MAX_NAMES` names."""
    chosen = message.of_many if len(names) > MAX_NAMES else message.of_some
    return chosen.fill(names=", ".join(names[:MAX_NAMES]), **values)


# The statuses of clusters.
DESCRIPTION = {"description": "[A-Z][a-z]+ing .*cluster.*"}
"""The descriptions of actions on clusters, such as "Resizing a cluster"."""
OPERATION_IN_PROGRESS = StoredMessage(_("%(description)s in progress"), DESCRIPTION, description=gettext)
SETTLED = StoredMessage(
    _("%(action_type)s: %(reason)s"), {"action_type": "(?:CLUSTER|NODE)_[A-Z_]+"}, reason=translate_message
)
CLUSTER_NOT_DELETED = StoredMessage(_("the cluster was not deleted"))
BELOW_MIN_SIZE = StoredMessage(_("number of active nodes is %(number)s, below min_size (%(size)s)"))
BELOW_DESIRED_CAPACITY = StoredMessage(_("number of active nodes is %(number)s, below desired_capacity (%(size)s)"))
ABOVE_MAX_SIZE = StoredMessage(_("number of active nodes is %(number)s, above max_size (%(size)s)"))
ABOVE_DESIRED_CAPACITY = StoredMessage(_("number of active nodes is %(number)s, above desired_capacity (%(size)s)"))
AS_DESIRED = StoredMessage(_("number of active nodes is %(number)s, as desired_capacity (%(size)s) says"))
NODES_LEFT = List(
    StoredMessage(_("Cluster %(cluster)s still has nodes: %(names)s and others")),
    StoredMessage(_("Cluster %(cluster)s still has nodes: %(names)s")),
)
# The statuses of nodes.
NOT_CREATED = StoredMessage(_("Its server was not created"))
NOT_DELETED = StoredMessage(_("Its server was not deleted"))
DELETION_INTERRUPTED = StoredMessage(_("Its deletion was interrupted"))
NOT_RECOVERED = StoredMessage(_("Its server was not recovered"))
RECOVERY_INTERRUPTED = StoredMessage(_("Its recovery was interrupted"))
UPDATE_SUCCEEDED = StoredMessage(_("Update succeeded"))
UPDATE_FAILED = StoredMessage(_("Update failed: %(reason)s"), reason=translate_message)
NOT_CHANGED = StoredMessage(_("Its server was not changed"))
WAS_INTERRUPTED = StoredMessage(_("It was interrupted"))
MARKED_UNHEALTHY = StoredMessage(_("It was marked unhealthy: %(reason)s"), reason=translate_message)
WITHOUT_SERVER = StoredMessage(_("It has no server."))
SERVER_MISSING = StoredMessage(_("Instance %(uuid)s not found."))
SERVER_IN_STATUS = StoredMessage(_("Instance %(uuid)s is in status %(status)s."))
# The statuses of stacks and resources. The operations are written as in their statuses.
OPERATION = {"operation": "CREATE|UPDATE|DELETE"}
NOT_COMPLETED = StoredMessage(_("%(operation)s did not complete"), OPERATION)
OPERATION_INTERRUPTED = StoredMessage(_("%(operation)s was interrupted"), OPERATION)
RESULT = {"result": "[A-Z]+ completed successfully"}
COMPLETED_WITHOUT = List(
    StoredMessage(_("%(result)s, but for what was skipped: %(names)s and others"), RESULT, result=translate_message),
    StoredMessage(_("%(result)s, but for what was skipped: %(names)s"), RESULT, result=translate_message),
)
CREATION_REVERTED = StoredMessage(_("Its creation was taken back"))
NOT_REPLACED = StoredMessage(_("It was not replaced: %(reason)s"), reason=translate_message)
RESOURCE_FAILED = StoredMessage(_("Resource %(name)s: %(reason)s"), reason=translate_message)
STEP_FAILED = StoredMessage(
    _("%(step)s %(name)s: %(reason)s"), {"step": "(?:create|update|replace|delete)_resource"}, reason=translate_message
)
SKIPPED_RESOURCES_LEFT = List(
    StoredMessage(_("Stack %(name)s still has resources whose deletion was skipped: %(names)s and others")),
    StoredMessage(_("Stack %(name)s still has resources whose deletion was skipped: %(names)s")),
)
RESOURCES_LEFT = List(
    StoredMessage(_("Stack %(name)s still has resources: %(names)s and others")),
    StoredMessage(_("Stack %(name)s still has resources: %(names)s")),
)
