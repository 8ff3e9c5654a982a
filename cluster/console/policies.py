"""The console's pages of policies."""

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views import View

from cluster.console.filters import PolicyFilters
from cluster.console.profiles import MemberList
from cluster.console.tables import PolicyTable
from cluster.models import Policy
from cluster.models.clusters import NAME_LENGTH
from cluster.operations.policies import create_policy, delete_policy
from watcher_site import plugins
from watcher_site.console.pages import RecordPage, Verb
from watcher_site.console.resumable_forms import KeepsForm
from watcher_site.refusals import Refused


class PolicyList(MemberList):
    model = Policy
    permission_required = "cluster.view_policy"
    table_class = PolicyTable
    filterset_class = PolicyFilters
    template_name = "cluster/policy_list.html"
    heading = "Policies"
    guidance = "No policies yet. Policies control how clusters scale, place their nodes and recover."

    def get_queryset(self) -> QuerySet[Policy]:
        having = Count("bindings", filter=Q(bindings__deleted_at=None))
        return Policy.objects.present().annotate(cluster_count=having)


class PolicyPage(RecordPage):
    """One policy: what it says, and which clusters have it."""

    model = Policy
    permission_required = "cluster.view_policy"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        policy_type = plugins.load("POLICY_TYPES").get(self.object.type)
        spec = policy_type(self.object.spec).spec if policy_type else self.object.spec
        bindings = self.object.bindings.present().select_related("cluster").order_by("cluster__name", "pk")
        return super().get_context_data(
            about=policy_type and policy_type.description,
            spec=json.dumps(spec, indent=2),
            bindings=bindings,
            **context,
        )


class PolicyForm(forms.Form):
    name = forms.CharField(max_length=NAME_LENGTH)
    type = forms.ChoiceField(label="Type")
    spec = forms.JSONField(
        label="Properties",
        required=False,
        initial=dict,
        help_text="A JSON object. Omitted properties have their defaults. The schemas of all types are below.",
        widget=forms.Textarea({"rows": 10, "spellcheck": "false", "class": "font-monospace"}),
        error_messages={"invalid": "Enter valid JSON."},
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        types = plugins.load("POLICY_TYPES").values()
        field: Any = self.fields["type"]
        about = [(one.name, f"{one.name}: {one.description}") for one in types]
        field.choices = [("", "Choose a type"), *about]


class NewPolicy(KeepsForm, View):
    permission_required = "cluster.add_policy"
    history_event = "policy.create"
    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show(PolicyForm(self.kept()))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = PolicyForm(request.POST)
        made = self.make(form) if form.is_valid() else None
        if made is None:
            return self.show(form)
        messages.success(request, "Policy created. Attach it to clusters to apply it.")
        return redirect("cluster:policy", uuid=made.uuid)

    def make(self, form: PolicyForm) -> Policy | None:
        """Make the policy that the form describes, or put why not beside the form."""
        wanted = form.cleaned_data
        try:
            return create_policy(wanted["name"], wanted["type"], wanted["spec"])
        except Refused as refusal:
            self.note(refusal, wanted["name"])
            name, _, words = str(refusal).partition(": ")
            form.add_error(name if name in form.fields else None, words if name in form.fields else str(refusal))
            return None

    def show(self, form: PolicyForm) -> HttpResponse:
        installed = plugins.load("POLICY_TYPES").values()
        types = [(one.name, one.description, json.dumps(one.schema, indent=2)) for one in installed]
        return render(self.request, "cluster/policy_form.html", {"form": form, "types": types})


class DeletePolicy(Verb):
    model = Policy
    permission_required = "cluster.delete_policy"
    verb = "delete the policy"
    question = "Delete this policy?"
    consequence = "Only a policy that is not attached to a cluster can be deleted."

    def perform(self, record: Policy) -> str:
        delete_policy(record)
        return f"Deleted policy {record}."

    def where_to(self, record: Policy, done: bool) -> str:
        return reverse("cluster:policies") if done else reverse("cluster:policy", args=[record.uuid])
