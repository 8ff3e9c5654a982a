"""The labels of history events and their details, in the language of the reader.

An event such as ``action_plan.start`` consists of the type of its object and a verb. Events of plug-ins that are not
listed here are shown by their names.
"""

from collections.abc import Iterator, Mapping

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext, pgettext_lazy

from watcher_site.messages import Text

OBJECTS: Mapping[str, Text] = {
    "action": _("action"),
    "action_plan": _("action plan"),
    "audit": _("audit"),
    "audit_template": _("audit template"),
    "balancing_pool": _("balancing pool"),
    "cluster": _("cluster"),
    "command": _("command"),
    "compute_node": _("compute node"),
    "database": _("database"),
    "demonstration": _("demonstration"),
    "exclusion": _("exclusion"),
    "history": _("history"),
    "metrics": _("metrics"),
    "node": _("node"),
    "planetlab": _("PlanetLab"),
    "policy": _("policy"),
    "pool": _("pool"),
    "profile": _("profile"),
    "project": _("project"),
    "resource": _("resource"),
    "saved_filter": _("saved filter"),
    "server": _("server"),
    "service": _("service"),
    "stack": _("stack"),
    "subscription": _("subscription"),
    "token": _("token"),
    "topology": _("topology"),
    "undelivered": _("undelivered"),
    "user": _("user"),
    "volume": _("volume"),
}
# The object follows its verb, except where the label has a place for it.
VERBS: Mapping[str, Text] = {
    "add_member": pgettext_lazy("event", "add member to"),
    "approve": pgettext_lazy("event", "approve"),
    "attach_policy": pgettext_lazy("event", "attach policy to"),
    "audit_comparison": pgettext_lazy("event", "compare"),
    "cancel": pgettext_lazy("event", "cancel"),
    "change_password": pgettext_lazy("event", "change password of"),
    "change_scope": pgettext_lazy("event", "change scope of"),
    "check": pgettext_lazy("event", "check"),
    "clear": pgettext_lazy("event", "remove the mark of"),
    "continue": pgettext_lazy("event", "continue"),
    "create": pgettext_lazy("event", "create"),
    "delete": pgettext_lazy("event", "delete"),
    "detach_policy": pgettext_lazy("event", "detach policy from"),
    "disable": pgettext_lazy("event", "disable"),
    "enable": pgettext_lazy("event", "enable"),
    "export": pgettext_lazy("event", "export"),
    "load": pgettext_lazy("event", "load"),
    "login": pgettext_lazy("event", "login of"),
    "logout": pgettext_lazy("event", "logout of"),
    "make": pgettext_lazy("event", "make"),
    "mark": pgettext_lazy("event", "mark %(object)s as unhealthy"),
    "plan_comparison": pgettext_lazy("event", "compare"),
    "purge": pgettext_lazy("event", "purge"),
    "rebuild": pgettext_lazy("event", "rebuild"),
    "recover": pgettext_lazy("event", "recover"),
    "remove_member": pgettext_lazy("event", "remove member from"),
    "resend": pgettext_lazy("event", "resend"),
    "reset_state": pgettext_lazy("event", "reset state of"),
    "resize": pgettext_lazy("event", "resize"),
    "restore": pgettext_lazy("event", "restore"),
    "resume": pgettext_lazy("event", "resume"),
    "revoke": pgettext_lazy("event", "revoke"),
    "save": pgettext_lazy("event", "save"),
    "scale_in": pgettext_lazy("event", "scale in"),
    "scale_out": pgettext_lazy("event", "scale out"),
    "schedule": pgettext_lazy("event", "schedule"),
    "set_groups": pgettext_lazy("event", "set groups of"),
    "set_quota": pgettext_lazy("event", "set quota of"),
    "signal": pgettext_lazy("event", "signal"),
    "skip": pgettext_lazy("event", "skip"),
    "start": pgettext_lazy("event", "start"),
    "stop": pgettext_lazy("event", "stop"),
    "suspend": pgettext_lazy("event", "suspend"),
    "test": pgettext_lazy("event", "test"),
    "trigger": pgettext_lazy("event", "trigger"),
    "update": pgettext_lazy("event", "update"),
    "update_policy": pgettext_lazy("event", "update policy of"),
    "use": pgettext_lazy("event", "use"),
    "view": pgettext_lazy("event", "view"),
    "withdraw_approval": pgettext_lazy("event", "withdraw approval of"),
}
OUTCOMES: Mapping[str, Text] = {"success": _("success"), "refused": _("refused")}
DETAILS: Mapping[str, Text] = {
    "action_plan": _("action plan"),
    "action_types": _("action types"),
    "address": _("address"),
    "addresses": _("addresses"),
    "adjustment_type": pgettext_lazy("detail", "adjustment type"),
    "again": _("again"),
    "at most": _("at most"),
    "audit": pgettext_lazy("detail", "audit"),
    "audit_type": _("audit type"),
    "auto_trigger": _("auto trigger"),
    "availability_zone": pgettext_lazy("detail", "availability zone"),
    "before": pgettext_lazy("detail", "before"),
    "changed": _("changed"),
    "check": pgettext_lazy("detail", "check"),
    "check_capacity": pgettext_lazy("detail", "check capacity"),
    "close": _("close"),
    "closes": _("closes"),
    "cluster_id": pgettext_lazy("detail", "cluster id"),
    "count": _("count"),
    "created": _("created"),
    "deed": pgettext_lazy("detail", "deed"),
    "default_parameters": pgettext_lazy("detail", "default parameters"),
    "depends_on": pgettext_lazy("detail", "depends on"),
    "description": _("description"),
    "destroy_after_deletion": pgettext_lazy("detail", "destroy after deletion"),
    "enabled": _("enabled"),
    "end_time": _("end time"),
    "event": pgettext_lazy("detail", "event"),
    "event_type": _("event type"),
    "event_types": _("event types"),
    "expected_status": pgettext_lazy("detail", "expected status"),
    "expires_at": _("expires at"),
    "expiry": _("expiry"),
    "failed_logins": _("failed logins"),
    "first_day": _("first day"),
    "flavor": pgettext_lazy("detail", "flavor"),
    "force": _("force"),
    "format": _("format"),
    "goal": _("goal"),
    "group": _("group"),
    "groups": _("groups"),
    "image": pgettext_lazy("detail", "image"),
    "interval": _("interval"),
    "issuer": _("issuer"),
    "key": _("key"),
    "kind": _("kind"),
    "last_day": _("last day"),
    "max_size": pgettext_lazy("detail", "max size"),
    "memory": pgettext_lazy("detail", "memory"),
    "metadata": _("metadata"),
    "min_size": pgettext_lazy("detail", "min size"),
    "min_step": pgettext_lazy("detail", "min step"),
    "name": _("name"),
    "nodes": pgettext_lazy("detail", "nodes"),
    "number": _("number"),
    "object_name": pgettext_lazy("detail", "object name"),
    "object_type": pgettext_lazy("detail", "object type"),
    "object_uuid": pgettext_lazy("detail", "object uuid"),
    "on_failure": _("on failure"),
    "open": _("open"),
    "opens": _("opens"),
    "operation": pgettext_lazy("detail", "operation"),
    "outcome": pgettext_lazy("detail", "outcome"),
    "owner": _("owner"),
    "parameters": _("parameters"),
    "plan_only": _("plan only"),
    "policy": _("policy"),
    "policy_id": pgettext_lazy("detail", "policy id"),
    "priority": pgettext_lazy("detail", "priority"),
    "profile": _("profile"),
    "profile_only": pgettext_lazy("detail", "profile only"),
    "project_id": pgettext_lazy("detail", "project id"),
    "reason": _("reason"),
    "receiver": pgettext_lazy("detail", "receiver"),
    "request_id": pgettext_lazy("detail", "request id"),
    "role": pgettext_lazy("detail", "role"),
    "samples": _("samples"),
    "scope": _("scope"),
    "secret": _("secret"),
    "servers": _("servers"),
    "signal": _("signal"),
    "since": pgettext_lazy("detail", "since"),
    "spec": _("spec"),
    "stacks": pgettext_lazy("detail", "stacks"),
    "start_at": _("start at"),
    "start_time": _("start time"),
    "state": _("state"),
    "strategy": _("strategy"),
    "strict": pgettext_lazy("detail", "strict"),
    "subject": _("subject"),
    "tainted": pgettext_lazy("detail", "tainted"),
    "targets": _("targets"),
    "template": pgettext_lazy("detail", "template"),
    "text": pgettext_lazy("detail", "text"),
    "timeout": pgettext_lazy("detail", "timeout"),
    "timeout_mins": pgettext_lazy("detail", "timeout mins"),
    "type": _("type"),
    "url": _("url"),
    "user": _("user"),
    "user_id": pgettext_lazy("detail", "user id"),
    "vcpus": pgettext_lazy("detail", "vcpus"),
    "weekdays": _("weekdays"),
    "window": _("window"),
    "zone": _("zone"),
}

