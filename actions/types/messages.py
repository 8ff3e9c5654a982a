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
# Actions on stacks and resources.
PART = {"part": "|".join((_("stack"), _("stack resource")))}
PART_CHANGED = StoredMessage(_("%(part)s %(uuid)s is no longer as it was read"), PART, part=gettext)
PART_BUSY = StoredMessage(_("%(part)s %(uuid)s: something else is done to it"), PART, part=gettext)
STACK_NOT_FOUND = StoredMessage(_("Stack %(stack)s not found"))
STACK_CHANGED = StoredMessage(_("The stack was changed since this plan was made."))
MARKED_SINCE = StoredMessage(_("%(name)s was marked unhealthy since this plan was made."))
MARK_WITHDRAWN = StoredMessage(_("The mark of %(name)s was withdrawn since this plan was made."))
ANOTHER_OPERATION = StoredMessage(_("another operation"))
OPERATION_OF_ACTION = StoredMessage(_("action %(uuid)s (%(action)s) of action plan %(plan)s"))
STARTED_BEFORE = StoredMessage(
    _("Stack %(name)s: %(work)s was started before, and has not ended."), work=translate_message
)
CHANGED_BY = StoredMessage(
    _("Stack %(name)s: %(work)s came first, and has changed it since this plan was made. Plan again."),
    work=translate_message,
)
PLAN_OUTDATED = StoredMessage(_("Stack %(name)s: %(reason)s Plan again."), reason=translate_message)
RESOURCE_NOT_FOUND = StoredMessage(_("Resource %(resource)s not found"))
RESOURCE_CREATED = StoredMessage(_("Resource %(resource)s was created already"))
RESOURCE_REPLACED = StoredMessage(_("Resource %(resource)s was replaced already"))
OTHER_RESOURCE_STATUS = StoredMessage(_("Resource %(resource)s is %(status)s, and no longer %(expected)s"))
RESOURCE_BEING_DELETED = StoredMessage(_("Resource %(resource)s is being deleted"))
RESOURCE_NOT_IN_TEMPLATE = StoredMessage(_("Resource %(resource)s is no longer in the template of its stack"))
PART_OF_OPERATION = StoredMessage(_("It is a part of an operation on a whole stack: use update_stack"))
DELETED_WHILE_WAITING = StoredMessage(
    _("Instance %(server)s no longer exists: it was deleted while it waited for capacity")
)
# Actions on clusters and their policies.
CLUSTER_NOT_FOUND = StoredMessage(_("Cluster %(cluster)s not found"))
CLUSTER_CHANGED = StoredMessage(_("Cluster %(cluster)s is no longer as it was read"))
POLICY_CHECK_FAILED = StoredMessage(_("Policy check failure: %(reason)s"), reason=translate_message)
NO_MEMBER = StoredMessage(_("Node %(node)s is not a member of cluster %(cluster)s."))
NO_LONGER_MEMBER = StoredMessage(_("Node %(node)s, which was to go, is no longer a member of cluster %(cluster)s."))
ALL_EXCLUDED = StoredMessage(
    _("No node can go: exclusions keep %(action_type)s from all members of cluster %(cluster)s."),
    {"action_type": "NODE_[A-Z]+"},
)
TOO_MANY_NODES = StoredMessage(_("It would have %(size)s nodes then, and %(desired)s are wanted"))
OTHER_RESIZE = StoredMessage(
    _("The cluster has %(size)s nodes: it would be resized by %(change)s, not by %(decided)s.")
)
NEXT_NODES = StoredMessage(_("next: %(number)s of its nodes"))
NO_PROFILE = StoredMessage(_("new_profile_id: there is no profile %(profile)s"))
NOT_DETACHABLE = StoredMessage(_("Policy '%(name)s' can not be detached: %(reason)s"), reason=translate_message)
NO_POLICY = StoredMessage(_("policy_id: there is no policy %(policy)s"))
NOT_ATTACHED = StoredMessage(_("Policy not attached."))
ALREADY_ATTACHED = StoredMessage(_("Policy already attached."))
SINGLE_POLICY = StoredMessage(_("policy_id: a cluster has one policy of type %(type)s, and this one has %(policy)s"))
# Actions on nodes.
NODE_NOT_FOUND = StoredMessage(_("Node %(node)s not found"))
NODE_BUSY = StoredMessage(_("Node %(node)s is %(status)s: something else is done to it"))
NODE_CHANGED = StoredMessage(_("Node %(node)s is no longer as it was read"))
JUST_JOINED_OR_LEFT = StoredMessage(_("Failed in locking node %(node)s: it has just joined or left a cluster"))
OTHER_PROJECT = StoredMessage(_("Node %(node)s does not belong to the project of cluster %(cluster)s."))
NOT_JOINABLE = StoredMessage(_("Node %(node)s is %(status)s: only an ACTIVE one joins a cluster."))
ALREADY_MEMBER = StoredMessage(_("Node %(node)s is already owned by cluster %(cluster)s."))
MEMBER_ALREADY = StoredMessage(_("Node %(node)s is a member of the cluster already"))
STANDALONE = StoredMessage(_("Node %(node)s is a member of no cluster"))
NEVER_CREATED = StoredMessage(_("Node %(node)s was never created"))
HAS_SERVER = StoredMessage(_("Node %(node)s has its server already"))
NOT_RECOVERABLE = StoredMessage(
    _("Node %(node)s has no server: %(recovery)s is not possible, RECREATE is"), {"recovery": "REBOOT|REBUILD"}
)
NO_PROPERTY_TO_UPDATE = StoredMessage(_("No property to update."))
# Actions on servers, compute nodes and volumes.
ELSEWHERE_AFTER_ABORT = StoredMessage(_("Instance %(server)s is on %(host)s after its migration was aborted"))
ELSEWHERE_AFTER_INTERRUPTION = StoredMessage(
    _("Instance %(server)s is on %(host)s after its migration was interrupted")
)
BUILT_ALREADY = StoredMessage(_("Instance %(server)s has been built already"))
BUILD_INTERRUPTED = StoredMessage(_("Its build was interrupted too often"))
NOT_GIVEN_UP = StoredMessage(_("Instance %(server)s is not given up: %(host)s has capacity for it"))
NO_LONGER_ON_NODE = StoredMessage(
    _("Instance %(server)s is no longer on compute node %(source)s (currently on %(host)s)")
)
NOT_EVACUABLE_YET = StoredMessage(
    _("Instance %(server)s can not be evacuated while it is %(status)s: reset its state to error first")
)
STAYS_ON_NODE = StoredMessage(_("Compute node %(node)s is up again: instance %(server)s stays there"))
NODE_ENABLED = StoredMessage(
    _("Compute node %(node)s is enabled: disable it first, so that nothing comes to it when it is back")
)
NODE_NOT_FENCED = StoredMessage(
    _(
        "Compute node %(node)s is %(problem)s. Switch it off, force its compute service down, or confirm that it is"
        " off (fencing: confirmed)"
    ),
    problem=translate_message,
)
NOT_EVACUATED = StoredMessage(_("Instance %(server)s is %(status)s on %(host)s after its evacuation from %(source)s"))
NODE_UP_AGAIN = StoredMessage(_("Compute node %(node)s is up again: it is not switched off"))
NODE_FENCED = StoredMessage(_("The compute node was fenced: it stays off until a person switches it on"))
HOST_NAME_REQUIRED = StoredMessage(_("resource_name: the host name of the compute service is required"))
STATE_UNDEFINED = StoredMessage(_("The target state is not defined"))
SERVICE_STAYS = StoredMessage(_("nova-compute service %(host)s stays %(state)s until a person changes that"))
HAS_VOLUME_TYPE = StoredMessage(_("Volume type is already %(type)s"))
ON_POOL = StoredMessage(_("Volume is already on node %(pool)s"))
DESTINATION_REQUIRED = StoredMessage(
    _("%(parameter)s: is required to %(migration)s a volume"),
    {"parameter": "destination_type|destination_node", "migration": "migrate|retype|swap"},
)
VOLUME_NOT_IN_USE = StoredMessage(_("Volume %(volume)s is attached, but not in-use (current status: %(status)s)"))
USED_BY_OTHER = StoredMessage(
    _(
        "Volume %(volume)s is attached to instance %(server)s, which must be ACTIVE or PAUSED (current status:"
        " %(status)s)"
    )
)
# All types.
NOT_ABORTABLE = StoredMessage(_("Actions of type %(type)s can not be aborted"))
NOT_REVERTIBLE = StoredMessage(_("Actions of type %(type)s can not be reverted"))
UNKNOWN_TYPE = StoredMessage(_("Error loading plugin '%(name)s'"))
INVALID_PARAMETERS = StoredMessage(_("Invalid input parameters: %(violation)s"), violation=translate_message)
# Predictions.
WITHOUT_MODEL = StoredMessage(_("There is no model of the cloud."))
CHANGED_BEFORE = StoredMessage(
    _("Another action of the plan changes %(object)s %(uuid)s before."), {"object": "cluster|stack"}, object=gettext
)
WOULD_WAIT = StoredMessage(_("It would wait: %(reason)s"), reason=translate_message)
EFFECT_UNPREDICTABLE = StoredMessage(_("The effect of policy '%(name)s' in the cloud cannot be predicted."))
GIVEN_UP_BEFORE = StoredMessage(_("An earlier operation on it was given up, and its status is not updated yet."))
