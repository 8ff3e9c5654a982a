"""The messages of audits, and of the action plans that they replace, which are stored in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message

RUN_NAMES = {"run": r"The run(?: of [\d :-]+ UTC)?"}

AUDIT_CANCELLED_BY_USER = StoredMessage(_("Audit was canceled by user"))
AUDIT_SUSPENDED_BY_USER = StoredMessage(_("Audit was suspended by user"))
AUDIT_CANCELLED_BECAUSE = StoredMessage(_("Audit was cancelled because %(obstacle)s"), obstacle=translate_message)
RUN_WAITS_BECAUSE = StoredMessage(_("Its run waits because %(obstacle)s"), obstacle=translate_message)
RUN_OMITTED_BECAUSE = StoredMessage(
    _("%(run)s was left out because %(obstacle)s"), RUN_NAMES, run=translate_message, obstacle=translate_message
)
RUN_FAILED_BECAUSE = StoredMessage(
    _("%(run)s failed: %(reason)s"), RUN_NAMES, run=translate_message, reason=translate_message
)
RUN_AT = StoredMessage(_("The run of %(time)s UTC"))
RUN = StoredMessage(_("The run"))
NODE_NOT_FOUND = StoredMessage(_("The compute node %(name)s could not be found"))
BACKUP_IS_DOWN = StoredMessage(_("The compute node %(name)s is down: it can not be the backup_node"))
BACKUP_DISABLED_BECAUSE = StoredMessage(
    _("The compute node %(name)s was disabled by a person (%(reason)s): it can not be the backup_node")
)
BACKUP_DISABLED = StoredMessage(_("The compute node %(name)s was disabled by a person: it can not be the backup_node"))
CLOUD_NOT_READ = StoredMessage(_("The cloud could not be read: %(reason)s"))
NO_COMPUTE_NODES = StoredMessage(_("The cluster state is not defined"))
NO_STORAGE_NODES = StoredMessage(_("The cluster state is not defined: there are no storage nodes."))
NO_NODE_IN_SCOPE = StoredMessage(_("The scope of the audit leaves no %(model)s node."))
STRATEGY_NOT_INSTALLED = StoredMessage(_("Strategy %(name)s is not installed."))
NO_STRATEGY_FOR_GOAL = StoredMessage(_("No strategy could be found to achieve the '%(name)s' goal."))
PLAN_IS_ONGOING = StoredMessage(_("action plan %(uuid)s is ongoing. Use force to run it anyway."))
PLAN_SUPERSEDED = StoredMessage(_("Action plan was superseded by the newer action plan %(uuid)s."))
PLAN_REPLACED = StoredMessage(_("Action plan was cancelled, as its audit ran again and made action plan %(uuid)s."))
PLAN_EXPIRED = StoredMessage(_("Action plan was superseded, as it was not started within %(hours)s hours."))
ACTION_SUPERSEDED = StoredMessage(_("Action was cancelled, as its action plan was superseded by %(uuid)s."))
ACTION_REPLACED = StoredMessage(
    _("Action was cancelled with its action plan, as its audit ran again and made action plan %(uuid)s.")
)
ACTION_EXPIRED = StoredMessage(_("Action was cancelled, as its action plan was not started within %(hours)s hours."))
