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
# Refused operations.
NO_RUN_TO_RESUME = StoredMessage(_("The audit cannot be resumed: it has no further run before its end_time."))
INTERVAL_RULE = StoredMessage(
    _("interval: '%(interval)s' is neither a number of seconds nor a cron expression: %(problem)s."),
    problem=translate_message,
)
INTERVAL_LENGTH_RULE = StoredMessage(_("interval: must be at most %(number)s characters long."))
INTERVAL_NEVER = StoredMessage(_("interval: the time '%(interval)s' never comes."))
INTERVAL_SECONDS = StoredMessage(_("interval: must be from 1 to %(most)s seconds, not %(seconds)s."))
END_IN_PAST = StoredMessage(_("end_time: must not be in the past."))
END_BEFORE_START = StoredMessage(_("end_time: must be after start_time."))
INDICATOR_MISSING = StoredMessage(_("Efficacy indicator %(name)s: the strategy did not report it."))
INDICATOR_UNKNOWN = StoredMessage(_("Efficacy indicator %(name)s: goal '%(goal)s' knows none of this name."))
INDICATOR_INVALID = StoredMessage(_("Efficacy indicator %(name)s: %(problem)s."), problem=translate_message)
PARAMETERS_TO_UPDATE = StoredMessage(
    _(
        "Updating goal or strategy on a template that has default_parameters requires providing updated"
        " default_parameters in the same request"
    )
)
TEMPLATE_NOT_FOUND = StoredMessage(_("AuditTemplate %(uuid)s could not be found"))
EMPTY_NAME = StoredMessage(_("name: must not be empty."))
TOO_LONG = StoredMessage(_("%(field)s: must not be longer than %(number)s characters."))
INVALID_REFERENCE = StoredMessage(
    _("Invalid input for field/attribute %(field)s. Value: '%(identifier)s'. %(kind)s %(same)s is invalid"),
    {"kind": r"\w+"},
)
STRATEGY_REQUIRED = StoredMessage(_("default_parameters requires a strategy to be specified"))
DOES_NOT_RUN_AGAIN = StoredMessage(_("%(field)s: the audit is %(state)s and does not run again."))
NO_RUN = StoredMessage(_("interval: there is no run before end_time."))
AUDIT_WITHOUT_NAME = StoredMessage(_("Invalid input for field/attribute name. It must not be empty."))
TYPE_DISALLOWED = StoredMessage(_("Audit type %(type)s is disallowed."))
STATE_DISALLOWED = StoredMessage(_("Audit state %(state)s is disallowed."))
INTERVAL_OF_ONESHOT = StoredMessage(_("Interval of audit must not be set for ONESHOT."))
INTERVAL_OF_CONTINUOUS = StoredMessage(_("Interval of audit must be specified for CONTINUOUS."))
TIMES_OF_ONESHOT = StoredMessage(_("Start or End time of audit must not be set for ONESHOT."))
NO_GOAL = StoredMessage(_("A valid goal or audit_template_id must be provided"))
GOAL_AND_TEMPLATE = StoredMessage(_("Either audit_template_uuid or goal should be provided."))
NO_TEMPLATE = StoredMessage(_("The audit template UUID or name specified is invalid"))
PARAMETERS_WITHOUT_STRATEGY = StoredMessage(
    _("Specify parameters but no predefined strategy for audit, or no parameter spec in predefined strategy")
)
NAME_TAKEN = StoredMessage(_("%(kind)s with UUID or name %(name)s already exists"), kind=translate_message)
SCOPE_NO_LIST = StoredMessage(_("scope: must be a list."))
SCOPE_PART_REPEATED = StoredMessage(_("scope: must not contain %(name)s twice."))
SCOPE_WITHOUT_COMPUTE = StoredMessage(_("scope: must contain compute besides storage."))
AGGREGATES_IN_BOTH = StoredMessage(_("host_aggregates can't be included and excluded together"))
ANY_WITH_OTHERS = StoredMessage(_("scope: '*' must stand alone in %(field)s."))
GOAL_NOT_FOUND = StoredMessage(_("Goal %(name)s could not be found"))
STRATEGY_NOT_FOUND = StoredMessage(_("Strategy %(name)s could not be found"))
STRATEGY_OF_OTHER_GOAL = StoredMessage(
    _("'%(strategy)s' strategy does relate to the '%(goal)s' goal. Possible choices: %(choices)s")
)
PARAMETERS_INVALID = StoredMessage(_("Invalid %(field)s for strategy: %(problem)s"), problem=translate_message)
PARAMETERS_UNKNOWN = StoredMessage(_("Audit parameter %(names)s are not allowed"))
TYPE_WITHOUT_WEIGHT = StoredMessage(_("Action type %(type)s has no weight, so that it cannot be planned."))
TYPE_NOT_PLANNED = StoredMessage(_("Action type %(type)s cannot be planned for this strategy."))
NO_ATTRIBUTE_OF_ACTION = StoredMessage(_("%(field)s.%(name)s: is not an attribute of an action."))
NO_ACTION_TYPE = StoredMessage(_("%(field)s.action_type: there is no action type %(name)s."))
RESOURCE_AMONG_INPUTS = StoredMessage(
    _("%(field)s.input_parameters.resource_id: must be given next to the input_parameters, not among them.")
)
RESOURCE_ID_AMONG_INPUTS = StoredMessage(_("resource_id: must be given next to the input_parameters, not among them."))
ACTION_NAME_LENGTH = StoredMessage(_("name: must have at most %(most)s characters, and has %(number)s."))
ACTION_TIMEOUT = StoredMessage(_("timeout: must be from 0 to %(most)s seconds, and is %(seconds)s."))
NO_CLUSTER = StoredMessage(_("clusters: there is no cluster %(name)s."))
ENGINE_NOT_INSTALLED = StoredMessage(_("Scoring engine %(name)s is not installed."))
FAILED_NODE_REQUIRED = StoredMessage(
    _("failed_node: is required with fencing confirmed, which says that this node is off.")
)
BACKUP_IS_FAILED_NODE = StoredMessage(_("backup_node: must not be the failed_node."))
CONFIRMED_ONCE = StoredMessage(
    _("fencing: confirmed says what a person has just seen. It takes a ONESHOT audit, and no template.")
)
NODE_IS_UP = StoredMessage(_("The compute node %(name)s is up: only a node that is down is evacuated"))
TOO_MANY_FAILED_NODES = StoredMessage(
    _(
        "%(number)s compute nodes are down (%(names)s), more than max_nodes: %(most)s. If it is no fault of the"
        " network, name one of them as failed_node, or raise max_nodes"
    )
)
NOT_FENCED_NODES = StoredMessage(
    _(
        "%(subject)s %(problem)s. Nothing is evacuated. Switch the node off, or run the audit with"
        " fencing: power_off, or, when you have made sure that it is off, with failed_node and fencing: confirmed"
    ),
    {"subject": "Compute nodes? .+? (?:is|are)"},
    subject=translate_message,
    problem=translate_message,
)
NO_STACK = StoredMessage(_("stacks: there is no stack %(name)s."))
RUN_LOST_DATABASE = StoredMessage(_("Its run lost the database connection %(number)s times."))
NO_SAMPLES = StoredMessage(
    _("The data source %(source)s has no samples of %(metric)s from the last %(seconds)s seconds.")
)
UNFENCED_NODE = StoredMessage(_("Compute node %(names)s is"))
UNFENCED_NODES = StoredMessage(_("Compute nodes %(names)s are"))
AN_AUDIT = StoredMessage(_("An audit"))
AN_AUDIT_TEMPLATE = StoredMessage(_("An audit_template"))
# Messages of croniter.
CRON_FIELDS = StoredMessage(_("Exactly 5, 6 or 7 columns has to be specified for iterator expression."))
CRON_VALUE = StoredMessage(_("[%(expression)s] is not acceptable, out of range"))
CRON_TEXT = StoredMessage(_("[%(expression)s] is not acceptable"))
