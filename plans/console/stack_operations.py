"""The console's operations on stacks, with their forms."""

from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from cluster.models import Stack
from cluster.models.stacks import LONGEST_TIMEOUT, NAME_LENGTH
from cluster.stacks.templates.templates import written_out
from plans.console.clusters.forms import OperationForm
from plans.console.clusters.operations import OperationVerb
from plans.console.creation import CreationPage
from plans.console.stacks import page_of
from plans.operations.base import Operation, RequestOptions
from plans.operations.stacks import create_stack, delete_stack, update_stack
from watcher_site.accounts.projects import PROJECT_LENGTH
from watcher_site.templatetags.console import linked

ROWS = 20
EXAMPLE = """\
resources:
  database:
    type: server
    properties: {flavor: large}
  web:
    type: scaling_group
    depends_on: database
    properties:
      size: 3
      member: {type: server, properties: {flavor: small}}
"""


class TemplateForm(OperationForm):
    template = forms.CharField(
        strip=False,
        help_text=_("In YAML or JSON."),
        widget=forms.Textarea(attrs={"rows": ROWS, "class": "font-monospace", "spellcheck": "false", "wrap": "off"}),
    )

    timeout_mins = forms.IntegerField(
        label=_("Timeout (minutes)"),
        min_value=1,
        max_value=LONGEST_TIMEOUT,
        required=False,
        help_text=_("For operations on the stack, not counting pauses. Leave empty for the default of the site."),
    )

    def blame(self, refusal: str) -> None:
        """Put a refusal beside its field; what begins with a path of the template stays as it is."""
        name, _, words = refusal.partition(": ")
        if name == "template":
            self.add_error(name, words)
        else:
            super().blame(refusal)


class NewStackForm(TemplateForm):
    name = forms.CharField(
        max_length=NAME_LENGTH, help_text=_("Letters, digits, _, - and .; must begin with a letter.")
    )
    project_id = forms.CharField(
        max_length=PROJECT_LENGTH,
        required=False,
        label=_("Project"),
        help_text=_("The project that owns the stack."),
    )

    field_order = ["name", "template", "project_id", "timeout_mins", "plan_only"]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.order_fields(self.field_order)
        self.fields["template"].widget.attrs["placeholder"] = EXAMPLE


class UpdateStackForm(TemplateForm):
    """Shows the template that a stack has. Left as it is, what was marked unhealthy, or failed, is replaced."""

    revision = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, record: Stack, *arguments: Any, **options: Any) -> None:
        self.text = written_out(record.template)
        held = {"template": self.text, "revision": record.revision, "timeout_mins": record.timeout_mins}
        super().__init__(record, *arguments, initial=held, **options)
        self.fields["timeout_mins"].help_text = _("Leave empty to keep the current value.")
        self.fields["template"].help_text = _(
            "If unchanged, resources that failed or are marked unhealthy are replaced."
        )

    @property
    def inputs(self) -> dict[str, Any]:
        template, minutes = self.cleaned_data["template"], self.cleaned_data["timeout_mins"]
        given = {} if template_lines(template) == template_lines(self.text) else {"template": template}
        return given if minutes in (None, self.record.timeout_mins) else {**given, "timeout_mins": minutes}

    def clean(self) -> dict[str, Any]:
        """Refuse what was typed over a template that is no longer the stack's."""
        cleaned = super().clean() or {}
        if cleaned.get("revision") != self.record.revision:
            raise forms.ValidationError(_("The stack was changed after this page was loaded. Reload the page."))
        return cleaned


def template_lines(text: str) -> list[str]:
    return text.strip().splitlines()


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
            messages.success(
                self.request,
                linked(_("Requested: action %(action)s creates the resources.") % {"action": made.action}),
            )
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
    creates = True
    permission_required = "cluster.change_stack"
    verb, question = _("update"), _("Update the stack?")
    form_class: ClassVar[type[OperationForm]] = UpdateStackForm
    operate = update_stack

    def show(self, record: Stack, form: OperationForm) -> HttpResponse:
        context = {"record": record, "form": form, "back": self.where_to(record, False)}
        return render(self.request, "stacks/stack_form.html", context)


class DeleteStack(StackVerb):
    permission_required = "cluster.delete_stack"
    verb, question = _("delete"), _("Delete the stack?")
    consequence = _("All resources of the stack are also deleted. This cannot be undone.")
    operate, look = delete_stack, "danger"
