"""The pages that compare two action plans or two audits: their parameters, efficacy and actions."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.core.paginator import Page as Part
from django.core.paginator import Paginator
from django.db.models import Case, CharField, Count, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Concat
from django.utils.translation import gettext_lazy as _
from django.views.generic import TemplateView

from actions.models import Action
from actions.models.naming import resource
from audits.console.fields import describe_interval, describe_scope
from audits.models import Audit
from plans.models import ActionPlan, EfficacyIndicator
from watcher_site.console.pages import Page
from watcher_site.database.records import parse_uuid
from watcher_site.history.reading import value_in_words
from watcher_site.messages import Text
from watcher_site.templatetags.console import clock, efficacy_value, humanize_name
from watcher_site.templatetags.names import brief, plan_name, short
from watcher_site.windows.durations import describe_duration

ACTIONS_PER_PAGE = 100
# The number of the newest records in the form. In the list, any two records can be chosen.
OFFERED = 50
BOTH, FIRST, SECOND = "both", "first", "second"


@dataclass(frozen=True)
class Fact:
    """One property of both sides."""

    label: Text
    first: Any
    second: Any
    unit: str = ""

    @property
    def texts(self) -> tuple[str, str]:
        """The values as they are shown, in the words of the pages of single records."""
        return self.show(self.first), self.show(self.second)

    def show(self, value: Any) -> str:
        if value is None or value == "":
            return "—"
        return efficacy_value(value, self.unit) if isinstance(value, int | float) else str(value)

    @property
    def differs(self) -> bool:
        return bool(self.first != self.second)


@dataclass(frozen=True)
class ActionPair:
    """An action of one plan, and the action of the other plan of the same type and target, if any."""

    action_type: str
    resource: str
    first: Action | None
    second: Action | None


class Comparison(Page, TemplateView):
    """Compares the two records in the parameter ``compare``; without exactly two, shows a form to choose them."""

    model: ClassVar[Any]
    template_name = "comparisons/comparison.html"
    heading: ClassVar[Text]
    list_name: ClassVar[str]

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        uuids = list(dict.fromkeys(filter(None, map(parse_uuid, self.request.GET.getlist("compare")))))
        records_by_uuid = {record.uuid: record for record in self.get_records().filter(uuid__in=uuids[:3])}
        records = [records_by_uuid[uuid] for uuid in uuids if uuid in records_by_uuid]
        if len(records) != 2:
            newest = self.get_records().order_by("-pk")[:OFFERED]
            return super().get_context_data(chosen=records[:1], number=len(uuids), offered=newest, **context)
        return super().get_context_data(
            pair=records, names=distinct_names(*records), **self.compare(*records), **context
        )

    @abstractmethod
    def get_records(self) -> QuerySet[Any]:
        """Return the records that can be compared."""

    @abstractmethod
    def compare(self, first: Any, second: Any) -> dict[str, Any]:
        """Return the context of the comparison of two records."""

    def compare_plans(self, first: ActionPlan, second: ActionPlan) -> dict[str, Any]:
        """Return the efficacy and the actions of two plans, with five queries."""
        only = self.request.GET.get("only", "")
        actions = with_place(first, second)
        listed = actions.filter(place=only) if only in {BOTH, FIRST, SECOND} else actions
        part = Paginator(listed, ACTIONS_PER_PAGE).get_page(self.request.GET.get("page"))
        return {
            "efficacy": compare_efficacy(first, second),
            "types": count_types(actions),
            "only": only,
            "part": part,
            "actions": pair_up(part, first, second),
        }


class PlanComparison(Comparison):
    model = ActionPlan
    permission_required = ("plans.view_actionplan", "actions.view_action")
    heading = _("Compare action plans")
    list_name = "plans:list"

    def get_records(self) -> QuerySet[ActionPlan]:
        plans = ActionPlan.objects.present().with_operation().with_progress()
        return plans.select_related("audit__goal", "audit__strategy", "strategy")

    def compare(self, first: ActionPlan, second: ActionPlan) -> dict[str, Any]:
        facts = pair_facts(facts_of_plan(first), facts_of_plan(second))
        audits = [plan.audit for plan in (first, second)] if self.may("audits.view_audit") else [None, None]
        audit_facts = pair_facts(*(facts_of_audit(audit) if audit else {} for audit in audits))
        return {
            "facts": facts,
            "audit_facts": audit_facts,
            "plans": [first, second],
            **self.compare_plans(first, second),
        }


class AuditComparison(Comparison):
    """Two audits, with the newest plan of each."""

    model = Audit
    permission_required = "audits.view_audit"
    heading = _("Compare audits")
    list_name = "audits:list"

    def get_records(self) -> QuerySet[Audit]:
        return Audit.objects.present().select_related("goal", "strategy")

    def compare(self, first: Audit, second: Audit) -> dict[str, Any]:
        facts = pair_facts(facts_of_audit(first), facts_of_audit(second))
        if not (self.may("plans.view_actionplan") and self.may("actions.view_action")):
            return {"facts": facts}
        proposed = ActionPlan.objects.present().with_names().order_by("-pk")
        newest = [proposed.filter(audit=audit).first() for audit in (first, second)]
        plans = [plan for plan in newest if plan is not None]
        compared = self.compare_plans(*plans) if len(plans) == 2 else {}
        return {"facts": facts, "plans": plans, **compared}


def distinct_names(first: Any, second: Any) -> list[str]:
    """Return the names of both records, with the beginnings of their UUIDs if they are equal."""
    names = [brief(one.name) if isinstance(one, Audit) else plan_name(one) for one in (first, second)]
    return names if names[0] != names[1] else [f"{names[0]} {short(one.uuid)}" for one in (first, second)]


def facts_of_plan(plan: Any) -> dict[Text, Any]:
    duration = plan.start_time and plan.end_time and plan.end_time - plan.start_time
    return {
        _("State"): plan.state,
        _("Operation"): plan.operation or "",
        _("Audit"): plan.audit and brief(plan.audit.name),
        _("Strategy"): plan.strategy and plan.strategy.display_name,
        _("Actions"): plan.total_actions,
        _("Skipped actions"): plan.skipped_actions,
        _("On failure"): (
            _("dependent actions do not run")
            if plan.on_failure == ActionPlan.OnFailure.STOP
            else _("dependent actions run")
        ),
        _("Created"): clock(plan.created_at),
        _("Duration"): duration and describe_duration(duration),
    }


def facts_of_audit(audit: Audit) -> dict[Text, Any]:
    facts: dict[Text, Any] = {
        _("Type"): audit.audit_type,
        _("State"): audit.state,
        _("Goal"): audit.goal.display_name,
        _("Strategy"): audit.strategy and audit.strategy.display_name,
        _("Interval"): describe_interval(audit),
        _("Scope"): ", ".join(describe_scope(audit.scope)) or _("entire cloud"),
        _("Starts its plan automatically"): value_in_words(audit.auto_trigger),
        _("Runs while a plan is running"): value_in_words(audit.force),
    }
    parameters = {
        f"{_('Parameter')} {name}": value_in_words(value) for name, value in sorted(audit.parameters.items())
    }
    return facts | parameters


def pair_facts(first: Mapping[Text, Any], second: Mapping[Text, Any]) -> list[Fact]:
    """Return the facts of both sides, without facts that are empty on both."""
    facts = [Fact(label, first.get(label), second.get(label)) for label in {**first, **second}]
    return [fact for fact in facts if fact.first or fact.second]


def compare_efficacy(first: ActionPlan, second: ActionPlan) -> list[Fact]:
    """Return the global efficacy and the indicators of both plans, in one query."""
    sides: dict[int, dict[tuple[str, str], float]] = {
        plan.pk: {(entry["name"], entry.get("unit") or ""): entry["value"] for entry in plan.global_efficacy}
        for plan in (first, second)
    }
    for indicator in EfficacyIndicator.objects.filter(action_plan__in=sides):
        sides[indicator.action_plan_id][indicator.name, indicator.unit or ""] = indicator.value
    own, other = sides[first.pk], sides[second.pk]
    facts = [Fact(humanize_name(key[0]), own.get(key), other.get(key), key[1]) for key in {**own, **other}]
    return [fact for fact in facts if fact.first or fact.second]


def with_place(first: ActionPlan, second: ActionPlan) -> QuerySet[Any]:
    """Return the actions of both plans, with their ``place``: in both, or in one. Common actions are listed once.

    An action is in both plans if the other has one of the same type with the same target, or also without one. The
    conditions are subqueries without references to the outer row, which the database evaluates once.
    """
    present = Action.objects.present().annotate(
        same=Concat("action_type", Value("\n"), Coalesce("target", Value("")), output_field=CharField())
    )
    first_actions, second_actions = (present.filter(action_plan=plan).values("same") for plan in (first, second))
    rows = present.filter(Q(action_plan=first) | Q(action_plan=second) & ~Q(same__in=first_actions))
    place = Case(
        When(action_plan=second, then=Value(SECOND)),
        When(same__in=second_actions, then=Value(BOTH)),
        default=Value(FIRST),
        output_field=CharField(),
    )
    return rows.annotate(place=place).order_by("target", "action_type", "pk")


def count_types(actions: QuerySet[Any]) -> list[dict[str, Any]]:
    """Return the number of actions of each type in both plans, and in only one of them."""
    counts = {place: Count("pk", filter=Q(place=place)) for place in (BOTH, FIRST, SECOND)}
    rows = actions.order_by().values("action_type").annotate(**counts)
    return list(rows.order_by("action_type"))


def pair_up(part: Part, first: ActionPlan, second: ActionPlan) -> list[ActionPair]:
    """Return the actions of a page with their counterparts in the second plan, with one query."""
    rows: list[Any] = list(part)
    shared = [action for action in rows if action.place == BOTH]
    same = Q(target__in={action.target for action in shared if action.target is not None})
    if any(action.target is None for action in shared):
        same |= Q(target=None)
    counterparts = second.actions.present().filter(same, action_type__in={action.action_type for action in shared})
    # Actions of a type without targets are not distinguished, so that the first ones suffice.
    twins: dict[tuple[str, str | None], Action] = {}
    for action in counterparts.order_by("pk")[: 10 * ACTIONS_PER_PAGE]:
        twins.setdefault((action.action_type, action.target), action)
    return [
        ActionPair(
            action.action_type,
            resource(action.input_parameters),
            action if action.action_plan_id == first.pk else None,
            action if action.action_plan_id == second.pk else twins.get((action.action_type, action.target)),
        )
        for action in rows
    ]
