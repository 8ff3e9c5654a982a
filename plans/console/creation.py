"""The base of the forms for new objects, which are created by action plans."""

from abc import abstractmethod
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import View

from plans.api.operations import trust_of
from plans.console.clusters.forms import OperationForm
from plans.operations.base import Operation, RequestOptions
from watcher_site.console.resumable_forms import ResumableFormPage
from watcher_site.messages import translate_message
from watcher_site.refusals import Refused
from watcher_site.request_context import CallingContext, caller_of


class CreationPage(ResumableFormPage, View):
    """A form for a new object, which is shown again with errors until the object can be created."""

    http_method_names = ["get", "post"]
    form_class: type[OperationForm]
    template_name: str

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show(self.form(self.resumed_data()))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = self.form(request.POST)
        made = self.try_to_create(form) if form.is_valid() else None
        return self.show(form) if made is None else self.redirect_after_creation(made, form.cleaned_data["plan_only"])

    def form(self, data: Any) -> OperationForm:
        return self.make_form(self.form_class, data)

    def make_form(self, form_class: type[OperationForm], data: Any = None, **options: Any) -> OperationForm:
        return form_class(None, data, may_start=self.may_start, **options)

    @property
    def may_start(self) -> bool:
        return self.may("plans.start_actionplan")

    def show(self, form: OperationForm) -> HttpResponse:
        return render(self.request, self.template_name, {"form": form, **self.page_context()})

    def page_context(self) -> dict[str, Any]:
        """Return the context of the page other than the form."""
        return {}

    def try_to_create(self, form: OperationForm) -> Operation | None:
        """Create the object that the form describes, or add the refusal to the form and return None."""
        try:
            project = form.inputs.get("project_id", "")
            trust = trust_of(self.request, project)
            options = RequestOptions(self.caller(project), form.cleaned_data["plan_only"], trust=trust)
            return self.create(form.inputs, options)
        except Refused as refusal:
            self.record_problem(refusal, form.inputs["name"])
            form.add_refusal(translate_message(str(refusal)))
            return None

    def caller(self, project: str) -> CallingContext:
        return caller_of(self.request)

    @abstractmethod
    def create(self, inputs: dict[str, Any], options: RequestOptions) -> Operation:
        """Create the object by a plan. Raises: `Refused`."""

    @abstractmethod
    def redirect_after_creation(self, made: Operation, plan_only: bool) -> HttpResponse:
        """Return a redirect to the page that shows the progress."""
