"""The form of a new audit: its goal and strategy, a field for each parameter of the strategy's schema, its times."""

from collections.abc import Mapping
from typing import Any, cast

from django import forms

from audits.models import NAME_LENGTH, Audit, Goal, Strategy
from audits.parameter_fields import PREFIX, field_for
from audits.schedule import INTERVAL_LENGTH

# Choosing one of these asks the server for the fields that follow from it.
REDRAW = {"hx-include": "closest form", "hx-target": "#choices", "hx-swap": "innerHTML"}


TYPES = {
    Audit.Type.ONESHOT: "Once, now",
    Audit.Type.CONTINUOUS: "Again and again",
    Audit.Type.EVENT: "Whenever its webhook is called",
}
TIMES = ("interval", "start_time", "end_time")


class ByDisplayName(forms.ModelChoiceField):
    def label_from_instance(self, record: Any) -> str:
        return record.display_name


def moment_field(label: str, help_text: str) -> forms.DateTimeField:
    picker = forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, help_text=help_text, required=False, widget=picker)


class AuditForm(forms.Form):
    """Goals and strategies by name; ``parameters`` of the cleaned data is what the strategy's fields hold."""

    goal = ByDisplayName(Goal.objects.none(), to_field_name="name", empty_label="Choose what to achieve")
    strategy = ByDisplayName(
        Strategy.objects.none(),
        to_field_name="name",
        required=False,
        empty_label="Left to the decision engine",
    )
    audit_type = forms.ChoiceField(choices=list(TYPES.items()), required=False, label="It looks at the cloud")
    interval = forms.CharField(
        max_length=INTERVAL_LENGTH,
        help_text="In seconds, such as 3600, or a cron expression in UTC, such as 30 2 * * mon-fri or @hourly.",
    )
    start_time = moment_field("Start, in UTC", "Left empty, it starts at once.")
    end_time = moment_field("End, in UTC", "Left empty, it goes on until you cancel it.")
    name = forms.CharField(
        max_length=NAME_LENGTH, required=False, help_text="Left empty, it is named after its strategy and the time."
    )
    auto_trigger = forms.BooleanField(
        required=False, label="Start the plan by itself", help_text="Nobody reviews it then, and nothing is skipped."
    )
    force = forms.BooleanField(
        required=False,
        label="Run even while an action plan is running",
        help_text="Otherwise the audit is cancelled then.",
    )

    def __init__(self, *arguments: Any, url: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        goals = Goal.objects.present().order_by("display_name")
        strategies = Strategy.objects.present().filter(goal=self.chosen("goal", goals)).order_by("display_name")
        self.offer("goal", goals, url)
        self.offer("strategy", strategies, url)
        strategy = self.chosen("strategy", strategies)
        self.fields |= parameter_fields(strategy.parameters_spec if strategy else {})
        self.fields["audit_type"].widget.attrs |= REDRAW | {"hx-get": url}
        if self.value_of("audit_type") != Audit.Type.CONTINUOUS:
            for name in TIMES:
                del self.fields[name]

    def offer(self, name: str, records: Any, url: str) -> None:
        field = cast(forms.ModelChoiceField, self.fields[name])
        field.queryset = records
        field.widget.attrs |= REDRAW | {"hx-get": url}

    def chosen(self, name: str, records: Any) -> Any:
        value = self.value_of(name)
        return records.filter(name=value).first() if value and "\x00" not in value else None

    def value_of(self, name: str) -> Any:
        return (self.data if self.is_bound else self.initial).get(name)

    def choices(self) -> list[forms.BoundField]:
        """Return the fields that follow from the goal and the type: the strategy, its parameters, and the times."""
        names = ["strategy", *(name for name in self.fields if name.startswith(PREFIX)), *TIMES]
        return [self[name] for name in names if name in self.fields]

    def clean_audit_type(self) -> str:
        return self.cleaned_data["audit_type"] or Audit.Type.ONESHOT

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        values = {name.removeprefix(PREFIX): value for name, value in cleaned.items() if name.startswith(PREFIX)}
        return {**cleaned, "parameters": {name: value for name, value in values.items() if value not in (None, "")}}


def parameter_fields(schema: Mapping[str, Any]) -> dict[str, forms.Field]:
    required = schema.get("required", [])
    # What must be filled in comes first.
    rules = sorted(schema.get("properties", {}).items(), key=lambda named: (named[0] not in required, named[0]))
    return {f"{PREFIX}{name}": field_for(name, rule, name in required) for name, rule in rules}
