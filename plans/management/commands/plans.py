"""``manage.py plans``: list, show, approve, start, cancel and continue action plans."""

import sys
from collections.abc import Collection
from typing import Any

from django.core.management import CommandParser
from django.db.models import Q, QuerySet

from actions.api.actions import known
from actions.models import Action
from actions.models.naming import resource
from plans.api.action_plans import ActionPlanView
from plans.api.preflight import foreseen_action_row, preflight_summary
from plans.applier.foreground import Display, follow_plan
from plans.management.commands import preflight_plan, schedule_plan
from plans.models import ActionPlan
from plans.operations.approval import approve_plan, withdraw_approval
from plans.operations.signals import restored_plans, signal_plan, suspend_restored_plans
from plans.planning.continuation import continue_plan
from plans.planning.scheduling import schedule
from plans.preflight import Prospect
from plans.preflight_storage import find_result, read_prospects, store_result
from watcher_site.api.serializers import Row
from watcher_site.console.naming import name_objects_plainly
from watcher_site.processes import commands
from watcher_site.processes.command_line import OUT_OF_ORDER
from watcher_site.refusals import Conflict, Invalid
from watcher_site.state_machine import TransitionNotAllowed
from watcher_site.terminal.groups import (
    CommandGroup,
    ListObjects,
    Operation,
    ShowObject,
    Subcommand,
    add_confirmation,
    require_confirmation,
)
from watcher_site.terminal.output import CSV, JSON, TABLE, decode, to_json
from watcher_site.terminal.resources import Filter, Resource

State = ActionPlan.State


class PlanListing(ActionPlanView):
    """The list of the API, with a filter by state."""

    filters = ["state", *ActionPlanView.filters]
    repeatable = frozenset({"state"})
    filter_schemas = {"state": {"enum": State.values}}

    def filter_state(self, queryset: QuerySet[Any], values: list[str]) -> QuerySet[Any]:
        return queryset.filter(state__in=known("state", [value.upper() for value in values], State.values))


class PlanOperation(Operation):
    def name_of(self, record: Any) -> str:
        return f"{record.uuid} ({record.called})" if record.called else str(record.uuid)

    def outcome(self, record: Any) -> str:
        suspended = ", suspended" if record.is_suspended else ""
        return f"action plan {self.name_of(record)}: {record.state}{suspended}"


class Start(PlanOperation):
    name, help = "start", "Start a plan: an applier executes its actions, and changes the cloud."
    question = "Start the {title} {name}?"

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--wait",
            action="store_true",
            help="show its progress until it ends; the exit status is 1 unless it SUCCEEDED",
        )
        parser.add_argument("--timeout", type=read_seconds, metavar="SECONDS", help="stop waiting after this time")

    def apply(self, record: ActionPlan, **options: Any) -> None:
        try:
            record.launch(commands.caller(options["person"]))
        except TransitionNotAllowed as problem:
            raise Conflict(f"action plan {record.uuid} is {record.state}, so it cannot be started.") from problem

    def handle(self, **options: Any) -> str | None:
        if options["timeout"] is not None and not options["wait"]:
            raise Invalid("--timeout: is for --wait only.")
        printed = super().handle(**options)
        if not options["wait"]:
            return printed
        if printed:
            self.group.stdout.write(printed)
        # With a format, the output is for another program: progress goes to standard error.
        stream = self.group.stderr if options["format"] else self.group.stdout
        stream.style_func = None
        ended = follow_plan(self.resource.find(options["object"]), Display(stream), options["timeout"])
        if ended.state != State.SUCCEEDED:
            sys.exit(OUT_OF_ORDER)
        return None


class Cancel(PlanOperation):
    name, help = "cancel", "Cancel a plan: no further action of it begins, and running ones are aborted."
    question = "Cancel the {title} {name}?"
    signal = Action.Signal.CANCEL

    def apply(self, record: ActionPlan, **options: Any) -> None:
        signal_plan(record, self.signal, options["person"])


class Suspend(Cancel):
    name, help = "suspend", "Suspend a plan: no further action of it begins until it is resumed."
    question = ""
    signal = Action.Signal.SUSPEND


class Resume(Cancel):
    name, help = "resume", "Resume a suspended plan, and its suspended actions."
    question = ""
    signal = Action.Signal.RESUME
    has_effect = True

    def apply(self, record: ActionPlan, **options: Any) -> None:
        actions = record.actions.present()
        suspended = actions.filter(Q(state=Action.State.SUSPENDED) | Q(control=Action.Signal.SUSPEND))
        self.has_effect = record.is_suspended or suspended.exists()
        super().apply(record, **options)

    def outcome(self, record: Any) -> str:
        return super().outcome(record) + ("" if self.has_effect else ", was not suspended")


