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
