"""The texts of notifications for people: a subject and short lines, for e-mail and chat messages.

Names and messages come from users. Each is reduced to one line without invisible characters, so that it cannot add
headers or lines.
"""

from collections.abc import Iterator
from datetime import UTC
from typing import NamedTuple
from unicodedata import category

from django.conf import settings
from django.urls import reverse

from watcher_site.messages import cut
from watcher_site.notifications.deliveries import SentNotification
from watcher_site.outbox.kinds import Kind, Summary
from watcher_site.outbox.writing import kind_named
from watcher_site.validation import INVISIBLE

SUBJECT_LENGTH = 200


class NotificationText(NamedTuple):
    """The text of a notification. Without `settings.SITE_URL`, or for an object without a page, `link` is empty."""

    subject: str
    lines: list[str]
    link: str


def describe_notification(notification: SentNotification) -> NotificationText:
    kind = kind_named(notification.kind)
    summary = kind.summary(notification.snapshot)
    event = notification.event_type.removeprefix(f"{kind.name}.")
    subject = f"[Watcher] {kind.label} {summary.name}: {summary.state or event}"
    lines = [f"{label}: {make_line(value)}" for label, value in describe_fields(notification, kind, summary) if value]
    return NotificationText(cut(make_line(subject), SUBJECT_LENGTH), lines, find_link(notification, kind))


def describe_fields(notification: SentNotification, kind: Kind, summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield the label and the value of each line. Lines without a value are omitted."""
    yield "Event", f"{notification.event_type} ({notification.priority})"
    yield kind.label, summary.name
    yield "UUID", str(notification.object_uuid)
    is_changed = notification.old_state not in (None, summary.state)
    yield "State", f"{summary.state or ''}{f' (before: {notification.old_state})' if is_changed else ''}"
    yield "Time", f"{notification.created_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    yield "User", notification.person or ""
    yield "Host", notification.host
    yield "Message", (notification.fault or {}).get("exception_message") or summary.message or ""


def make_line(text: str) -> str:
    """Return a text in one line: invisible characters, such as line ends, become spaces."""
    return " ".join("".join(" " if category(one) in INVISIBLE else one for one in text).split())


def find_link(notification: SentNotification, kind: Kind) -> str:
    """Return the URL of the console page of the object, or an empty string."""
    if not (settings.SITE_URL and kind.page):
        return ""
    return f"{settings.SITE_URL}{reverse(kind.page, args=[notification.object_uuid])}"
