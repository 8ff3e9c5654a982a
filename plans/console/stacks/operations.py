"""The console's operations on stacks."""

from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from cluster.models import Stack
from plans.console.clusters.forms import OperationForm
from plans.console.clusters.operations import OperationFormView
from plans.console.creation import CreationPage
from plans.console.stacks.forms import NewStackForm, ResourcesForm, TemplateForm, UpdateStackForm
from plans.console.stacks.pages import stack_page_address
from plans.operations.base import Operation, RequestOptions
from plans.operations.stacks import create_stack, delete_stack, update_stack
from watcher_site.messages import translate_message
from watcher_site.refusals import Refused
from watcher_site.templatetags.console import linked


class NewStack(CreationPage):
    """A form for the resources of a new stack, or on request for its template.

    Two further buttons do not create the stack: one validates the template, the other converts the resources to a
    template, in the form for templates.
    """

    history_event = "stack.create"
    permission_required = "cluster.add_stack"
    template_name = "stacks/stack_form.html"

    def form(self, data: Any) -> OperationForm:
        has_template = "template" in data if data else "document" in self.request.GET
        return self.make_form(NewStackForm if has_template else ResourcesForm, data)

    def page_context(self) -> dict[str, Any]:
        return {"back": reverse("stacks:list")}

    def post(self, request: HttpRequest) -> HttpResponse:
        if not {"check", "document"} & set(request.POST):
            return super().post(request)
        form: Any = self.form(request.POST)
        valid = check_template(form) if form.is_valid() else ""
        if not valid or "check" in request.POST:
            return self.show(form, valid)
        values = {**form.cleaned_data, "template": form.text}
        return self.show(self.make_form(NewStackForm, initial=values))

    def show(self, form: OperationForm, valid: str = "") -> HttpResponse:
        context = {
            "form": form,
            "valid": valid,
            "by_resource": isinstance(form, ResourcesForm),
            **self.page_context(),
        }
        return render(self.request, self.template_name, context)

    def create(self, inputs: dict[str, Any], options: RequestOptions) -> Operation:
        return create_stack(**inputs, options=options)

    def redirect_after_creation(self, made: Operation, plan_only: bool) -> HttpResponse:
        if not plan_only:
            messages.success(
                self.request,
                linked(_("Requested: action %(action)s creates the resources.") % {"action": made.action}),
            )
        return redirect("plans:detail", uuid=made.action_plan)


def check_template(form: TemplateForm | ResourcesForm) -> str:
    """Return a message about the valid template of a form, or add the error to its field and return an empty text."""
    try:
        return form.describe_template()
    except Refused as refusal:
        form.add_refusal(translate_message(str(refusal)))
        return ""


class StackOperationView(OperationFormView):
    """An operation on a root stack. The page of its plan shows the progress."""

    model = Stack
    is_final = True

    def get_queryset(self) -> Any:
        return super().get_queryset().roots()

    def page_address_of(self, record: Stack) -> str:
        return stack_page_address(record)


class UpdateStack(StackOperationView):
    creates = True
    permission_required = "cluster.change_stack"
    verb, question = _("update the stack"), _("Update the stack?")
    form_class: ClassVar[type[OperationForm]] = UpdateStackForm
    operate = update_stack

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        if "check" not in request.POST:
            return super().post(request, **path)
        record = self.get_object()
        form: Any = self.form(record, request.POST)
        return self.show(record, form, check_template(form) if form.is_valid() else "")

    def show(self, record: Stack, form: OperationForm, valid: str = "") -> HttpResponse:
        context = {"record": record, "form": form, "valid": valid, "back": self.redirect_url(record, False)}
        return render(self.request, "stacks/stack_form.html", context)


class DeleteStack(StackOperationView):
    permission_required = "cluster.delete_stack"
    verb, question = _("delete the stack"), _("Delete the stack?")
    consequence = _("All resources of the stack are also deleted. This cannot be undone.")
    operate, look = delete_stack, "danger"