# The verbs that are signals to plans and actions.
SIGNALS = {"resume", "suspend"}

# The kinds of rows in the details of a purge, whose values are their numbers.
ROWS: Mapping[str, Text] = {
    "Action Plans": pgettext_lazy("rows", "action plans"),
    "Action Plans and Actions": pgettext_lazy("rows", "action plans and actions"),
    "Actions": pgettext_lazy("rows", "actions"),
    "Attachments": pgettext_lazy("rows", "attachments"),
    "Audit Templates": pgettext_lazy("rows", "audit templates"),
    "Audits": pgettext_lazy("rows", "audits"),
    "Clusters": pgettext_lazy("rows", "clusters"),
    "Compute Nodes": pgettext_lazy("rows", "compute nodes"),
    "Exclusions": pgettext_lazy("rows", "exclusions"),
    "Flavors": pgettext_lazy("rows", "flavors"),
    "Goals": pgettext_lazy("rows", "goals"),
    "History": pgettext_lazy("rows", "history"),
    "Host Aggregates": pgettext_lazy("rows", "host aggregates"),
    "Nodes": pgettext_lazy("rows", "nodes"),
    "Notifications": pgettext_lazy("rows", "notifications"),
    "Policies": pgettext_lazy("rows", "policies"),
    "Policy Bindings": pgettext_lazy("rows", "policy bindings"),
    "Pools": pgettext_lazy("rows", "pools"),
    "Profiles": pgettext_lazy("rows", "profiles"),
    "Samples": pgettext_lazy("rows", "samples"),
    "Server Events": pgettext_lazy("rows", "server events"),
    "Servers": pgettext_lazy("rows", "servers"),
    "Services": pgettext_lazy("rows", "services"),
    "Sessions": pgettext_lazy("rows", "sessions"),
    "Stack Resources": pgettext_lazy("rows", "stack resources"),
    "Stacks": pgettext_lazy("rows", "stacks"),
    "Storage Nodes": pgettext_lazy("rows", "storage nodes"),
    "Strategies": pgettext_lazy("rows", "strategies"),
    "Tokens": pgettext_lazy("rows", "tokens"),
    "Volume Types": pgettext_lazy("rows", "volume types"),
    "Volumes": pgettext_lazy("rows", "volumes"),
}


