"""Console pages of policies."""

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views import View

from cluster.console.filters import PolicyFilters
from cluster.console.profiles import MemberList
from cluster.console.tables import PolicyTable
from cluster.models import Policy
from cluster.models.clusters import NAME_LENGTH
from cluster.operations.policies import count_clusters, create_policy, delete_policy
from cluster.policies.base import PolicyType
from watcher_site import plugins
from watcher_site.console.pages import OperationView, RecordPage
from watcher_site.console.resumable_forms import ResumableFormPage
from watcher_site.console.schema_fields import DocumentField, RowsWidget, fields_for, find_refused, parameters_of
from watcher_site.messages import translate_message
from watcher_site.refusals import Refused

# The empty rows of a property that is a list of objects, so that the form works without JavaScript.
EMPTY_ROWS = 4


class PolicyList(MemberList):
    model = Policy
    permission_required = "cluster.view_policy"
    table_class = PolicyTable
    filterset_class = PolicyFilters
    template_name = "cluster/policy_list.html"
    heading = _("Policies")
    help_page = "concepts#cluster"
    guidance = _("No policies yet. Policies control how clusters scale, place their nodes and recover.")

    def get_queryset(self) -> QuerySet[Policy]:
        having = Count("bindings", filter=Q(bindings__deleted_at=None))
        return Policy.objects.present().annotate(cluster_count=having).order_by("name", "pk")


class PolicyPage(RecordPage):
    """A policy with its properties and its clusters."""

    model = Policy
    permission_required = "cluster.view_policy"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        policy_type = plugins.load("POLICY_TYPES").get(self.object.type)
        spec = policy_type(self.object.spec).spec if policy_type else self.object.spec
        bindings = self.object.bindings.present().select_related("cluster").order_by("cluster__name", "pk")
        return super().get_context_data(
            about=policy_type and gettext(policy_type.description),
            spec=json.dumps(spec, indent=2),
            bindings=bindings,
            cluster_count=count_clusters(self.object),
            **context,
        )


class NewPolicyForm(forms.Form):
    """A form with the name and the type of a new policy; subclasses add the properties as ``spec``."""

    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH)
    type = forms.ChoiceField(label=_("Type"))

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        field: Any = self.fields["type"]
        field.choices = [("", _("Choose a type")), *((name, name) for name in plugins.load("POLICY_TYPES"))]

    @property
    def spec(self) -> Any:
        return self.cleaned_data["spec"]

    def add_refusal(self, refusal: str) -> None:
        """Add a refusal to the field with which it begins, or to the form."""
        name, _separator, reason = refusal.partition(": ")
        self.add_error(name if name in self.fields else None, reason if name in self.fields else refusal)


class DocumentForm(NewPolicyForm):
    """A form with the properties as one JSON document."""

    spec = DocumentField(
        label=_("Properties"),
        required=False,
        initial=dict,
        help_text=_("A JSON object. Omitted properties have their defaults. The schemas of all types are below."),
        widget=forms.Textarea({"rows": 10, "spellcheck": "false", "class": "font-monospace"}),
    )


class PropertyForm(NewPolicyForm):
    """A form with fields for the properties of one type, generated from its schema."""

    def __init__(self, policy_type: type[PolicyType], data: Any = None) -> None:
        super().__init__(data, initial={"type": policy_type.name})
        self.fields["type"].widget = forms.HiddenInput()
        for name, field in fields_for(policy_type.schema).items():
            self.fields[name] = field
            if isinstance(field.widget, RowsWidget):
                field.widget.spare = EMPTY_ROWS

    @property
    def spec(self) -> dict[str, Any]:
        """Return the properties that differ from their defaults."""
        values = self.cleaned_data
        return parameters_of({name: value for name, value in values.items() if value != self.fields[name].initial})

    def add_refusal(self, refusal: str) -> None:
        field, reason = find_refused(refusal.removeprefix("spec: "), self.fields)
        if field:
            self.add_error(field, reason[:1].upper() + reason[1:])
        else:
            super().add_refusal(refusal)


class NewPolicy(ResumableFormPage, View):
    """The creation of a policy: a choice of the type, then a form with fields, or with a JSON document on request."""

    permission_required = "cluster.add_policy"
    history_event = "policy.create"
    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        data = self.resumed_data()
        if data is not None:
            return self.show(self.form(data, data))
        if "document" in request.GET or request.GET.get("type") in plugins.load("POLICY_TYPES"):
            return self.show(self.form(request.GET))
        types = [(kind.name, gettext(kind.description)) for kind in plugins.load("POLICY_TYPES").values()]
        return render(request, "cluster/policy_types.html", {"types": types})

    def form(self, chosen: QueryDict, data: QueryDict | None = None) -> NewPolicyForm:
        """Return the form of the chosen type, or the form with a document if it is requested or sent."""
        policy_type = plugins.load("POLICY_TYPES").get(chosen.get("type", ""))
        if policy_type is None or "spec" in chosen or "document" in chosen:
            return DocumentForm(data)
        return PropertyForm(policy_type, data)

    def post(self, request: HttpRequest) -> HttpResponse:
        form = self.form(request.POST, request.POST)
        policy = self.create_or_refuse(form) if form.is_valid() else None
        if policy is None:
            return self.show(form)
        messages.success(request, _("Policy created. Attach it to clusters to apply it."))
        return redirect("cluster:policy", uuid=policy.uuid)

    def create_or_refuse(self, form: NewPolicyForm) -> Policy | None:
        """Create the policy, or add the reason of the refusal to the form and return None."""
        values = form.cleaned_data
        try:
            return create_policy(values["name"], values["type"], form.spec)
        except Refused as refusal:
            self.record_problem(refusal, values["name"])
            form.add_refusal(translate_message(str(refusal)))
            return None

    def show(self, form: NewPolicyForm) -> HttpResponse:
        installed = plugins.load("POLICY_TYPES")
        is_document = isinstance(form, DocumentForm)
        type_name = "" if is_document else form["type"].value()
        about = gettext(installed[type_name].description) if type_name else ""
        types = [
            (policy_type.name, gettext(policy_type.description), json.dumps(policy_type.schema, indent=2))
            for policy_type in installed.values()
        ]
        context = {"form": form, "types": types if is_document else [], "chosen": type_name, "about": about}
        return render(self.request, "cluster/policy_form.html", context)


class DeletePolicy(OperationView):
    model = Policy
    permission_required = "cluster.delete_policy"
    verb = _("delete the policy")
    question = _("Delete this policy?")
    consequence = _("This cannot be undone.")

    def perform(self, record: Policy) -> str:
        delete_policy(record)
        return _("Deleted policy %(name)s.") % {"name": record}

    def redirect_url(self, record: Policy, done: bool) -> str:
        return reverse("cluster:policies") if done else reverse("cluster:policy", args=[record.uuid])
