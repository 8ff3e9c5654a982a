"""The pages of stacks: the list, and a stack as a tree."""

from typing import Any

import django_filters
import django_tables2 as tables
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views import View

from actions.console.tables import ActionTable
from actions.models import Action
from cluster.console.filters import StackFilters
from cluster.models import Stack, StackResource
from cluster.models.stacks import FAILED, IN_PROGRESS
from cluster.stacks.trees import load_tree
from plans.console.clusters.pages import RECENT, is_expected, unfinished_holders
from plans.operations.stack_progress import shown_status_condition, with_progress
from watcher_site.console.columns import TABLE_ATTRIBUTES, NumberColumn, StateColumn, StoredMessageColumn, TimeColumn
from watcher_site.console.pages import ByUUID, FollowedPage, ListPage, Page


class StackTable(tables.Table):
    name = tables.Column(linkify=("stacks:detail", {"uuid": tables.A("uuid")}))
    status = StateColumn(accessor="shown_status", order_by=("status", "pk"))
    health = tables.Column(empty_values=(), orderable=False)
    resource_count = NumberColumn(verbose_name=_("resources"), orderable=False)
    project_id = tables.Column(verbose_name=_("project"), default="—")
    status_reason = StoredMessageColumn(accessor="shown_reason", verbose_name=_("reason"))
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"))

    class Meta:
        model = Stack
        fields = ("name", "status", "health", "resource_count", "project_id", "status_reason", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_health(self, record: Any) -> SafeString | str:
        if record.is_failed or record.has_failed:
            return format_html('<span class="state state-failed">{}</span>', _("unhealthy"))
        return format_html('<span class="state state-succeeded">{}</span>', _("healthy"))


class ShownStackFilters(StackFilters):
    """Filters by the shown status, which an accepted operation changes before it begins."""

    status = django_filters.ChoiceFilter(
        label=_("Status"),
        choices=StackFilters.base_filters["status"].extra["choices"],
        empty_label=_("any"),
        method="filter_status",
    )

    def filter_status(self, queryset: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        return queryset.filter(shown_status_condition([value]))


class StackList(ListPage):
    model = Stack
    permission_required = "cluster.view_stack"
    table_class = StackTable
    filterset_class = ShownStackFilters
    template_name = "stacks/stack_list.html"
    heading = _("Stacks")
    help_page = "concepts#stack"
    follows = True
    guidance = _("No stacks yet. A stack is a tree of servers, server groups and nested stacks, made from a template.")

    def get_queryset(self) -> QuerySet[Stack]:
        return with_progress(with_health(Stack.objects.present().roots())).order_by("name", "pk")


def with_health(stacks: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate stacks with the number of their resources, and whether one of them failed or is marked."""
    parts = StackResource.objects.present().filter(Q(stack=OuterRef("pk")) | Q(stack__root=OuterRef("pk")))
    here = Count("resources", filter=Q(resources__deleted_at=None), distinct=True)
    return stacks.annotate(resource_count=here, has_failed=Exists(parts.filter(status__in=FAILED)))


class StackPage(FollowedPage):
    """One stack with its resources and its actions."""

    model = Stack
    permission_required = "cluster.view_stack"
    context_object_name = "stack"

    template_name = "stacks/stack_detail.html"
    part_template = "stacks/_stack.html"

    def get_queryset(self) -> QuerySet[Stack]:
        return with_progress(Stack.objects.present().roots())

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        tree = load_tree(self.object)
        targets = [str(self.object.uuid), *(str(resource.uuid) for resource in tree.rows)]
        requested = Action.objects.present().filter(target__in=targets, derived_from=None).with_plans()
        recent = list(requested.order_by("-pk")[:RECENT])
        holders = list(unfinished_holders(self.object))
        table = ActionTable(recent, orderable=False)
        # The column of the resource depends on the rights of the user.
        table.request = self.request
        return super().get_context_data(
            tree=tree,
            recent=table,
            holders=holders,
            moving=bool(holders) or any(map(is_expected, recent)),
            in_progress=self.object.shown_status in IN_PROGRESS,
            **context,
        )


class ResourcePlace(Page, ByUUID, View):
    """A redirect to the place of a resource in the tree of its stack. Resources have no pages."""

    model = StackResource
    history_event = "resource.view"
    permission_required = "cluster.view_stackresource"
    http_method_names = ["get"]

    def get_queryset(self) -> QuerySet[StackResource]:
        return StackResource.objects.present().select_related("stack__root")

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        return redirect(resource_address(self.get_object()))


def resource_address(resource: StackResource) -> str:
    """Return the address of a resource in the tree of its root stack."""
    root = resource.stack.root or resource.stack
    return f"{reverse('stacks:detail', args=[root.uuid])}#resource-{resource.uuid}"


def stack_page_address(stack: Stack) -> str:
    """Return the address of the page of a root stack, or of the root of a nested one."""
    return reverse("stacks:detail", args=[(stack.root or stack).uuid])
