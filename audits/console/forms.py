"""The form of a new audit, with a field for each parameter in the schema of the strategy."""

from collections.abc import Container, Iterable, Mapping
from typing import Any, cast

from django import forms
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext_lazy as _

from audits.console.fields import AGGREGATES, EXCLUDED_NODES, FORMATS, ZONES, scope_fields, scope_of
from audits.models import NAME_LENGTH, Audit, Goal, Strategy
from audits.models.schedule import INTERVAL_LENGTH
from watcher_site.console.columns import with_zone
from watcher_site.console.schema_fields import RowsWidget, fields_for, is_parameter, parameters_of
from watcher_site.messages import Text
from watcher_site.plugins import load

# A change of these fields requests the dependent fields, by POST, because the form may be longer than a URL.
REDRAW = {"hx-include": "closest form", "hx-target": "#choices", "hx-swap": "innerHTML"}


TYPES = {
    Audit.Type.ONESHOT: _("One-shot: once, now"),
    Audit.Type.CONTINUOUS: _("Continuous: at intervals"),
    Audit.Type.EVENT: _("Event: on each call of its webhook"),
}
TIMES = ("interval", "start_time", "end_time")


class ByDisplayName(forms.ModelChoiceField):
    def label_from_instance(self, record: Any) -> str:
        return record.display_name


class GoalSelect(forms.Select):
    """A select of goals, in which goals without an installed strategy are disabled."""

    achievable: Container[str] = ()

    def create_option(self, name: str, value: Any, label: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(name, value, label, *arguments, **options)
        if value and str(value) not in self.achievable:
            option["label"] = _("%(goal)s (no strategy installed)") % {"goal": label}
            option["attrs"]["disabled"] = True
        return option


def moment_field(label: Text, help_text: Text) -> forms.DateTimeField:
    picker = forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, help_text=help_text, required=False, widget=picker)


