"""The forms of exclusions and of their tests."""

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from actions.exclusions import targets
from actions.exclusions.matching import find_affected
from actions.exclusions.records import attributes_of, find_mistakes
from actions.exclusions.targets import CLUSTERS, COMPUTE_NODES, KINDS, SERVERS
from actions.models import Action
from actions.models.exclusions import NAME_LENGTH, TEXT_LENGTH, Exclusion
from cluster.operations.named_records import refuse_name
from plans.models import ActionPlan
from plans.operations.exclusion_trials import Trial, try_rule
from watcher_site import plugins
from watcher_site.messages import Text, translate_message
from watcher_site.templatetags.console import clock
from watcher_site.templatetags.names import plan_name, short, visible
from watcher_site.windows import fields
from watcher_site.windows.fields import WindowFields, text_field
from watcher_site.windows.wall_clock import require_zone

MOST_OFFERED = 50
LABELS = {
    targets.SERVERS: _("Servers"),
    targets.COMPUTE_NODES: _("Compute nodes"),
    targets.AGGREGATES: _("Aggregates"),
    targets.ZONES: _("Availability zones"),
    targets.PROJECTS: _("Projects"),
    targets.CLUSTERS: _("Clusters"),
}
MOST_PROPOSED = 50
"""The largest number of actions in a URL, whose length is limited by servers."""
PROPOSED_KINDS = (SERVERS, CLUSTERS, COMPUTE_NODES)


def names_field(label: Text, form: Text) -> forms.CharField:
    widget = forms.Textarea({"rows": 2, "spellcheck": "false"})
    return forms.CharField(
        label=label, help_text=_("One per line: %(form)s.") % {"form": form}, required=False, widget=widget
    )


class PlanField(forms.ModelChoiceField):
    """A choice of the newest plans, for a test of a rule."""

    def __init__(self, **options: Any) -> None:
        newest = ActionPlan.objects.present().order_by("-pk")[:MOST_OFFERED].values("pk")
        plans = (
            ActionPlan.objects.with_names().filter(pk__in=list(newest.values_list("pk", flat=True))).order_by("-pk")
        )
        super().__init__(plans, to_field_name="uuid", empty_label=_("Choose a plan"), required=False, **options)

    def label_from_instance(self, plan: Any) -> str:
        return f"{visible(plan_name(plan))} ({short(plan.uuid)}), {plan.state}, {clock(plan.created_at)}"


