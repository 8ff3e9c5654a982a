"""The console's ways to have something done to stacks."""

from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views import View

from cluster.models import Stack
from plans.clusters.forms import OperationForm
from plans.clusters.verbs import OperationVerb
from plans.operations import Asked, Operation
from plans.stacks.forms import NewStackForm, UpdateStackForm
from plans.stacks.operations import create_stack, delete_stack, update_stack
from plans.stacks.views import page_of
from watcher_site.calling import caller_of
from watcher_site.kept_forms import KeepsForm
from watcher_site.naming import linked
from watcher_site.refusals import Refused


class NewStack(KeepsForm, View):
    deed = "stack.create"
    permission_required = "cluster.add_stack"
    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show(self.form(self.kept()))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = self.form(request.POST)
        made = self.create(form) if form.is_valid() else None
        if made is None:
            return self.show(form)
        if not form.cleaned_data["plan_only"]:
            messages.success(request, linked(f"Asked for: action {made.action} creates its resources."))
        return redirect("plans:detail", uuid=made.action_plan)

    def form(self, data: Any) -> NewStackForm:
        return NewStackForm(None, data, may_start=self.request.user.has_perm("plans.start_actionplan"))

    def show(self, form: NewStackForm) -> HttpResponse:
        return render(self.request, "stacks/stack_form.html", {"form": form, "back": reverse("stacks:list")})

    def create(self, form: NewStackForm) -> Operation | None:
        """Make the stack that the form describes, or put why not beside the form."""
        asked = Asked(caller_of(self.request), form.cleaned_data["plan_only"])
        try:
            return create_stack(**form.inputs, asked=asked)
        except Refused as refusal:
            self.note(refusal, form.inputs["name"])
            form.blame(str(refusal))
            return None


class StackVerb(OperationVerb):
    """Something done to a stack that is within no other. Its plan's page tells how far it is."""

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
