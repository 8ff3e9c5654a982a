"""The metrics of a process itself. All labels have few values: none is the name of an object."""

from collections.abc import Iterable
from itertools import product

from prometheus_client import Counter, Histogram

from watcher_site.monitoring.definitions import counter, histogram

REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
WORK_SECONDS = (0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 10_800)

http_requests = counter(
    "watcher_http_requests",
    "Answered requests, by the name of the view; a path without a view counts as unmatched",
    *("view", "method", "status"),
)
http_request_seconds = histogram(
    "watcher_http_request_duration_seconds", "Duration of requests", "view", "method", buckets=REQUEST_SECONDS
)
state_changes = counter(
    "watcher_state_changes",
    "State changes of actions, action plans, audits, nodes, clusters, stacks and their resources, by the new state",
    *("object", "state"),
)
actions_seconds = histogram(
    "watcher_action_duration_seconds",
    "Duration of the last attempt of executed actions, by their type and final state",
    *("action_type", "state"),
    buckets=WORK_SECONDS,
)
action_plan_seconds = histogram(
    "watcher_action_plan_duration_seconds",
    "Time from the beginning of action plans to their final state",
    "state",
    buckets=WORK_SECONDS,
)
action_retries = counter("watcher_action_retries", "Actions that were deferred to a later attempt", "action_type")
action_recoveries = counter(
    "watcher_action_recoveries", "Recoveries of actions whose process was lost or stopped", "action_type"
)
actions_given_up = counter(
    "watcher_actions_given_up", "Actions that exceeded their timeout and did not stop", "action_type"
)
action_plan_claims = counter(
    "watcher_action_plan_claims",
    "Action plans that appliers began (claimed), and took over from another applier (adopted)",
    "kind",
)
audit_run_seconds = histogram(
    "watcher_audit_run_duration_seconds",
    "Duration of runs of audits, by their strategy and outcome (succeeded, failed, interrupted)",
    *("strategy", "outcome"),
    buckets=WORK_SECONDS,
)
audit_run_delay = histogram(
    "watcher_audit_run_delay_seconds",
    "Time by which runs of audits began after they were due",
    buckets=WORK_SECONDS,
)
cloud_reading_seconds = histogram(
    "watcher_cloud_reading_duration_seconds",
    "Duration of complete readings of the cloud, by their outcome (succeeded, failed)",
    "outcome",
    buckets=WORK_SECONDS,
)
cloud_requests = counter(
    "watcher_cloud_requests",
    "Requests to the APIs of OpenStack, by the service of the catalog; the status 0 is a lost connection",
    *("service", "method", "status"),
)
cloud_request_seconds = histogram(
    "watcher_cloud_request_duration_seconds",
    "Duration of requests to the APIs of OpenStack",
    *("service", "method"),
    buckets=REQUEST_SECONDS,
)
deliveries = counter(
    "watcher_notification_deliveries",
    "Attempts to send notifications to the broker or to webhooks, by their outcome"
    " (delivered, retried, given_up, unanswered)",
    *("receiver", "outcome"),
)
leases_lost = counter("watcher_leases_lost", "Leases that expired or were lost by this process", "service")
database_errors = counter(
    "watcher_database_errors", "Operations that failed because the database did not answer", "operation"
)
broker_errors = counter(
    "watcher_broker_errors",
    "Operations that failed because a broker did not answer: that of actions, of notifications, or of the cloud",
    "broker",
)

# The label values that are known in advance, with which `initialize_counters` creates these metrics.
KNOWN_LABELS: dict[Counter | Histogram, Iterable[tuple[str, ...]]] = {
    action_plan_claims: [("claimed",), ("adopted",)],
    action_plan_seconds: [("SUCCEEDED",), ("FAILED",), ("CANCELLED",)],
    cloud_reading_seconds: [("succeeded",), ("failed",)],
    deliveries: list(
        product(("broker", "webhook", "mail", "slack"), ("delivered", "retried", "given_up", "unanswered"))
    ),
    leases_lost: [
        ("watcher-applier",),
        ("watcher-decision-engine",),
        ("watcher-worker",),
        ("watcher-relay",),
        ("watcher-listener",),
    ],
    database_errors: [
        ("request",),
        ("probe",),
        ("heartbeat",),
        ("step",),
        ("delivery",),
        ("outcome",),
        ("notification",),
    ],
    broker_errors: [("actions",), ("notifications",), ("cloud",)],
}