class TrialForm(forms.Form):
    """A form for the plan on which a rule is tested."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["plan"] = PlanField(label=_("Action plan"))


class ExclusionForm(WindowFields):
    """The form of an exclusion. ``attributes`` are the changed attributes, for `actions.exclusions.records`."""

    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH)
    reason = forms.CharField(
        label=_("Reason"), max_length=TEXT_LENGTH, required=False, help_text=_("Shown with each skipped action.")
    )
    owner = forms.CharField(
        label=_("Owner"),
        max_length=TEXT_LENGTH,
        required=False,
        help_text=_("The person or team responsible. Default: your user name."),
    )
    action_types = forms.MultipleChoiceField(
        label=_("Action types"),
        required=False,
        help_text=_("None selected: all types."),
        widget=forms.CheckboxSelectMultiple,
    )
    every_action = forms.BooleanField(
        label=_("Exclude all actions of all plans"),
        required=False,
        help_text=_("Must be confirmed if neither types nor targets are selected."),
    )
    expires_at = text_field("datetime-local", _("Expires"), _("Leave empty for no expiry."))

    def __init__(
        self,
        *arguments: Any,
        exclusion: Exclusion | None = None,
        proposed: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        initial = (
            exclusion_values(exclusion)
            if exclusion
            else {"zone": timezone.get_current_timezone_name(), **(proposed or {})}
        )
        super().__init__(*arguments, initial=initial, **options)
        self.exclusion = exclusion or Exclusion()
        includes_all = exclusion is not None and not (exclusion.action_types or exclusion.targets)
        self.initial.setdefault("every_action", includes_all)
        field: Any = self.fields["action_types"]
        field.choices = [(name, name) for name in sorted(plugins.load("ACTION_TYPES"))]
        self.fields["opens"].help_text = _("Leave empty for all hours.")
        self.fields["opens"].label, self.fields["closes"].label = _("From"), _("Until")
        self.fields["closes"].help_text = _("If earlier than the start: on the next day.")
        self.fields["weekdays"].label = _("Start days")
        for kind, (_singular, form) in KINDS.items():
            self.fields[kind] = names_field(LABELS[kind], gettext(form))
        self.fields["plan"] = PlanField(
            label=_("Action plan"), help_text=_("Shows which of its actions the exclusion would skip.")
        )

    @property
    def targets(self) -> list[Any]:
        return [self[kind] for kind in KINDS]

    @property
    def names_targets(self) -> bool:
        return any(self[kind].value() for kind in KINDS)

    def clean(self) -> None:
        """Report all errors, because saving the rule would stop at the first."""
        # Without an owner, the user who saves the rule becomes its owner.
        said = {name: value for name, value in self.attributes().items() if (name, value) != ("owner", "")}
        for mistake in find_mistakes(self.exclusion, said, timezone.now()):
            self.add_refusal(translate_message(mistake))
        if self.errors and "name" in said and self.is_taken(said["name"]):
            self.add_refusal(translate_message(str(refuse_name(Exclusion(name=said["name"])))))
        selected = any(self.cleaned_data.get(name) for name in ("action_types", *KINDS))
        is_complete = selected or self.cleaned_data.get("every_action") or "try" in self.data
        if not (is_complete or self.errors):
            self.add_error(
                "every_action", _("Select action types or targets, or confirm that all actions are excluded.")
            )

    def is_taken(self, name: str) -> bool:
        namesakes = Exclusion.objects.present().filter(name__iexact=name)
        return namesakes.exclude(pk=self.exclusion.pk).exists()

    def attributes(self) -> dict[str, Any]:
        """Return the changed values of valid fields, in the format of the API."""
        cleaned = self.cleaned_data
        changed = set(self.changed_data) & cleaned.keys()
        wanted: dict[str, Any] = {name: cleaned[name] for name in ("name", "reason", "owner") if name in changed}
        if "action_types" in changed:
            wanted["action_types"] = cleaned["action_types"]
        if changed & KINDS.keys():
            wanted["targets"] = {kind: named for kind in KINDS if (named := lines(cleaned.get(kind, "")))}
        if "zone" in cleaned and changed & {"zone", "opens", "closes", "weekdays", "first_day", "last_day"}:
            wanted |= {"zone": cleaned["zone"], "window": self.window_of(cleaned)}
        # In another time zone, the same local time is another time.
        if "expires_at" in changed or ("zone" in changed and cleaned.get("expires_at")):
            wanted["expires_at"] = cleaned.get("expires_at") or None
        return wanted

    def add_refusal(self, refusal: str) -> None:
        super().add_refusal(refusal.removeprefix("targets."))

    def trial_of(self, exclusion: Exclusion) -> Trial | None:
        """Return the result of a test of a rule on the chosen plan; None, with an error, if no plan was chosen."""
        plan = self.cleaned_data.get("plan")
        if plan is None:
            self.add_error("plan", _("Choose a plan to test against."))
            return None
        return try_rule(exclusion, plan)


def values_excluding(actions: Sequence[Action]) -> dict[str, Any]:
    """Return values of the form for a rule that excludes these actions: types, targets and reason.

    The targets are the servers that the actions affect, or the clusters or compute nodes of actions without a server.
    """
    reasons = {action.reason for action in actions}
    values: dict[str, Any] = {"action_types": sorted({action.action_type for action in actions})}
    if len(reasons) == 1:
        values["reason"] = reasons.pop()
    touched = find_affected(actions, PROPOSED_KINDS).values()
    # A rule only matches actions that affect a target of each of its kinds.
    kind = next((kind for kind in PROPOSED_KINDS if touched and all(found.get(kind) for found in touched)), None)
    if kind:
        values[kind] = "\n".join(dict.fromkeys(identifier for found in touched for identifier in found[kind]))
    return values


def lines(text: str) -> list[str]:
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def exclusion_values(exclusion: Exclusion) -> Mapping[str, Any]:
    """Return the values of the fields for a rule."""
    said = attributes_of(exclusion)
    expires = exclusion.expires_at and exclusion.expires_at.astimezone(ZoneInfo(require_zone(exclusion.zone)))
    return {
        **{name: said[name] for name in ("name", "reason", "owner", "action_types")},
        **{kind: "\n".join(exclusion.targets.get(kind, [])) for kind in KINDS},
        **fields.window_values(exclusion.window, exclusion.zone),
        "expires_at": f"{expires:%Y-%m-%dT%H:%M}" if expires else None,
    }