class SuspendRestored(Subcommand):
    name = "suspend-restored"
    help = (
        "Suspend all plans that are PENDING or ONGOING after the database was restored from a backup, because actions"
        " that ran after the backup would be executed again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_confirmation(parser)
        self.add_format(parser, default=None)
        commands.add_person(parser)

    def handle(self, **options: Any) -> str | None:
        if not options["yes"] and (number := restored_plans().count()):
            require_confirmation(f"Suspend {plans_in_words(number)}?", confirmed=False)
        suspended = suspend_restored_plans(options["person"])
        if not options["format"]:
            return f"{plans_in_words(len(suspended))} suspended"
        rows = self.resource.rows(plan.pk for plan in suspended)
        self.printer(options).print_list([rows], self.resource.columns, is_chosen=False)
        return None


def plans_in_words(number: int) -> str:
    return f"{number} action plan{'' if number == 1 else 's'}"


class Continue(PlanOperation):
    name = "continue"
    help = "Propose a plan of the actions that failed or were cancelled in a FAILED or CANCELLED one."

    def apply(self, record: ActionPlan, **options: Any) -> ActionPlan:
        return continue_plan(record)


class Approve(PlanOperation):
    name, help = "approve", "Approve the start of a plan by other users, with WATCHER_PLAN_APPROVAL."

    def apply(self, record: ActionPlan, **options: Any) -> None:
        approve_plan(record, options["person"])

    def outcome(self, record: Any) -> str:
        return f"{super().outcome(record)}, approved by {record.approved_by}"


class WithdrawApproval(PlanOperation):
    name, help = "withdraw-approval", "Withdraw the approval of a plan that was not started."

    def apply(self, record: ActionPlan, **options: Any) -> None:
        withdraw_approval(record)

    def outcome(self, record: Any) -> str:
        return f"{super().outcome(record)}, not approved"


class Schedule(PlanOperation):
    name, help = "schedule", "Set the time or the maintenance window in which a plan begins."

    def add_options(self, parser: CommandParser) -> None:
        schedule_plan.add_hours(parser)

    def apply(self, record: ActionPlan, **options: Any) -> ActionPlan:
        with schedule_plan.refusals_by_option():
            return schedule(record, schedule_plan.schedule_changes(options))

    def outcome(self, record: Any) -> str:
        return schedule_plan.outcome(record)


class Preflight(Subcommand):
    name = "preflight"
    help = (
        "Show which actions of a plan would be skipped or fail if it began now, without executing any. Exit status: "
        "0: all would succeed, 1: an action would not succeed, 3: not all outcomes can be predicted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_object(parser)
        self.add_format(parser)

    def handle(self, **options: Any) -> None:
        found = find_result(self.resource.find(options["object"]), details=True)
        store_result(found)
        prospects = read_prospects(found.select())
        rows = [foreseen_action_row(prospect) for prospect in prospects]
        if options["format"] == JSON:
            (answer,) = decode([{**preflight_summary(found), "actions": rows}])
            self.group.stdout.write(to_json(answer))
        else:
            fields = ("uuid", "outcome", "action_type", "target", "status_message")
            if options["format"] == TABLE:
                rows = [row | shown_texts(prospect) for row, prospect in zip(rows, prospects, strict=True)]
            if rows or options["format"] == CSV:
                self.printer(options).print_list([rows], fields, is_chosen=False)
            # CSV output contains rows only.
            stream = self.group.stderr if options["format"] == CSV else self.group.stdout
            stream.write(preflight_plan.summary(found), str)
        if status := preflight_plan.exit_status({str(row["outcome"]) for row in rows}):
            sys.exit(status)


def shown_texts(prospect: Prospect) -> Row:
    """Return the texts of a foreseen action that have names in place of UUIDs in tables, as in the console."""
    action = prospect.action
    return {
        "target": resource(action.input_parameters) or action.target,
        "status_message": name_objects_plainly(prospect.predicted_message, action.known_names),
    }


def read_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def find_plan_titles(uuids: Collection[Any]) -> dict[str, str]:
    """Return the names of the audits or of the requested operations of plans, in one query."""
    return {str(plan.uuid): plan.called for plan in ActionPlan.objects.filter(uuid__in=uuids).with_names()}


class Command(CommandGroup):
    help = "List, show, approve, start, cancel and continue action plans."
    resource = Resource(
        "action plan",
        PlanListing,
        ("uuid", "title", "state", "strategy_name", "created_at", "status_message"),
        filters={"audit_uuid": Filter("--audit", "plans of this audit: its name, UUID or short UUID", "audits.Audit")},
        named_by=None,
        find_titles=find_plan_titles,
    )
    subcommands = [
        *(ListObjects, ShowObject, Preflight, Approve, WithdrawApproval),
        *(Schedule, Start, Suspend, SuspendRestored, Resume, Cancel, Continue),
    ]
