"""The forms for operations on clusters and nodes."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from cluster.models import Cluster, Policy, Profile
from cluster.models.clusters import MAX_PRIORITY, NAME_LENGTH, UNLIMITED
from cluster.policies.sizes import MAX_NODES, AdjustmentType
from plans.operations.base import has_unfinished_operation
from watcher_site.accounts.projects import PROJECT_LENGTH
from watcher_site.messages import Text

RECOVERY_WORDS = {
    "": _("by the health policy, else replace"),
    "REBOOT": _("reboot the server"),
    "REBUILD": _("rebuild the server in place"),
    "RECREATE": _("replace the server"),
}
ADJUSTMENT_WORDS = {
    AdjustmentType.EXACT_CAPACITY.value: _("exact number of nodes"),
    AdjustmentType.CHANGE_IN_CAPACITY.value: _("number of nodes to add, or to remove if negative"),
    AdjustmentType.CHANGE_IN_PERCENTAGE.value: _("percentage of nodes to add, or to remove if negative"),
}


class OperationForm(forms.Form):
    """A form whose ``inputs`` are the arguments of an operation, without empty fields."""

    plan_only = forms.BooleanField(
        required=False,
        label=_("Plan only"),
        help_text=_("Create the action plan for review, without starting it."),
    )

    def __init__(self, record: Any, *arguments: Any, may_start: bool = True, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.record = record
        # The last field of each form.
        self.order_fields([*(name for name in self.fields if name != "plan_only"), "plan_only"])
        if not may_start:
            self.fields["plan_only"].disabled = True
            self.initial["plan_only"] = True

    @property
    def inputs(self) -> dict[str, Any]:
        given = {name: value for name, value in self.cleaned_data.items() if name != "plan_only"}
        return {name: value for name, value in given.items() if value not in (None, "")}

    def add_refusal(self, refusal: str) -> None:
        """Add a refusal to the field that it begins with, or to the form."""
        name, _, text = refusal.partition(": ")
        if name in self.fields:
            self.add_error(name, text[:1].upper() + text[1:])
        else:
            self.add_error(None, refusal)


def size_field(label: Text, help_text: Text = "", least: int = 0, *, required: bool = False) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, help_text=help_text, required=required, min_value=least, max_value=MAX_NODES
    )


class ByName(forms.ModelChoiceField):
    """A choice of records, whose values are UUIDs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(None, to_field_name="uuid", **options)

    def clean(self, value: Any) -> Any:
        found = super().clean(value)
        return found and str(found.uuid)


class NewClusterForm(OperationForm):
    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH)
    profile = ByName(label=_("Profile"), empty_label=_("Choose a profile"))
    desired_capacity = size_field(_("Nodes"), _("The initial number of nodes. Leave empty for the minimum size."))
    min_size = size_field(_("Minimum size"), _("With fewer ACTIVE nodes, the cluster is in ERROR."))
    max_size = size_field(_("Maximum size"), _("-1 or empty: no limit."), UNLIMITED)
    timeout = forms.IntegerField(
        required=False,
        min_value=0,
        label=_("Timeout (seconds)"),
        help_text=_("For the cluster's actions. 0: the site's default."),
    )
    project_id = forms.CharField(
        max_length=PROJECT_LENGTH,
        required=False,
        label=_("Project"),
        help_text=_("The project that owns the cluster and its servers."),
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["profile"].queryset = Profile.objects.present().order_by("name")  # type: ignore[attr-defined]


class ChangeForm(OperationForm):
    """A form with the current values. Only changed values are requested."""

    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH)
    profile = ByName(
        label=_("Profile"), empty_label=None, help_text=_("A new profile also changes the servers of the nodes.")
    )
    timeout = forms.IntegerField(
        label=_("Timeout (seconds)"),
        min_value=0,
        help_text=_("For the cluster's actions. 0: the site's default."),
    )

    def __init__(self, record: Cluster, *arguments: Any, **options: Any) -> None:
        held = {"name": record.name, "profile": record.profile.uuid, "timeout": record.timeout}
        super().__init__(record, *arguments, initial=held, **options)
        self.fields["profile"].queryset = Profile.objects.present().order_by("name")  # type: ignore[attr-defined]

    @property
    def inputs(self) -> dict[str, Any]:
        changes = {name: value for name, value in super().inputs.items() if name in self.changed_data}
        return {"changes": changes}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors and not set(self.changed_data) - {"plan_only"}:
            raise forms.ValidationError(_("No changes."))
        return cleaned


class ScaleForm(OperationForm):
    count = size_field(_("Nodes"), _("Leave empty for the number in the scaling policy; without one, 1."), 1)


class ResizeForm(OperationForm):
    adjustment_type = forms.ChoiceField(
        label=_("Adjustment"),
        choices=[("", _("no change")), *ADJUSTMENT_WORDS.items()],
        required=False,
    )
    number = forms.FloatField(
        required=False, label=_("Number"), help_text=_("The number of nodes, or the percentage.")
    )
    min_size = size_field(_("Minimum size"), _("Leave empty to keep the current value."))
    max_size = size_field(_("Maximum size"), _("-1: no limit. Leave empty to keep the current value."), UNLIMITED)
    min_step = size_field(_("Minimum step"), _("The least number of nodes to add or remove by a percentage."), 1)
    at_best = forms.BooleanField(
        required=False,
        label=_("Adjust to the bounds"),
        help_text=_("Otherwise a size outside the minimum and maximum is refused."),
    )

    @property
    def inputs(self) -> dict[str, Any]:
        given = super().inputs
        return given | {"strict": not given.pop("at_best")}


class RecoverForm(OperationForm):
    operation = forms.ChoiceField(
        label=_("Operation"),
        choices=list(RECOVERY_WORDS.items()),
        required=False,
    )
    check = forms.BooleanField(required=False, label=_("Check the servers first"))


class RecoverClusterForm(RecoverForm):
    check_capacity = forms.BooleanField(required=False, label=_("Also create missing nodes"))


class DeleteForm(OperationForm):
    """The deletion of a cluster. It must be confirmed if it has nodes or a running operation."""

    force = forms.BooleanField(label=_("Confirm: the nodes and their servers are also deleted"))

    def __init__(self, record: Cluster, *arguments: Any, **options: Any) -> None:
        super().__init__(record, *arguments, **options)
        if has_unfinished_operation(record):
            self.fields["force"].label = _(
                "Confirm: the operations in progress are cancelled, then the cluster is deleted with its nodes and"
                " their servers"
            )
        elif not record.members().exists():
            del self.fields["force"]


class AttachForm(OperationForm):
    policy = ByName(label=_("Policy"), empty_label=_("Choose a policy"))
    priority = forms.IntegerField(
        label=_("Priority"),
        required=False,
        min_value=0,
        max_value=MAX_PRIORITY,
        help_text=_("Policies are applied from the lowest number up. Leave empty for the default of the type."),
    )

    def __init__(self, record: Cluster, *arguments: Any, **options: Any) -> None:
        super().__init__(record, *arguments, **options)
        others = Policy.objects.present().exclude(bindings__in=record.policy_bindings.filter(deleted_at=None))
        self.fields["policy"].queryset = others.order_by("name")  # type: ignore[attr-defined]
