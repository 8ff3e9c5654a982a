"""The filters of the table of a plan's actions.

Each query is limited to one plan, whose actions the index ``action_plan_state`` finds: the conditions below are only
compared with these.
"""

from typing import Any

import django_filters
from django.db.models import CharField, Q, QuerySet, Subquery, Value
from django.db.models.functions import Cast, Replace
from django.utils.translation import gettext_lazy as _

from actions.event_details import sees_details
from actions.models import Action
from actions.models.naming import NAME_PARAMETERS
from actions.models.querysets import ActionQuerySet
from cluster.models import Cluster, ComputeNode, Node, Server, Stack, StackResource, Volume
from plans.console.graph.layers import layers_of
from plans.models import ActionPlan
from watcher_site.console.columns import make_choices

NODES = ("source_node", "destination_node")
WITH_PROJECT = {Server: "", Volume: "", Cluster: "", Node: "", Stack: "", StackResource: "stack__"}
"""The models whose objects belong to projects, with the path of the relation that has the project."""


class PlanActionFilters(django_filters.FilterSet):
    """The filters of one plan's actions. A filter that is not valid selects no actions rather than all of them."""

    text = django_filters.CharFilter(label=_("Text"), method="with_text")
    server = django_filters.CharFilter(label=_("Server or resource"), method="with_resource")
    action_type = django_filters.ChoiceFilter(label=_("Type"), empty_label=_("any"))
    node = django_filters.CharFilter(label=_("Compute node"), method="with_node")
    project = django_filters.CharFilter(label=_("Project ID"), method="with_project")
    state = django_filters.ChoiceFilter(
        label=_("State"), choices=make_choices(Action.State.values), empty_label=_("any")
    )
    layer = django_filters.NumberFilter(label=_("Layer"), method="with_layer", min_value=1, decimal_places=0)

    class Meta:
        model = Action
        fields: list[str] = []

    def __init__(self, data: Any, plan: ActionPlan, user: Any) -> None:
        self.plan, self.user = plan, user
        super().__init__(data, plan.actions.present())
        types = plan.actions.present().order_by("action_type").values_list("action_type", flat=True).distinct()
        self.filters["action_type"].extra["choices"] = make_choices(types)

    @property
    def is_filtered(self) -> bool:
        return any(self.data.get(name) for name in self.base_filters)

    @property
    def qs(self) -> ActionQuerySet:
        found: ActionQuerySet = super().qs if self.is_valid() else self.queryset.none()
        return found

    def with_text(self, actions: ActionQuerySet, _name: str, text: str) -> ActionQuerySet:
        """Select by a part of any text in the row: type, resource, nodes, message, or the beginning of the UUID."""
        # The message may contain details that the user may not see.
        message = ["status_message"] if sees_details(self.user) else []
        names = ["action_type", "reason", "skipped_by", *message, *parameter_columns(*NAME_PARAMETERS, *NODES)]
        return actions.filter(contains_condition(names, text) | Q(pk__in=actions.beginning_with(text).values("pk")))

    def with_resource(self, actions: ActionQuerySet, _name: str, text: str) -> ActionQuerySet:
        """Select by a part of the name or UUID of the target of an action, also by the current name of a server."""
        renamed = Server.objects.present().filter(name__icontains=text)
        return with_targets(
            actions, renamed, contains_condition(["target", *parameter_columns(*NAME_PARAMETERS)], text)
        )

    def with_node(self, actions: ActionQuerySet, _name: str, text: str) -> ActionQuerySet:
        """Select by a part of the name of the source, the destination, or the target if it is a compute node."""
        nodes = ComputeNode.objects.present().filter(hostname__icontains=text)
        return with_targets(
            actions,
            nodes,
            contains_condition(parameter_columns(*NODES), text) | Q(target__in=nodes.values("hostname")),
        )

    def with_project(self, actions: ActionQuerySet, _name: str, project: str) -> ActionQuerySet:
        """Select by the project of the target: a server, volume, cluster, node, stack or resource."""
        condition = Q()
        for model, path in WITH_PROJECT.items():
            condition |= Q(digits__in=digits_of(model.objects.present().filter(**{f"{path}project_id": project})))
        return with_target_digits(actions).filter(condition)

    def with_layer(self, actions: ActionQuerySet, _name: str, layer: int) -> ActionQuerySet:
        return actions.filter(pk__in=[key for key, place in layers_of(self.plan).items() if place + 1 == layer])


def parameter_columns(*names: str) -> list[str]:
    return [f"input_parameters__{name}" for name in names]


def contains_condition(columns: list[str], text: str) -> Q:
    condition = Q()
    for column in columns:
        condition |= Q(**{f"{column}__icontains": text})
    return condition


def with_targets(actions: ActionQuerySet, objects: QuerySet[Any], others: Q) -> ActionQuerySet:
    """Select the actions whose targets are these objects, and those that match another condition."""
    return with_target_digits(actions).filter(others | Q(digits__in=digits_of(objects)))


def with_target_digits(actions: ActionQuerySet) -> ActionQuerySet:
    """Add the target without hyphens as ``digits``. Only PostgreSQL converts a UUID to a text with hyphens."""
    return actions.alias(digits=Replace("target", Value("-")))


def digits_of(objects: QuerySet[Any]) -> Subquery:
    return Subquery(objects.order_by().values_list(Replace(Cast("uuid", CharField()), Value("-"))))
