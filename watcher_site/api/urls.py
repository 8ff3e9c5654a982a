"""The URLs of the API.

Each is served with and without ``/v1`` and a trailing slash, and an identifier may end in ``.json``, because clients
use all of these forms.
"""

from typing import Any

from django.urls import URLPattern, re_path
from rest_framework.viewsets import ViewSetMixin

from actions.api.actions import ActionView
from audits.api.audits import AuditTemplateView, AuditView, GoalView, ScoringEngineView, StrategyView, WebhookView
from audits.api.data_model import DataModelView
from cluster.api.policies import PolicyTypeView, PolicyView
from cluster.api.profiles import ProfileView
from plans.api.action_plans import ActionPlanView
from plans.api.clusters.bindings import BindingView
from plans.api.clusters.clusters import OPERATIONS, ClusterView
from plans.api.clusters.nodes import NodeView
from plans.api.exclusions import ExclusionView
from plans.api.instance_actions import InstanceActionView
from plans.api.servers import ServerView
from plans.api.stack_resources import StackResourceView
from plans.api.stacks import StackView
from watcher_site.api.resources.history import HistoryView
from watcher_site.api.resources.services import ServiceView
from watcher_site.api.resources.subscriptions import BrokerView, SubscriptionView, UndeliveredView
from watcher_site.api.resources.tokens import TokenView

CHANGEABLE = {"patch": "partial_update", "delete": "destroy"}
POLICY = r"(?P<policy>[^/]+?)(?:\.json)?"
# Names of stacks and of their resources contain dots, and may end in .json.
NAME = r"(?P<identifier>(?!detail/?$)[^/]+?)"
STACK = r"stacks/(?P<stack_name>[^/]+?)/(?P<identifier>[^/]+?)"
REQUEST = r"/(?P<request_id>[^/]+?)(?:\.json)?"
IDENTIFIER = r"(?P<identifier>(?!detail/?$)[^/]+?)(?:\.json)?"


def route(path: str, view: type[ViewSetMixin], name: str, **verbs: str) -> URLPattern:
    """Route the HTTP verbs of one path to the methods of a view."""
    options: dict[str, Any] = {"detail": "identifier" in path, "basename": name}
    return re_path(rf"^(?:v1/)?{path}/?$", view.as_view(verbs, **options), name=f"api-{name}")  # type: ignore[arg-type]


def collection_routes(name: str, view: Any, item: dict[str, str] | None = None, **verbs: str) -> list[URLPattern]:
    """Route a collection: its two lists, its objects, and further methods."""
    return [
        route(f"{name}/{IDENTIFIER}", view, f"{name}-item", get="retrieve", **(item or {})),
        route(f"{name}/detail", view, f"{name}-detail", get="detailed_list"),
        route(name, view, name, get="short_list", **verbs),
    ]


