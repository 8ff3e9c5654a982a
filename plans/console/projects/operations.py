"""The bases of operations on stacks and clusters of the user's projects. They start immediately."""

from typing import Any

from django import forms
from django.utils.translation import gettext as translate

from plans.api.operations import trust_of
from plans.console.clusters.forms import OperationForm
from plans.console.clusters.operations import OperationFormView
from plans.console.creation import CreationPage
from plans.console.projects.access import OwnProjectsMixin
from plans.operations.base import RequestOptions
from watcher_site.request_context import CallingContext, caller_of


def remove_plan_choice(form: OperationForm) -> OperationForm:
    """Remove the option to only create a plan for review from a form, and return the form."""
    form.fields["plan_only"].disabled = True
    form.fields["plan_only"].widget = forms.HiddenInput()
    return form


class OwnCreation(OwnProjectsMixin, CreationPage):
    """A form for a new object of one of the user's projects."""

    is_change = True
    may_start = True

    def make_form(self, form_class: type[OperationForm], data: Any = None, **options: Any) -> OperationForm:
        form = super().make_form(form_class, data, **options)
        entered = form.fields["project_id"]
        form.fields["project_id"] = forms.ChoiceField(
            label=entered.label, help_text=entered.help_text, choices=[(name, name) for name in sorted(self.projects)]
        )
        return remove_plan_choice(form)

    def caller(self, project: str) -> CallingContext:
        return caller_of(self.request, project)


class OwnOperation(OwnProjectsMixin, OperationFormView):
    """An operation that starts immediately, as in the API, because members of projects cannot see plans."""

    is_change = True

    def form(self, record: Any, data: Any = None) -> OperationForm:
        return remove_plan_choice(self.form_class(record, data))

    def perform(self, record: Any) -> str:
        trust = trust_of(self.request, record.project_id, record) if self.creates else None
        options = RequestOptions(caller_of(self.request, record.project_id), trust=trust)
        self.operation = self.plan(record, self.submitted.inputs, options)
        return translate("Requested. This page shows the progress.")

    def redirect_url(self, record: Any, done: bool) -> str:
        return self.page_address_of(record)
