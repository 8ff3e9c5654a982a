"""The messages of actions and their events, which are stored in English."""

from collections.abc import Mapping

from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, Text, translate_message

# The phases of actions, with translatable labels. In English these are the names in the API and in messages.
PHASES: Mapping[str, Text] = {
    "pre_condition": pgettext_lazy("phase", "pre_condition"),
    "execute": pgettext_lazy("phase", "execute"),
    "post_condition": pgettext_lazy("phase", "post_condition"),
    "go_on": pgettext_lazy("phase", "go_on"),
    "revert": pgettext_lazy("phase", "revert"),
    "recover": pgettext_lazy("phase", "recover"),
    "abort": pgettext_lazy("phase", "abort"),
    "suspend": pgettext_lazy("phase", "suspend"),
    "resume": pgettext_lazy("phase", "resume"),
    "timeout": pgettext_lazy("phase", "timeout"),
    "signal_cancel": pgettext_lazy("phase", "signal_cancel"),
    "signal_suspend": pgettext_lazy("phase", "signal_suspend"),
    "signal_resume": pgettext_lazy("phase", "signal_resume"),
    "completion": pgettext_lazy("phase", "completion"),
    "waiting": pgettext_lazy("phase", "waiting"),
}


def phase_label(name: str) -> str:
    return str(PHASES.get(name, name))


