"""The messages of action plans, and of actions that end with their plan, which are stored in English."""

import re

from django.utils.translation import gettext_noop as _

from watcher_site.messages import UUIDS, StoredMessage, translate_message

SENTENCES = re.compile(r" (?=Wait for action plan |Suspended by |Nothing more of it |Its maintenance window )")


def translate_remedies(text: str) -> str:
    return " ".join(map(translate_message, SENTENCES.split(text)))


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
# Refused operations.
ON_FAILURE_VALUES = StoredMessage(
    _("Invalid input for field/attribute on_failure. Value: '%(value)s'. It must be %(values)s."), {"value": ".*?"}
)
PLAN_NOT_FOUND = StoredMessage(_("ActionPlan %(uuid)s could not be found"))
MEMBERSHIP_CHANGED = StoredMessage(_("Node %(uuid)s has just joined or left a cluster."))
CONFLICTING_ACTIONS = StoredMessage(
    _("The %(type)s action for target %(uuid)s conflicts with the following action(s): %(actions)s. %(remedies)s"),
    remedies=translate_remedies,
)
ACTION_TYPE_NOT_INSTALLED = StoredMessage(_("Action type %(type)s is not installed"))
PROJECT_RULE = StoredMessage(_("project_id: must be a text of at most %(number)s characters."))
NO_PROFILE = StoredMessage(_("profile: there is no profile %(name)s."))
POLICY_ATTACHED = StoredMessage(_("policy: policy %(uuid)s is attached to cluster %(cluster)s already."))
POLICY_TYPE_ATTACHED = StoredMessage(_("policy: the cluster has policy %(uuid)s of type %(type)s already."))
NOTHING_OF_POLICY = StoredMessage(_("enabled: is required unless priority is given."))
POLICY_NOT_ATTACHED = StoredMessage(_("Policy %(uuid)s is not attached to cluster %(cluster)s"))
NO_POLICY = StoredMessage(_("policy: there is no policy %(name)s."))
NODE_OF_CLUSTER = StoredMessage(_("nodes: node %(uuid)s is already owned by cluster %(cluster)s."))
NODE_OF_OTHER_PROJECT = StoredMessage(_("nodes: node %(uuid)s does not belong to the project of cluster %(cluster)s."))
NODE_NOT_ACTIVE = StoredMessage(_("nodes: node %(uuid)s is %(status)s; only ACTIVE nodes join a cluster."))
NODE_NOT_OF_CLUSTER = StoredMessage(_("nodes: node %(uuid)s is not a member of cluster %(cluster)s."))
CLUSTER_NOT_CREATED = StoredMessage(
    _("Cluster %(uuid)s has not been created yet: start the plan that creates its nodes.")
)
CLUSTER_TIMEOUT = StoredMessage(_("timeout: must be a whole number of seconds from 0 to %(most)s."))
INFINITE_NUMBER = StoredMessage(_("number: must have an end."))
MIN_STEP = StoredMessage(_("min_step: is for %(type)s alone."))
NEGATIVE_CAPACITY = StoredMessage(_("%(field)s: the target capacity (%(size)s) is below 0."))
NO_NODES = StoredMessage(_("nodes: must name at least one node."))
TOO_MANY_NODES = StoredMessage(_("nodes: must not name more than %(number)s nodes."))
NODE_REPEATED = StoredMessage(_("nodes: node %(uuid)s is given %(number)s times."))
NO_NODE = StoredMessage(_("nodes: there is no node %(uuid)s."))
NODE_UUID = StoredMessage(_("nodes: %(text)s is not a UUID."))
NODE_UNSETTLED = StoredMessage(_("Node %(uuid)s is %(status)s: it can be marked when it is settled."))
INSTANCE_BUSY = StoredMessage(_("Cannot '%(verb)s' instance %(uuid)s while it is in task_state %(state)s"))
MARK_LOCKED = StoredMessage(_("%(kind)s %(uuid)s cannot be marked: action %(action)s (%(type)s) is at work on it."))
PROFILE_REQUIRED = StoredMessage(_("profile: is required unless cluster is given."))
ROLE_LENGTH_RULE = StoredMessage(_("role: must not be longer than %(number)s characters."))
INSTANCE_IN_VALUE = StoredMessage(_("Cannot '%(verb)s' instance %(uuid)s while it is in %(field)s %(value)s"))
NESTED_STACK = StoredMessage(_("Stack %(name)s is within stack %(root)s: that is the one to change or delete."))
STACK_NAME_TAKEN = StoredMessage(_("name: another stack of the project is called %(name)s."))
STACK_NAME_RULE = StoredMessage(_("name: must have %(rule)s."), rule=translate_message)
STACK_TIMEOUT = StoredMessage(_("timeout_mins: must be a whole number of minutes from 1 to %(most)s."))
CONTINUED = StoredMessage(_("Action plan %(uuid)s was continued already, by %(successor)s. Delete that one first."))
NOTHING_TO_CONTINUE = StoredMessage(
    _("Action plan %(uuid)s has nothing to continue: no action of it failed or was cancelled.")
)
TOO_MANY_DEPENDENCIES = StoredMessage(
    _("Action plan %(uuid)s has too many dependencies among its actions to be continued.")
)
CYCLE_IN_CONTINUATION = StoredMessage(_("Actions of the plan wait for each other: it cannot be continued."))
WINDOW_OVER_BEFORE_PLAN = StoredMessage(
    _("window.last_day: the window is over before anything of the plan could begin.")
)
SUSPENDED_BY = StoredMessage(_("Suspended by %(user)s: nothing more of it begins until somebody resumes it."))
SUSPENDED_AFTER_RESTORE = StoredMessage(
    _(
        "Suspended after a restore: actions that ran after the backup may be executed again."
        " Review the plan, then resume it."
    )
)
WAITS_FOR_OPENING = StoredMessage(_("Nothing more of it begins before %(time)s UTC."))
WINDOW_CLOSED_FOR_EVER = StoredMessage(
    _("Its maintenance window is over: nothing more of it begins until it has another one.")
)
NO_CLUSTER = StoredMessage(_("cluster: there is no cluster %(name)s."))
AMBIGUOUS_CLUSTER = StoredMessage(_("cluster: there is more than one cluster %(name)s."))
CLUSTER_HAS_NODES = StoredMessage(
    _("Cluster %(uuid)s has %(nodes)s: they are deleted with it if that is forced."), nodes=translate_message
)
REMEDY = StoredMessage(_("Wait for action plan %(uuid)s to end, or cancel it."))
STACK_BUSY = StoredMessage(_("Stack %(name)s already has an action (%(verb)s) in progress."))
