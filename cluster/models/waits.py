"""The servers that wait for capacity, since when, and the time of the next search for each."""

from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models

from cluster.models.compute import Server

# The pause after the first search, in seconds; it doubles with each further one.
FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(minutes=15)


class ServerWaitQuerySet(models.QuerySet["ServerWait"]):
    def current(self) -> Self:
        """Return the waits of servers that are PENDING now, the oldest first."""
        return self.filter(server__in=Server.objects.waiting().order_by()).order_by("since", "pk")

    def note(self, now: datetime) -> None:
        """Add rows for servers that have begun to wait, and delete those of servers that no longer do: three queries.

        The row of a server that is being built stays, as the server waits again if that fails.
        """
        unbuilt = [Server.State.PENDING, Server.State.BUILDING]
        self.exclude(server__in=Server.objects.present().filter(state__in=unbuilt).order_by()).delete()
        new = Server.objects.waiting().filter(wait=None).order_by("created_at", "pk").values_list("pk", flat=True)
        self.bulk_create([self.model(server_id=key, since=now) for key in new], ignore_conflicts=True)


class ServerWait(models.Model):
    """The wait of one server for capacity: one row a server, kept until the server runs, fails or is deleted."""

    server = models.OneToOneField(Server, models.CASCADE, related_name="wait")
    since = models.DateTimeField()
    searches = models.PositiveIntegerField(default=0, db_default=0, help_text="how often a place was searched for it")
    next_search = models.DateTimeField(
        null=True, help_text="before which none is searched, unless a host has capacity"
    )
    had_host = models.BooleanField(
        default=False, db_default=False, help_text="whether a host had capacity for it at the last search"
    )

    objects = ServerWaitQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.server_id} since {self.since}"

    def search(self, now: datetime) -> None:
        """Count a search that begins now, and set the time of the next one.

        The pause grows each time, up to a limit."""
        self.searches += 1
        pause = min(FIRST_PAUSE * 2 ** min(self.searches - 1, 16), LONGEST_PAUSE)
        over = self.since + settings.PENDING_TIMEOUT
        self.next_search = over if now < over < now + pause else now + pause
