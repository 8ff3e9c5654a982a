"""The messages of action plans, and of actions that end with their plan, which are stored in English."""

from django.utils.translation import gettext_noop as _

from watcher_site.messages import UUIDS, StoredMessage, translate_message

# The sentences of the summary of an ended plan. Lists of actions follow the first ones.
ONE_ACTION = StoredMessage(_("1 action"))
ACTIONS = StoredMessage(_("%(number)s actions"))
SOME_FAILED = StoredMessage(_("%(number)s of %(total)s failed"), total=translate_message)
SOME_SKIPPED = StoredMessage(_("%(number)s of %(total)s skipped"), total=translate_message)
SOME_CANCELLED = StoredMessage(_("%(number)s of %(total)s cancelled"), total=translate_message)
SOME = StoredMessage(_("%(number)s of %(total)s"), total=translate_message)
BY_USER = StoredMessage(_("%(uuid)s by %(user)s"))
AND_MORE = StoredMessage(_("%(list)s and %(number)s more"), {"list": f"{UUIDS.pattern}.*"})
SKIPPED_SENTENCE = StoredMessage(_("One or more actions were skipped."))
NOT_ABORTED = StoredMessage(_("One or more actions could not be aborted."))
NOT_BEGUN = StoredMessage(_("One or more actions could not begin: their parents wait for each other."))
PARTLY_REVERTED = StoredMessage(_("%(total)s reverted, %(number)s could not be."), total=translate_message)
REVERTED = StoredMessage(_("%(total)s reverted."), total=translate_message)
NOTHING_TO_DO = StoredMessage(_("There was nothing to do."))
# The ends of plans.
PLAN_CANCELLED_BY_USER = StoredMessage(_("Action plan was cancelled by %(user)s."))
ACTION_SET_ASIDE = StoredMessage(_("Action was ended with its action plan, which was set aside."))
ACTION_STUCK = StoredMessage(_("Action was cancelled: its parents wait for each other."))
# Refusals, which history shows.
UNEXPECTED_STATE = StoredMessage(
    _("ActionPlan (%(uuid)s) is in state (%(state)s) while expected state must be one of (%(states)s).")
)
NOTHING_TO_BEGIN = StoredMessage(_("Action plan %(uuid)s is %(state)s: nothing of it is still to begin."))
START_TIME_FIXED = StoredMessage(_("start_at: cannot be changed any more: the action plan is %(state)s."))
NOTHING_BEGINS = StoredMessage(_("Action plan %(uuid)s is %(state)s: nothing of it begins any more."))
NOT_CONTINUABLE = StoredMessage(
    _("Only a plan that is CANCELLED or FAILED can be continued, and %(uuid)s is %(state)s.")
)
NOT_APPROVABLE = StoredMessage(_("Action plan %(uuid)s is %(state)s: its start can no longer be approved."))
NOT_WITHDRAWABLE = StoredMessage(_("Action plan %(uuid)s is %(state)s: its approval can no longer be withdrawn."))
ALREADY_APPROVED = StoredMessage(_("Action plan %(uuid)s is already approved by %(approved_by)s."))
ACTIONS_CHANGED = StoredMessage(
    _("The actions of action plan %(uuid)s have changed since they were shown. Review them before the approval.")
)
NOT_APPROVED = StoredMessage(_("Action plan %(uuid)s is not approved."))
NO_APPROVAL = StoredMessage(_("Action plans start without an approval on this site: WATCHER_PLAN_APPROVAL is false."))
REQUIRES_APPROVAL = StoredMessage(_("Action plan %(uuid)s requires the approval of another user."))
WINDOW_IS_OVER = StoredMessage(
    _(
        "window.last_day: the maintenance window of action plan %(uuid)s is over: nothing of it would begin."
        " Schedule it again first, or start it with another window."
    )
)