def describe_event(event: str) -> str:
    """Return the label of an event: ``action_plan.start`` is "start action plan"."""
    kind, _separator, verb = event.partition(".")
    return compose_label(label_of(OBJECTS, kind), label_of(VERBS, verb))


def describe_outcome(outcome: str) -> str:
    return label_of(OUTCOMES, outcome)


def compose_label(kind: str, verb: str) -> str:
    if not (kind and verb):
        return kind or verb
    if "%(object)s" in verb:
        return verb % {"object": kind}
    return pgettext("event", "%(verb)s %(object)s") % {"verb": verb, "object": kind}


def label_of(labels: Mapping[str, Text], name: str) -> str:
    return str(labels[name]) if name in labels else name.replace("_", " ")


def find_events(label: str) -> Iterator[str]:
    """Yield the events with this label, or with this verb, in the language of the reader, ignoring case.

    Plans and actions are suspended and resumed by signals.
    """
    label = label.casefold()
    kinds, verbs = ({name: str(text) for name, text in labels.items()} for labels in (OBJECTS, VERBS))
    for kind, kind_label in kinds.items():
        for verb, verb_label in verbs.items():
            labels = compose_label(kind_label, verb_label), verb_label, verb.replace("_", " ")
            if label in map(str.casefold, labels):
                yield f"{kind}.{verb}"
                if verb in SIGNALS:
                    yield f"{kind}.signal"


def find_kinds(label: str) -> Iterator[str]:
    """Yield the types of objects with this label in the language of the reader, ignoring case."""
    yield from (kind for kind, text in OBJECTS.items() if str(text).casefold() == label.casefold())
