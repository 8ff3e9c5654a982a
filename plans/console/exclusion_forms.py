"""The forms of an exclusion, and of a trial."""

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils import timezone

from actions.exclusions.records import attributes_of, mistakes
from actions.exclusions.targets import KINDS
from actions.models.exclusions import NAME_LENGTH, TEXT_LENGTH, Exclusion
from cluster.operations.named_records import taken
from plans.models import ActionPlan
from plans.operations.exclusion_trials import Trial, try_rule
from watcher_site import plugins
from watcher_site.windows import fields
from watcher_site.windows.fields import WindowFields, text_field
from watcher_site.windows.wall_clock import require_zone

MOST_OFFERED = 50


def names_field(label: str, form: str) -> forms.CharField:
    widget = forms.Textarea({"rows": 2, "spellcheck": "false"})
    return forms.CharField(label=label, help_text=f"One per line: {form}.", required=False, widget=widget)


class PlanField(forms.ModelChoiceField):
    """One of the newest plans, to try a rule against."""

    def __init__(self, **options: Any) -> None:
        newest = ActionPlan.objects.present().order_by("-pk")[:MOST_OFFERED].values("pk")
        plans = ActionPlan.objects.filter(pk__in=list(newest.values_list("pk", flat=True))).order_by("-pk")
        super().__init__(plans, to_field_name="uuid", empty_label="Choose a plan", required=False, **options)

    def label_from_instance(self, plan: Any) -> str:
        return f"{str(plan.uuid)[:8]}, {plan.state}, {plan.created_at:%Y-%m-%d %H:%M} UTC"


class TrialForm(forms.Form):
    """Choose the plan that a rule is tried against."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["plan"] = PlanField(label="Action plan")


class ExclusionForm(WindowFields):
    """``attributes`` of the cleaned data is what `actions.exclusions.records` takes: just what was changed."""

    name = forms.CharField(max_length=NAME_LENGTH)
    reason = forms.CharField(max_length=TEXT_LENGTH, required=False, help_text="Shown with each skipped action.")
    owner = forms.CharField(
        max_length=TEXT_LENGTH,
        required=False,
        help_text="The person or team responsible. Default: your user name.",
    )
    action_types = forms.MultipleChoiceField(
        label="Action types",
        required=False,
        help_text="None selected: all types.",
        widget=forms.CheckboxSelectMultiple,
    )
    expires_at = text_field("datetime-local", "Expires", "Leave empty for no expiry.")

    def __init__(self, *arguments: Any, exclusion: Exclusion | None = None, **options: Any) -> None:
        super().__init__(*arguments, initial=exclusion_values(exclusion) if exclusion else {"zone": "UTC"}, **options)
        self.exclusion = exclusion or Exclusion()
        field: Any = self.fields["action_types"]
        field.choices = [(name, name) for name in sorted(plugins.load("ACTION_TYPES"))]
        self.fields["opens"].help_text = "Leave empty for all hours."
        self.fields["opens"].label, self.fields["closes"].label = "From", "Until"
        self.fields["closes"].help_text = "If earlier than the start: on the next day."
        self.fields["weekdays"].label = "Start days"
        for kind, (singular, form) in KINDS.items():
            self.fields[kind] = names_field(f"{singular.capitalize()}s", form)
        self.fields["plan"] = PlanField(
            label="Action plan", help_text="Shows which of its actions the exclusion would skip."
        )

    @property
    def targets(self) -> list[Any]:
        return [self[kind] for kind in KINDS]

    @property
    def names_targets(self) -> bool:
        return any(self[kind].value() for kind in KINDS)

    def clean(self) -> None:
        """Report all mistakes at once, as saving the rule would stop at the first."""
        # No owner is the person who saves it.
        said = {name: value for name, value in self.attributes().items() if (name, value) != ("owner", "")}
        for mistake in mistakes(self.exclusion, said, timezone.now()):
            self.blame(mistake)
        if self.errors and "name" in said and self.is_taken(said["name"]):
            self.blame(str(taken(Exclusion(name=said["name"]))))

    def is_taken(self, name: str) -> bool:
        namesakes = Exclusion.objects.present().filter(name__iexact=name)
        return namesakes.exclude(pk=self.exclusion.pk).exists()

    def attributes(self) -> dict[str, Any]:
        """Return what was typed as the API has it, as far as it was changed and the fields can hold it."""
        cleaned = self.cleaned_data
        changed = set(self.changed_data) & cleaned.keys()
        wanted: dict[str, Any] = {name: cleaned[name] for name in ("name", "reason", "owner") if name in changed}
        if "action_types" in changed:
            wanted["action_types"] = cleaned["action_types"]
        if changed & KINDS.keys():
            wanted["targets"] = {kind: named for kind in KINDS if (named := lines(cleaned.get(kind, "")))}
        if "zone" in cleaned and changed & {"zone", "opens", "closes", "weekdays", "first_day", "last_day"}:
            wanted |= {"zone": cleaned["zone"], "window": self.window_of(cleaned)}
        # Another zone makes another moment of the same time.
        if "expires_at" in changed or ("zone" in changed and cleaned.get("expires_at")):
            wanted["expires_at"] = cleaned.get("expires_at") or None
        return wanted

    def blame(self, refusal: str) -> None:
        super().blame(refusal.removeprefix("targets."))

    def trial_of(self, exclusion: Exclusion) -> Trial | None:
        """Return what the rule that is described would exclude; None, where no plan was chosen."""
        plan = self.cleaned_data.get("plan")
        if plan is None:
            self.add_error("plan", "Choose a plan to test against.")
            return None
        return try_rule(exclusion, plan)


def lines(text: str) -> list[str]:
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def exclusion_values(exclusion: Exclusion) -> Mapping[str, Any]:
    """Return what the fields show of a rule."""
    said = attributes_of(exclusion)
    expires = exclusion.expires_at and exclusion.expires_at.astimezone(ZoneInfo(require_zone(exclusion.zone)))
    return {
        **{name: said[name] for name in ("name", "reason", "owner", "action_types")},
        **{kind: "\n".join(exclusion.targets.get(kind, [])) for kind in KINDS},
        **fields.held(exclusion.window, exclusion.zone),
        "expires_at": f"{expires:%Y-%m-%dT%H:%M}" if expires else None,
    }