class AuditForm(forms.Form):
    """The form of a new audit. ``parameters`` of the cleaned data are the values of the strategy's fields."""

    goal = ByDisplayName(
        Goal.objects.none(),
        label=_("Goal"),
        to_field_name="name",
        empty_label=_("Choose a goal"),
        error_messages={"invalid_choice": _("No strategy is installed for this goal.")},
        widget=GoalSelect,
    )
    strategy = ByDisplayName(
        Strategy.objects.none(),
        label=_("Strategy"),
        to_field_name="name",
        required=False,
        empty_label=_("Chosen by the decision engine"),
        help_text=_("The algorithm that proposes the plan. Each strategy has its own parameters."),
    )
    audit_type = forms.ChoiceField(choices=list(TYPES.items()), required=False, label=_("Type"))
    interval = forms.CharField(
        label=_("Interval"),
        max_length=INTERVAL_LENGTH,
        help_text=_("In seconds, such as 3600, or a cron expression in UTC, such as 30 2 * * mon-fri or @hourly."),
    )
    start_time = moment_field(with_zone(_("Start")), _("Leave empty to start immediately."))
    end_time = moment_field(with_zone(_("End")), _("Leave empty to run until the audit is cancelled."))
    name = forms.CharField(
        label=_("Name"),
        max_length=NAME_LENGTH,
        required=False,
        help_text=_("Leave empty for a name made of the strategy and the time."),
    )
    auto_trigger = forms.BooleanField(
        required=False, label=_("Start the plan automatically"), help_text=_("The plan starts without review.")
    )
    force = forms.BooleanField(
        required=False,
        label=_("Run while a plan is running"),
        help_text=_("Otherwise the audit is cancelled if a plan is running."),
    )

    def __init__(self, *arguments: Any, url: str = "", drawn: QueryDict | None = None, **options: Any) -> None:
        """``drawn`` has the values of the parameters' fields if the form is rendered again with the same strategy."""
        super().__init__(*arguments, **options)
        self.redraw = REDRAW | {"hx-post": url}
        goals = Goal.objects.present().order_by("display_name")
        self.offer_goals(goals)
        strategies = self.offer_strategies(self.selected_record("goal", goals))
        strategy = self.selected_record("strategy", strategies) or self.single_strategy(strategies)
        self.add_parameters(strategy.parameters_spec if strategy else {})
        if drawn is not None:
            self.restore_parameters(drawn)
        self.fields |= scope_fields()
        self.fields["audit_type"].widget.attrs |= self.redraw
        if self.value_of("audit_type") != Audit.Type.CONTINUOUS:
            for name in TIMES:
                del self.fields[name]

    def offer_goals(self, goals: Any) -> None:
        """Offer the goals that have a strategy. The others are shown disabled."""
        achievable = goals.filter(strategies__deleted_at=None, strategies__isnull=False).distinct()
        field = cast(forms.ModelChoiceField, self.fields["goal"])
        field.queryset = goals
        select = cast(GoalSelect, field.widget)
        select.achievable = set(achievable.values_list("name", flat=True))
        select.attrs |= self.redraw

    def offer_strategies(self, goal: Any) -> list[Strategy]:
        """Offer the strategies of the goal. If there is only one, it is selected."""
        strategies = Strategy.objects.present().filter(goal=goal).order_by("display_name")
        field = cast(forms.ModelChoiceField, self.fields["strategy"])
        field.queryset = strategies
        field.widget.attrs |= self.redraw
        offered = list(strategies) if goal else []
        if only := self.single_strategy(offered):
            field.empty_label = None
            self.initial["strategy"] = only.name
        elif not offered:
            field.empty_label = _("Choose a goal first")
        elif first := first_installed(offered):
            field.required = requires_parameters(first)
            default = _("Default: %(strategy)s") % {"strategy": first.display_name}
            field.empty_label = _("Choose a strategy") if field.required else default
        return offered

    @staticmethod
    def single_strategy(strategies: list[Strategy]) -> Strategy | None:
        return strategies[0] if len(strategies) == 1 else None

    def add_parameters(self, schema: Mapping[str, Any]) -> None:
        for name, field in fields_for(schema, formats=FORMATS).items():
            self.fields[name] = field
            if isinstance(field.widget, RowsWidget):
                field.widget.redraw = self.redraw

    def restore_parameters(self, drawn: QueryDict) -> None:
        """Set the initial values to the sent ones. An unchecked check box is not sent, so defaults do not apply."""
        for name in filter(is_parameter, self.fields):
            field = self.fields[name]
            sent = field.widget.value_from_datadict(drawn, MultiValueDict(), name)
            self.initial[name] = field.bound_data(sent, field.initial)

    def selected_record(self, name: str, records: Iterable[Any]) -> Any:
        value = self.value_of(name)
        return next((record for record in records if record.name == value), None)

    def value_of(self, name: str) -> Any:
        return (self.data if self.is_bound else self.initial).get(name)

    def choices(self) -> list[forms.BoundField]:
        """Return the fields that depend on the goal and the type: the strategy, its parameters, and the times."""
        names = ["strategy", *filter(is_parameter, self.fields), *TIMES]
        return [self[name] for name in names if name in self.fields]

    def choices_made(self) -> dict[str, str]:
        """Return the values on which other fields depend, as initial values of the form."""
        return {name: value for name in ("goal", "strategy", "audit_type") if (value := self.value_of(name))}

    def clean_audit_type(self) -> str:
        return self.cleaned_data["audit_type"] or Audit.Type.ONESHOT

    def scope(self) -> list[forms.BoundField]:
        return [self[name] for name in (ZONES, AGGREGATES, EXCLUDED_NODES) if name in self.fields]

    def has_scope_values(self) -> bool:
        """Return whether any field of the scope has a value."""
        return any(field.value() for field in self.scope())

    def clean_goal(self) -> Goal:
        goal: Goal = self.cleaned_data["goal"]
        field = cast(forms.ModelChoiceField, self.fields["goal"])
        if goal.name not in cast(GoalSelect, field.widget).achievable:
            raise forms.ValidationError(field.error_messages["invalid_choice"])
        return goal

    def clean_strategy(self) -> Strategy | None:
        offered: Any = cast(forms.ModelChoiceField, self.fields["strategy"]).queryset
        strategy: Strategy | None = self.cleaned_data["strategy"] or self.single_strategy(list(offered))
        return strategy

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        return {**cleaned, "parameters": parameters_of(cleaned), "scope": scope_of(cleaned)}


def first_installed(strategies: list[Strategy]) -> Strategy | None:
    """Return the strategy that a decision engine selects by default."""
    names = list(load("STRATEGIES"))
    installed = [strategy for strategy in strategies if strategy.name in names]
    return min(installed, key=lambda strategy: names.index(strategy.name), default=None)


def requires_parameters(strategy: Strategy) -> bool:
    """Return whether the strategy has required parameters without defaults."""
    schema = strategy.parameters_spec
    rules = schema.get("properties", {})
    return any("default" not in rules.get(name, {}) for name in schema.get("required", []))
