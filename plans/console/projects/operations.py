"""The base of operations on stacks and clusters of a person's projects: they start at once."""

from typing import Any

from django import forms
from django.utils.translation import gettext as translate

from plans.api.operations import trust_of
from plans.console.clusters.forms import OperationForm
from plans.console.clusters.operations import OperationVerb
from plans.console.projects.access import OfProjects
from plans.operations.base import RequestOptions
from watcher_site.request_context import caller_of


class OwnOperation(OfProjects, OperationVerb):
    """An operation that starts at once, as by the API: members see no plans."""

    is_change = True

    def form(self, record: Any, data: Any = None) -> OperationForm:
        form = self.form_class(record, data)
        form.fields["plan_only"].disabled = True
        form.fields["plan_only"].widget = forms.HiddenInput()
        return form

    def perform(self, record: Any) -> str:
        trust = trust_of(self.request, record.project_id, record) if self.creates else None
        options = RequestOptions(caller_of(self.request, record.project_id), trust=trust)
        self.operation = self.plan(record, self.submitted.inputs, options)
        return translate("Requested. This page shows the progress.")

    def where_to(self, record: Any, done: bool) -> str:
        return self.page_of(record)