# Skips.
NOTED = StoredMessage(
    _("%(finding)s Note: %(note)s"), {"finding": "Action was skipped automatically: .+?"}, finding=translate_message
)
SKIPPED_BY_USER_BECAUSE = StoredMessage(_("Action skipped by user. Reason: %(reason)s"))
SKIPPED_EARLIER_BECAUSE = StoredMessage(
    _("Action skipped by user. Skipped by %(user)s in an earlier plan: %(reason)s")
)
SKIPPED_EARLIER = StoredMessage(_("Action skipped by user. Skipped by %(user)s in an earlier plan."))
SKIPPED_ALONE = StoredMessage(_("Action skipped by user."))
SKIPPED_BECAUSE = StoredMessage(_("Action was skipped automatically: %(finding)s"), finding=translate_message)
EXCLUDED_BECAUSE = StoredMessage(_("It is excluded by '%(name)s'. Reason: %(reason)s"))
EXCLUDED = StoredMessage(_("It is excluded by '%(name)s'."))
ORIGIN_SKIPPED = StoredMessage(_("The action that it was derived from was skipped"))
ORIGIN_SUCCEEDED = StoredMessage(_("The action that it was derived from succeeded without it"))
# Failures.
FAILED_BECAUSE = StoredMessage(
    _("Action failed in %(phase)s: %(reason)s"), phase=phase_label, reason=translate_message
)
FAILED_IN_PHASE = StoredMessage(_("Action failed in %(phase)s."), phase=phase_label)
FAILED = StoredMessage(_("Action failed."))
PARENT_FAILED = StoredMessage(_("Action was not executed: action %(uuid)s, which it depends on, failed."))
PARENT_CANCELLED = StoredMessage(_("Action was not executed: action %(uuid)s, which it depends on, was cancelled."))
DID_NOT_STOP = StoredMessage(_("It took longer than %(number)s seconds, and did not stop"))
TOO_LONG = StoredMessage(_("It took longer than %(number)s seconds"))
EXECUTION_FAILED = StoredMessage(_("The action %(uuid)s execution failed."))
EXECUTION_TOO_LONG = StoredMessage(_("The action %(uuid)s execution took too long."))
RETRIES_EXCEEDED = StoredMessage(
    _("Exceeded maximum number of retries (%(number)s): %(reason)s"), reason=translate_message
)
OUTCOME_UNKNOWN = StoredMessage(_("Its outcome was not recorded, and whether it was executed is not known"))
DERIVED_FAILED = StoredMessage(_("the action that it derived failed: %(name)s: %(reason)s"), reason=translate_message)
DERIVED_CANCELLED = StoredMessage(
    _("the action that it derived was cancelled: %(name)s: %(reason)s"), reason=translate_message
)
SOME_DERIVED_FAILED = StoredMessage(
    _("%(number)s of the %(total)s actions that it derived failed: %(name)s: %(reason)s"), reason=translate_message
)
SOME_DERIVED_CANCELLED = StoredMessage(
    _("%(number)s of the %(total)s actions that it derived was cancelled: %(name)s: %(reason)s"),
    reason=translate_message,
)
# Cancellations.
GAVE_ITSELF_UP_BECAUSE = StoredMessage(_("Action execution cancelled. %(reason)s"), reason=translate_message)
CANCELLED_ALONE = StoredMessage(_("Action execution cancelled."))
LATE_ORIGIN = StoredMessage(_("action %(uuid)s, which took longer than %(number)s seconds"))
CANCELLED_BY_USER = StoredMessage(_("Action was cancelled by %(user)s."), user=translate_message)
CANCELLED_WITH_PLAN_BY_USER = StoredMessage(_("Action was cancelled with its action plan by %(user)s."))
CANCELLED_WITH_PLAN = StoredMessage(_("Action was cancelled with its action plan."))
REQUESTED_BY = StoredMessage(_("Requested by %(user)s."), user=translate_message)
# Pauses.
DEFERRED_BECAUSE = StoredMessage(_("Action is tried again later: %(reason)s"), reason=translate_message)
LOCKED = StoredMessage(_("Failed in locking %(kind)s %(uuid)s: action %(holder)s is at work on it"))
WAITS_FOR_ACTION = StoredMessage(_("Action waits for the action that it derived."))
WAITS_FOR_ACTIONS = StoredMessage(_("Action waits for %(number)s actions that it derived."))
GOES_ON = StoredMessage(_("Action goes on: nothing that it derived is left to wait for."))
# The findings of action types.
NO_CAPACITY_NEEDED = StoredMessage(_("No capacity is needed: %(finding)s"), finding=translate_message)
SERVER_GONE = StoredMessage(_("Instance %(server)s no longer exists"))
NEEDING_SERVER_GONE = StoredMessage(_("instance %(server)s no longer exists"))
NEEDING_SERVER_SERVED = StoredMessage(_("instance %(server)s is %(status)s, and waits no more"))
ALREADY_STOPPED = StoredMessage(_("Instance %(server)s is already stopped"))
ELSEWHERE = StoredMessage(_("Instance %(server)s is not running on source node %(source)s (currently on %(host)s)"))
NOT_ACTIVE = StoredMessage(
    _("Live migration requires instance %(server)s to be in ACTIVE status (current status: %(status)s)")
)
SERVICE_IN_STATE = StoredMessage(_("nova-compute service %(host)s is already in state %(state)s"))
NOP_SKIPPED = StoredMessage(_("Skipped in pre_condition"))
NOP_FAILED = StoredMessage(_("Failed in pre_condition"))
NOP_FAILED_AFTERWARDS = StoredMessage(_("Failed in post_condition"))
# Predictions of preflights.
WOULD_BE_SKIPPED = StoredMessage(_("would be skipped: %(finding)s"), finding=translate_message)
WOULD_FAIL = StoredMessage(_("would fail in %(phase)s: %(reason)s"), phase=phase_label, reason=translate_message)
WOULD_FAIL_IN_PHASE = StoredMessage(_("would fail in %(phase)s."), phase=phase_label)
WOULD_NOT_BE_EXECUTED_AS_PARENT_FAILS = StoredMessage(
    _("would not be executed: action %(uuid)s, which it depends on, failed.")
)
WOULD_NOT_BE_EXECUTED_AS_PARENT_IS_CANCELLED = StoredMessage(
    _("would not be executed: action %(uuid)s, which it depends on, was cancelled.")
)
NOT_FORESEEN = StoredMessage(_("The result of actions of type %(type)s cannot be predicted."))
# Plans.
PLAN_FAILED_SENTENCE = StoredMessage(_("One or more actions failed."))
SET_ASIDE_AFTER_ERROR = StoredMessage(
    _("Action plan was set aside: %(error)s in the applier. The log of %(host)s has the details.")
)
SET_ASIDE_BECAUSE = StoredMessage(_("Action plan was set aside: %(reason)s"), reason=translate_message)
SET_ASIDE = StoredMessage(_("Action plan was set aside."))
ACTIONS_RESTORED = StoredMessage(_("Actions were restored."))
DEPENDENCIES_CHANGED = StoredMessage(_("Dependencies were changed."))
# Refusals, which history shows.
ACTION_REFUSED = StoredMessage(_("Action %(uuid)s: %(problem)s"), problem=translate_message)
BEING_CANCELLED = StoredMessage(_("Action (%(uuid)s) is being cancelled."))
NOT_RESTORED_ALONE = StoredMessage(
    _(
        "Action %(uuid)s can not be restored alone: action %(origin)s, which it is derived from, is skipped."
        " Restore that one."
    )
)
NOT_SKIPPED_BY_USER = StoredMessage(
    _("Only what a person skipped can be restored; this action was skipped automatically")
)
APPROVED_AND_STARTED = StoredMessage(
    _(
        "Action plan %(uuid)s was approved and started: its actions can still be skipped, but not restored, nor can"
        " their dependencies be changed."
    )
)
PLAN_STATE_FORBIDS = StoredMessage(
    _("%(field)s update not allowed for actionplan state: %(state)s"), {"field": "[a-zA-Z_]+"}
)
REASON_OF_SKIPPED_ONLY = StoredMessage(_("status_message update only allowed when action state is SKIPPED"))
STATUS_FORBIDS = StoredMessage(
    _("Action (%(uuid)s) is in status (%(status)s) while expected status must be one of (%(statuses)s).")
)
# Refused operations.
ALL_DERIVED_EXCLUDED = StoredMessage(
    _("%(type)s cannot be done now: each action that it derives is excluded; %(derived)s is %(rule)s"),
    rule=translate_message,
)
EXCLUDED_NOW = StoredMessage(_("%(type)s cannot be done now: it is %(rule)s"), rule=translate_message)
STILL_EXCLUDED = StoredMessage(_("Action %(uuid)s cannot be restored: it is still excluded by '%(name)s'."))
LINE_LENGTH = StoredMessage(_("%(field)s: must have %(least)s to %(most)s characters."))
EXCLUSION_WITHOUT_NAME = StoredMessage(_("name: missing. An exclusion needs a name."))
NO_ACTION_TYPE = StoredMessage(_("action_types: there is no action type %(name)s; there are %(names)s."))
TOO_MANY_TARGETS = StoredMessage(
    _("targets.%(kind)s: must be a list of at most %(number)s texts, each %(form)s."), form=gettext
)
EXCLUSION_WINDOW_OVER = StoredMessage(
    _("window.last_day: the window opens on no day any more: it would never be in force.")
)
EXPIRES_BEFORE_WINDOW = StoredMessage(
    _("expires_at: the exclusion would expire before its window opens, at %(time)s UTC.")
)
TARGET_NAMES = StoredMessage(_("targets.%(kind)s: must contain texts, each %(form)s."), form=gettext)
AMBIGUOUS_TARGET = StoredMessage(_("targets.%(kind)s: several are called %(name)s: name its UUID."))
KINDS_OF_TARGETS = {"kind": "server|compute node|aggregate|availability zone|project|cluster"}
TARGET_MISSING = StoredMessage(_("there is no %(kind)s %(name)s."), KINDS_OF_TARGETS, kind=gettext)
SEVERAL_TARGETS_MISSING = StoredMessage(
    _("there are no %(kind)ss %(names)s%(rest)s."),
    {**KINDS_OF_TARGETS, "rest": r"(?: and \d+ more)?"},
    kind=gettext,
    rest=translate_message,
)
FURTHER_TARGETS = StoredMessage(_(" and %(number)s more"))
ACTION_NOT_FOUND = StoredMessage(_("Action %(uuid)s could not be found"))
STRANGE_PARENT = StoredMessage(_("%(field)s: %(uuid)s is not an action of the plan."))
WAITS_FOR_ORIGIN = StoredMessage(_("%(field)s: action %(uuid)s is derived from %(origin)s, and always waits for it."))
STRANGE_EDGE = StoredMessage(
    _(
        "%(field)s: action %(uuid)s, derived from %(origin)s, must not wait for %(other)s, derived from"
        " %(other_origin)s."
    )
)
TRANSITION_NOT_ALLOWED = StoredMessage(_("State transition not allowed: (%(state)s -> %(target)s)"))
EXCLUDED_BY_BECAUSE = StoredMessage(_("excluded by '%(name)s'. Reason: %(reason)s"))
EXCLUDED_BY = StoredMessage(_("excluded by '%(name)s'."))
