"""Starting a plan, and when it is to begin: a time, a maintenance window, or both."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from plans.planning.scheduling import schedule
from watcher_site.api.bodies import TimeTextField, WindowField, read_body, refuse_later
from watcher_site.api.versions import EXTENDED, Version, used_by
from watcher_site.refusals import WrongState
from watcher_site.request_context import caller_of
from watcher_site.state_machine import TransitionNotAllowed

SCHEDULE_FIELDS = ("start_at", "zone", "window", "opens_at", "closes_at")


class ScheduleSerializer(serializers.Serializer[Any]):
    start_at = TimeTextField(
        required=False,
        allow_null=True,
        help_text="in ISO 8601, by the clock of the zone where it names none",
    )
    zone = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="such as Europe/Berlin; UTC, if none was ever given, or it was taken back",
    )
    window = WindowField(required=False, allow_null=True)

    argument = "schedule"
    since: dict[str, Version] = dict.fromkeys(("start_at", "zone", "window"), EXTENDED)


class Scheduling:
    """The part of the view of action plans for the time at which a plan begins."""

    def start(self: Any, request: Request, identifier: str) -> Response:
        """Hand a RECOMMENDED plan to the appliers.

        From 1.12 the body, if there is one, says when it is to begin: at a time, within a maintenance window, or both.
        """
        plan = self.get_object(request, identifier)
        wishes = read_wishes(request)
        try:
            if wishes:
                schedule(plan, wishes, start=True, caller=caller_of(request))
            else:
                plan.launch(caller_of(request))
        except TransitionNotAllowed as problem:
            raise WrongState(f"Couldn't start when state is '{plan.state}'.") from problem
        return Response(self.show(plan))

    def schedule(self: Any, request: Request, identifier: str) -> Response:
        """Say when a plan is to begin, before it is started or while something of it is still to begin. From 1.12.

        What is left out stays as it is, and null takes it back. The time can be changed until the plan begins, the
        window until the plan ends. What has begun is left to finish.
        """
        self.require_version(request)
        plan = self.get_object(request, identifier)
        schedule(plan, read_body(request, ScheduleSerializer))
        return Response(self.show(plan))


def read_wishes(request: Request) -> dict[str, Any]:
    """Return when a plan that is started is to begin; nothing, where the body is left out.

    Before 1.12 a start had no body, and whatever else was sent with it did no harm.

    Raises:
        Invalid, NotAcceptableHere: as `read_body`.
    """
    if used_by(request) >= EXTENDED:
        return read_body(request, ScheduleSerializer)
    refuse_later(request, ScheduleSerializer)
    return {}