# The most frequent requests come first, because patterns are tried in order.
urlpatterns = [
    *collection_routes("actions", ActionView, {"patch": "partial_update"}),
    route(f"actions/{IDENTIFIER}/signal", ActionView, "actions-signal", post="signal"),
    route(f"actions/{IDENTIFIER}/events", ActionView, "actions-events", get="events"),
    *collection_routes("action_plans", ActionPlanView, CHANGEABLE),
    route(f"action_plans/{IDENTIFIER}/start", ActionPlanView, "action_plans-start", post="start"),
    route(f"action_plans/{IDENTIFIER}/schedule", ActionPlanView, "action_plans-schedule", post="schedule"),
    route(f"action_plans/{IDENTIFIER}/preflight", ActionPlanView, "action_plans-preflight", get="preflight"),
    route(f"action_plans/{IDENTIFIER}/skip", ActionPlanView, "action_plans-skip", post="skip"),
    route(f"action_plans/{IDENTIFIER}/restore", ActionPlanView, "action_plans-restore", post="restore"),
    route(f"action_plans/{IDENTIFIER}/continue", ActionPlanView, "action_plans-continue", post="continue_plan"),
    route(f"action_plans/{IDENTIFIER}/signal", ActionPlanView, "action_plans-signal", post="signal"),
    route(f"action_plans/{IDENTIFIER}/approve", ActionPlanView, "action_plans-approve", post="approve"),
    route(
        f"action_plans/{IDENTIFIER}/withdraw_approval",
        ActionPlanView,
        "action_plans-withdraw_approval",
        post="withdraw_approval",
    ),
    *collection_routes("goals", GoalView),
    *collection_routes("strategies", StrategyView),
    route(f"strategies/{IDENTIFIER}/state", StrategyView, "strategies-state", get="state"),
    *collection_routes("audit_templates", AuditTemplateView, CHANGEABLE, post="create"),
    *collection_routes("audits", AuditView, CHANGEABLE, post="create"),
    *collection_routes("scoring_engines", ScoringEngineView),
    *collection_routes("services", ServiceView),
    *collection_routes("profiles", ProfileView, CHANGEABLE, post="create"),
    route("policies/validate", PolicyView, "policies-validate", post="validate"),
    *collection_routes("policies", PolicyView, CHANGEABLE, post="create"),
    route("policy_types", PolicyTypeView, "policy_types", get="list_types"),
    route(f"policy_types/{IDENTIFIER}", PolicyTypeView, "policy_types-item", get="show_type"),
    *collection_routes("clusters", ClusterView, CHANGEABLE, post="create"),
    *(
        route(f"clusters/{IDENTIFIER}/{operation}", ClusterView, f"clusters-{operation}", post=operation)
        for operation in OPERATIONS
    ),
    route(f"clusters/{IDENTIFIER}/actions", ClusterView, "clusters-actions", post="act"),
    route(f"clusters/{IDENTIFIER}/policies", BindingView, "clusters-policies", get="of_cluster", post="create"),
    route(f"clusters/{IDENTIFIER}/policies/{POLICY}", BindingView, "clusters-policy", get="retrieve", **CHANGEABLE),
    *collection_routes("nodes", NodeView, CHANGEABLE, post="create"),
    route(f"nodes/{IDENTIFIER}/check", NodeView, "nodes-check", post="check"),
    route(f"nodes/{IDENTIFIER}/recover", NodeView, "nodes-recover", post="recover"),
    route(f"nodes/{IDENTIFIER}/health", NodeView, "nodes-health", get="show_health", patch="mark"),
    route("exclusions/try", ExclusionView, "exclusions-try", post="try_draft"),
    route(f"exclusions/{IDENTIFIER}/try", ExclusionView, "exclusions-item-try", post="try_saved"),
    *collection_routes("exclusions", ExclusionView, CHANGEABLE, post="create"),
    *collection_routes("servers", ServerView, {"delete": "destroy"}, post="create"),
    route(f"servers/{IDENTIFIER}/action", ServerView, "servers-action", post="act"),
    route(f"servers/{IDENTIFIER}/health", ServerView, "servers-health", get="show_health", patch="mark"),
    route(f"stacks/{NAME}", StackView, "stacks-item", get="look_up"),
    route(STACK, StackView, "stacks-stack", get="retrieve", put="update", delete="destroy"),
    route(f"{STACK}/health", StackView, "stacks-health", get="show_health", patch="mark"),
    route(f"{STACK}/template", StackView, "stacks-template", get="template"),
    route(f"{STACK}/resources", StackResourceView, "stacks-resources", get="detailed_list"),
    route(
        rf"{STACK}/resources/(?P<resource>[^/]+?)", StackResourceView, "stacks-resource", get="retrieve", patch="mark"
    ),
    *collection_routes("stacks", StackView, post="create")[1:],
    route("history/export", HistoryView, "history-export", get="export"),
    *collection_routes("history", HistoryView),
    *(
        route(f"servers/{IDENTIFIER}/os-instance-actions{path}", InstanceActionView, f"servers-{name}", get=verb)
        for path, name, verb in (
            ("", "instance-actions", "of_server"),
            (REQUEST, "instance-action", "retrieve"),
        )
    ),
    *collection_routes("subscriptions", SubscriptionView, CHANGEABLE, post="create"),
    route(f"subscriptions/{IDENTIFIER}/test", SubscriptionView, "subscriptions-test", post="send_test"),
    route(f"subscriptions/{IDENTIFIER}/secret", SubscriptionView, "subscriptions-secret", post="renew_secret"),
    route("broker", BrokerView, "broker", get="look"),
    route("undelivered/resend", UndeliveredView, "undelivered-resend-all", post="resend_all"),
    *collection_routes("undelivered", UndeliveredView, {"delete": "destroy"}),
    route(f"undelivered/{IDENTIFIER}/resend", UndeliveredView, "undelivered-resend", post="resend"),
    *collection_routes("tokens", TokenView, {"delete": "destroy"}, post="create"),
    route("data_model", DataModelView, "data_model", get="short_list"),
    route(f"webhooks/{IDENTIFIER}", WebhookView, "webhooks", post="trigger"),
]
