"""Windows in bodies and answers of the API."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from watcher_site.windows.maintenance import WEEKDAYS

TIME_OF_DAY = "^([01][0-9]|2[0-3]):[0-5][0-9]$"


class WindowSerializer(serializers.Serializer[Any]):
    """The OpenAPI schema of a window; `watcher_site.windows.wall_clock.read_window` parses windows."""

    opens = serializers.RegexField(TIME_OF_DAY, help_text="such as 22:00, by the clock of the zone")
    closes = serializers.RegexField(TIME_OF_DAY, help_text="on the next day, where it is not later")
    weekdays = serializers.ListField(
        child=serializers.ChoiceField(WEEKDAYS),
        required=False,
        allow_null=True,
        allow_empty=False,
        help_text="on which it opens; every day, if left out",
    )
    first_day = serializers.DateField(required=False, allow_null=True, help_text="on which it may open")
    last_day = serializers.DateField(required=False, allow_null=True, help_text="on which it may open")


@extend_schema_field(WindowSerializer(allow_null=True))
class WindowField(serializers.JSONField):
    """A window as it was sent: the code that reads it has a message for each mistake."""
