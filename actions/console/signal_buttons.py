"""The console's buttons that suspend, resume or cancel an action, and the signals that an action allows."""

from typing import Any, ClassVar

from django.urls import reverse

from actions.console.descriptions import since
from actions.models import Action
from actions.models.refusals import PERMISSIONS, Operation, is_allowed
from actions.operations.signals import signal_action
from watcher_site.console.pages import Verb
from watcher_site.refusals import Conflict
from watcher_site.templatetags.console import short

Signal = Action.Signal


def allowed_signals(action: Action, user: Any = None) -> list[Action.Signal]:
    """Return the signals that an action allows now, and that this user may give, CANCEL last."""
    order = (Signal.SUSPEND, Signal.RESUME, Signal.CANCEL)
    return [signal for signal in order if is_allowed(Operation(signal), action, user)]


class SignalVerb(Verb):
    """A button on the action's own page, or beside it on its plan's."""

    model = Action
    history_event = "action.signal"
    permission_required = PERMISSIONS[Operation.CANCEL]
    signal: ClassVar[Action.Signal]
    notice: ClassVar[str]

    def where_to(self, record: Action, done: bool) -> str:
        if self.request.POST.get("page") != "plan":
            return reverse("actions:detail", args=[record.uuid])
        return f"{reverse('plans:detail', args=[record.action_plan.uuid])}#action-{short(record.uuid)}"

    def perform(self, record: Action) -> str:
        try:
            action = signal_action(record.uuid, self.signal, self.request.user.get_username())
        except Conflict as refusal:
            current: Action = self.get_object()
            raise Conflict(
                f"Not done ({self.verb}): {current.called} is {current.state}, {since(current)}."
            ) from refusal
        return "Cancelled." if action.state == Action.State.CANCELLED else self.notice


class Suspend(SignalVerb):
    signal = Signal.SUSPEND
    verb = "suspend the action"
    notice = "It waits at its next checkpoint, until somebody resumes it."


class Resume(SignalVerb):
    signal = Signal.RESUME
    verb = "resume the action"
    notice = "It goes on."


class Cancel(SignalVerb):
    signal = Signal.CANCEL
    verb = "cancel the action"
    question = "Cancel this action?"
    possible_in = frozenset({Action.State.PENDING, *Action.BEGUN})
    consequence = (
        "If it runs, it is aborted at its next checkpoint. The rest of its plan goes on, unless the plan says that a"
        " failure stops what depends on it, and ends CANCELLED; a new plan can do what was cancelled."
        " A cancel cannot be taken back; a skip can, until the plan begins."
    )
    notice = "It is aborted at its next checkpoint."
