"""The messages of policies that refuse an action, which are stored in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

REFUSED_BY_POLICY = StoredMessage(_("Failed policy '%(name)s': %(reason)s"), reason=translate_message)
TYPE_NOT_INSTALLED = StoredMessage(_("Policy type %(type)s is not installed"))
NODES_KEPT = StoredMessage(
    _("None of %(number)s nodes can be updated while min_in_service (%(least)s) of them are left alone.")
)
COOLDOWN = StoredMessage(_("Policy %(name)s cooldown is still in progress."))
INVALID_COUNT = StoredMessage(_("Invalid count (%(count)s) for action '%(action)s'."))
# The placement of nodes.
INFEASIBLE = StoredMessage(_("There is no feasible plan to handle all nodes: %(reason)s"), reason=translate_message)
HOSTS_BEFORE_ZONES = StoredMessage(_("their hosts were chosen before their zones. Change the priorities."))
ZONES_UNUSABLE = StoredMessage(_("no host of %(zones)s is enabled and up."))
NO_SEPARATE_HOST_IN_ZONE = StoredMessage(
    _("no host of %(zone)s that is enabled and up has capacity without a node of the cluster.")
)
NO_SEPARATE_HOST = StoredMessage(_("no host that is enabled and up has capacity without a node of the cluster."))
NO_HOST_IN_ZONE = StoredMessage(_("no host of %(zone)s that is enabled and up has capacity."))
NO_HOST = StoredMessage(_("no host that is enabled and up has capacity."))
# Refused values.
MIN_SIZE_NEGATIVE = StoredMessage(_("min_size: must not be below 0."))
MAX_SIZE_NEGATIVE = StoredMessage(_("max_size: must not be below 0, or be %(unlimited)s for no limit."))
SIZE_ABOVE = StoredMessage(_("%(field)s: must not be above %(number)s."))
SIZES_REVERSED = StoredMessage(_("min_size: %(least)s is above the max_size %(most)s."))
BELOW_MIN_SIZE = StoredMessage(_("The target capacity (%(size)s) is less than the cluster's min_size (%(least)s)."))
ABOVE_MAX_SIZE = StoredMessage(_("The target capacity (%(size)s) is greater than the cluster's max_size (%(most)s)."))
ABOVE_MAX_NODES = StoredMessage(
    _("The target capacity (%(size)s) is greater than the maximum number of nodes (%(most)s).")
)
ADJUSTMENT_REQUIRED = StoredMessage(_("adjustment_type: is required unless min_size or max_size is given."))
REQUIRED_WITH = StoredMessage(_("%(field)s: is required with %(other)s."))
PERCENTAGE_RULE = StoredMessage(_("number: must be a percentage from -%(most)s to %(same)s."))
WHOLE_NUMBER = StoredMessage(_("number: must be a whole number of nodes."))
NUMBER_NEGATIVE = StoredMessage(_("number: must not be below 0."))
NUMBER_ZERO = StoredMessage(_("number: must not be 0."))
BATCH_ZERO = StoredMessage(_("max_batch_size: must not be 0."))
ADJUSTMENT_PERCENT = StoredMessage(_("adjustment.number: must not be above %(number)s percent."))
ADJUSTMENT_NODES = StoredMessage(_("adjustment.number: must not be above %(number)s nodes."))
ADJUSTMENT_WHOLE = StoredMessage(_("adjustment.number: must be a whole number for %(type)s."))
ZONE_REPEATED = StoredMessage(_("zones: %(name)s is given %(number)s times."))
PRIORITY_TOO_LOW = StoredMessage(
    _(
        "priority: policy '%(name)s' depends on the decision of policy '%(other)s', and must be applied after it: it"
        " must be greater than %(priority)s."
    )
)
PRIORITY_TOO_HIGH = StoredMessage(
    _(
        "priority: policy '%(name)s' depends on the decision of policy '%(other)s', and must be applied after it: it"
        " must be less than %(priority)s."
    )
)
