"""The console's ways to have something done to stacks."""

from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from cluster.models import Stack
from plans.console.clusters.forms import OperationForm
from plans.console.clusters.operations import OperationVerb
from plans.console.creation import CreationPage
from plans.console.stacks.forms import NewStackForm, UpdateStackForm
from plans.console.stacks.pages import page_of
from plans.operations.base import Operation, RequestOptions
from plans.operations.stacks import create_stack, delete_stack, update_stack
from watcher_site.links import linked


class NewStack(CreationPage):
    history_event = "stack.create"
    permission_required = "cluster.add_stack"
    form_class = NewStackForm
    template_name = "stacks/stack_form.html"

    def surroundings(self) -> dict[str, Any]:
        return {"back": reverse("stacks:list")}

    def create(self, inputs: dict[str, Any], options: RequestOptions) -> Operation:
        return create_stack(**inputs, options=options)

    def answer(self, made: Operation, plan_only: bool) -> HttpResponse:
        if not plan_only:
            messages.success(self.request, linked(f"Requested: action {made.action} creates its resources."))
        return redirect("plans:detail", uuid=made.action_plan)


class StackVerb(OperationVerb):
    """An operation on a root stack. The page of its plan shows the progress."""

    model = Stack
    is_final = True

    def get_queryset(self) -> Any:
        return super().get_queryset().roots()

    def page_of(self, record: Stack) -> str:
        return page_of(record)


class UpdateStack(StackVerb):
    permission_required = "cluster.change_stack"
    verb, question = "update", "Update the stack?"
    form_class: ClassVar[type[OperationForm]] = UpdateStackForm
    operate = update_stack

    def show(self, record: Stack, form: OperationForm) -> HttpResponse:
        context = {"record": record, "form": form, "back": self.where_to(record, False)}
        return render(self.request, "stacks/stack_form.html", context)


class DeleteStack(StackVerb):
    permission_required = "cluster.delete_stack"
    verb, question = "delete", "Delete the stack?"
    consequence = "All that is in it is deleted with it. It cannot be brought back."
    operate, look = delete_stack, "danger"
