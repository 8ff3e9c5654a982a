"""``manage.py actions``: list, show, skip and restore actions."""

from abc import abstractmethod
from collections.abc import Collection
from typing import Any

from django.core.management import CommandParser
from django.db import transaction

from actions.api.actions import ActionView
from actions.models import Action
from actions.models.refusals import WrongActionState
from actions.operations.signals import signal_action
from actions.operations.skipping import restore_action, restore_actions, skip_action, skip_actions
from watcher_site.console.naming import add_names
from watcher_site.processes import commands
from watcher_site.refusals import Conflict, Invalid
from watcher_site.terminal.groups import CommandGroup, ListObjects, Operation, ShowObject, Subcommand
from watcher_site.terminal.resources import Filter, Resource


class ActionsOperation(Subcommand):
    """An operation on one or several actions of a plan. If it is refused for one action, it affects none.

    ``participle`` is its description in refusals.
    """

    participle: str

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_object(parser, "objects", nargs="+")
        self.add_format(parser, default=None)
        commands.add_person(parser)

    @transaction.atomic
    def handle(self, **options: Any) -> None:
        actions_by_key = {action.pk: action for action in map(self.resource.find, options["objects"])}
        actions = list(actions_by_key.values())
        if len({action.action_plan_id for action in actions}) > 1:
            raise Invalid("action: the actions must be of one action plan.")
        try:
            self.apply(actions, options)
        except WrongActionState as problem:
            action = problem.action
            raise Conflict(
                f"action {action.uuid} ({action.called}) is {action.state}, and cannot be {self.participle}."
            ) from problem
        if not options["format"]:
            found = Action.objects.in_bulk(list(actions_by_key))
            changed = [found[key] for key in actions_by_key]
            known = {uuid: name for action in changed for uuid, name in action.known_names.items()}
            messages = add_names([action.status_message or "" for action in changed], known)
            for action, message in zip(changed, messages, strict=True):
                end = f": {message}" if message else ""
                self.group.stdout.write(f"action {action.uuid} ({action.called}): {action.state}{end}")
        else:
            rows = [self.resource.row(action) for action in actions]
            self.printer(options).print_list([rows], self.resource.columns, is_chosen=False)

    @abstractmethod
    def apply(self, actions: list[Action], options: dict[str, Any]) -> None:
        """Change the actions, or raise `Refused` or `TransitionNotAllowed`."""


class Skip(ActionsOperation):
    name, help = "skip", "Skip actions of a plan that has not begun."
    participle = "skipped"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--reason", help="the reason, which the actions and history show")

    def apply(self, actions: list[Action], options: dict[str, Any]) -> None:
        if len(actions) == 1:
            skip_action(actions[0].uuid, options["person"], options["reason"])
        else:
            uuids = [action.uuid for action in actions]
            skip_actions(actions[0].action_plan, uuids, options["person"], options["reason"])


class Restore(ActionsOperation):
    name, help = "restore", "Restore skipped actions of a plan that has not begun."
    participle = "restored"

    def apply(self, actions: list[Action], options: dict[str, Any]) -> None:
        if len(actions) == 1:
            restore_action(actions[0].uuid)
        else:
            restore_actions(actions[0].action_plan, [action.uuid for action in actions])


class Cancel(Operation):
    name, help = "cancel", "Cancel an action of a plan that runs."
    question = "Cancel the {title} {name}?"
    signal = Action.Signal.CANCEL

    def apply(self, record: Action, **options: Any) -> None:
        signal_action(record.uuid, self.signal, options["person"])

    def name_of(self, record: Any) -> str:
        return f"{record.uuid} ({record.called})"

    def outcome(self, record: Any) -> str:
        return f"{super().outcome(record)}{f', {record.control} pending' if record.control else ''}"


class Suspend(Cancel):
    name, help = "suspend", "Suspend a running action."
    question = ""
    signal = Action.Signal.SUSPEND


class Resume(Cancel):
    name, help = "resume", "Resume a suspended action."
    question = ""
    signal = Action.Signal.RESUME


def find_action_titles(uuids: Collection[Any]) -> dict[str, str]:
    """Return the action type and the object of each action, such as "migrate web-1", in one query."""
    return {str(action.uuid): action.called for action in Action.objects.filter(uuid__in=uuids)}


class Command(CommandGroup):
    help = "List, show, skip, restore, cancel, suspend and resume actions."
    resource = Resource(
        "action",
        ActionView,
        ("uuid", "title", "state", "action_plan_uuid", "status_message"),
        filters={
            "action_plan_uuid": Filter("--plan", "actions of this plan: its UUID or short UUID", "plans.ActionPlan"),
            "audit_uuid": Filter("--audit", "actions of this audit: its name, UUID or short UUID", "audits.Audit"),
            "action": Filter("--type", "actions of this type"),
        },
        find_titles=find_action_titles,
    )
    subcommands = [ListObjects, ShowObject, Skip, Restore, Suspend, Resume, Cancel]
