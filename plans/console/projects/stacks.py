"""The pages of the stacks of the user's projects."""

from typing import Any

import django_tables2 as tables
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as translate
from django.utils.translation import gettext_lazy as _

from cluster.models import Stack, StackResource
from cluster.models.stacks import IN_PROGRESS
from cluster.stacks.trees import load_tree
from plans.console import marks
from plans.console.projects.access import OwnProjectsMixin
from plans.console.projects.operations import OwnCreation, OwnOperation
from plans.console.stacks import operations
from plans.console.stacks.pages import ShownStackFilters, StackTable, with_health
from plans.operations.base import Operation
from plans.operations.stack_progress import with_progress
from watcher_site.console.columns import TABLE_ATTRIBUTES
from watcher_site.console.pages import FollowedPage, ListPage
from watcher_site.messages import translate_message


class OwnStackTable(StackTable):
    name = tables.Column(linkify=("projects:stack", {"uuid": tables.A("uuid")}))
    status_reason = tables.Column(accessor="shown_reason", verbose_name=_("reason"), orderable=False, default="")

    class Meta:
        model = Stack
        fields = ("name", "status", "health", "resource_count", "project_id", "status_reason", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_status_reason(self, value: str) -> str:
        return translate_message(value)


class OwnStackList(OwnProjectsMixin, ListPage):
    model = Stack
    project_policy = "stack:get_all"
    table_class = OwnStackTable
    filterset_class = ShownStackFilters
    help_page = "concepts#stack"
    heading = _("Project stacks")
    guidance = _("Your projects have no stacks. A stack is a tree of servers and server groups, made from a template.")
    template_name = "projects/stack_list.html"
    follows = True

    def get_queryset(self) -> QuerySet[Stack]:
        own = Stack.objects.present().roots().filter(project_id__in=self.projects)
        return with_progress(with_health(own)).order_by("name", "pk")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        return super().get_context_data(may_create=self.may_create("stack:create"), **context)


class OwnStackPage(OwnProjectsMixin, FollowedPage):
    """One stack with its resources."""

    model = Stack
    project_policy = "stack:get"
    context_object_name = "stack"
    template_name = "projects/stack_detail.html"
    part_template = "projects/_stack.html"

    def get_queryset(self) -> QuerySet[Stack]:
        return with_progress(Stack.objects.present().roots().filter(project_id__in=self.projects))

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        stack: Any = self.object
        in_progress = stack.shown_status in IN_PROGRESS
        may = {verb: self.may_do(f"stack:{verb}", stack.project_id) for verb in ("update", "mark", "delete")}
        return super().get_context_data(
            tree=load_tree(stack),
            in_progress=in_progress,
            may={verb: allowed and not in_progress for verb, allowed in may.items()},
            may_mark_resources=self.may_do("resource:mark", stack.project_id) and not in_progress,
            **context,
        )


def own_stack_address(stack: Stack) -> str:
    return reverse("projects:stack", args=[(stack.root or stack).uuid])


class NewStack(OwnCreation, operations.NewStack):
    project_policy = "stack:create"

    def page_context(self) -> dict[str, Any]:
        return {"back": reverse("projects:stacks")}

    def redirect_after_creation(self, made: Operation, plan_only: bool) -> HttpResponse:
        messages.success(self.request, translate("Requested. This page shows the progress."))
        return redirect("projects:stack", uuid=made.target)


class OwnStackOperationView(OwnOperation):
    def page_address_of(self, record: Stack) -> str:
        return own_stack_address(record)


class UpdateStack(OwnStackOperationView, operations.UpdateStack):
    project_policy = "stack:update"


class DeleteStack(OwnStackOperationView, operations.DeleteStack):
    project_policy = "stack:delete"

    def redirect_url(self, record: Stack, done: bool) -> str:
        return reverse("projects:stacks") if done else super().redirect_url(record, done)


class OwnStackMark(OwnProjectsMixin):
    is_change = True
    project_policy = "stack:mark"

    def redirect_url(self, record: Stack, done: bool) -> str:
        return own_stack_address(record)


class MarkStack(OwnStackMark, marks.MarkStack):
    pass


class ClearStack(OwnStackMark, marks.ClearStack):
    pass


class OwnResourceMark(OwnProjectsMixin):
    is_change = True
    project_policy = "resource:mark"
    project_column = "stack__project_id"

    def redirect_url(self, record: StackResource, done: bool) -> str:
        return f"{own_stack_address(record.stack)}#resource-{record.uuid}"


class MarkResource(OwnResourceMark, marks.MarkResource):
    pass


class ClearResource(OwnResourceMark, marks.ClearResource):
    pass
