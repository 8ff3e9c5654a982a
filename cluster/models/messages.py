"""The reasons of the statuses of nodes, stacks and resources, which are stored in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

MARKED_BY_API = StoredMessage(_("state changed by resource_mark_unhealthy api"))
# Nodes.
CREATION_IN_PROGRESS = StoredMessage(_("Creation in progress"))
CREATION_SUCCEEDED = StoredMessage(_("Creation succeeded"))
CREATION_UNDONE = StoredMessage(_("Creation was undone"))
DELETION_IN_PROGRESS = StoredMessage(_("Deletion in progress"))
RECOVERY_IN_PROGRESS = StoredMessage(_("Recovery in progress"))
RECOVERY_SUCCEEDED = StoredMessage(_("Recovery succeeded"))
UPDATE_IN_PROGRESS = StoredMessage(_("Update in progress"))
CHECK_PASSED = StoredMessage(_("Check: Node is ACTIVE."))
CHECK_FAILED = StoredMessage(_("Check: Node is not ACTIVE. %(reason)s"), reason=translate_message)
# Stacks and resources. The operations are written as in their statuses.
OPERATION = {"operation": "CREATE|UPDATE|DELETE"}
OPERATION_STARTED = StoredMessage(_("%(operation)s started"), OPERATION)
OPERATION_COMPLETED = StoredMessage(_("%(operation)s completed successfully"), OPERATION)
