"""Limits on password guesses, and on the processor time of their verification.

Failed logins are counted in a table that all web processes share: per client address and account, and per client
address. At a limit, passwords are no longer verified until the window of time has passed. The limit of an account
applies only at the address that guesses its password, so that the owner is not locked out elsewhere.

A verification takes a large part of a second of processor time by design. Each process verifies one password at a
time, and at most half of its threads wait for their turn, so that the other threads continue to serve requests.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, IPv6Network
from math import ceil
from threading import BoundedSemaphore, Lock
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_noop

from watcher_site.accounts import messages
from watcher_site.history.recording import REFUSED, record
from watcher_site.messages import StoredMessage
from watcher_site.models import FailedLogins
from watcher_site.refusals import Refused
from watcher_site.request_context import CallingContext
from watcher_site.web.middleware import parse_address

# An IPv6 client can choose the remaining bits of its address.
IPV6_PREFIX = 64
MOST_SUMMARIES = 100
FAILED_LOGINS_RESET = StoredMessage(gettext_noop("Failed logins were reset: the account can log in again."))


class LoginsLimited(Refused):
    """There were too many failed logins."""

    status = 429

    def __init__(self, until: datetime) -> None:
        self.retry_after = max(1, ceil((until - timezone.now()).total_seconds()))
        super().__init__(messages.LOGINS_LIMITED.fill(duration=format_duration(self.retry_after)))


class LoginsBusy(Refused):
    """Too many passwords are being verified."""

    status = 503
    retry_after = 1

    def __init__(self) -> None:
        super().__init__(messages.LOGINS_BUSY.text)


def format_duration(seconds: float) -> str:
    number, unit = (ceil(seconds / 60), "minute") if seconds >= 60 else (ceil(seconds), "second")
    return f"{number} {unit}{'' if number == 1 else 's'}"


def limited_address(address: str) -> str:
    """Return the address for counting failed logins: the network of an IPv6 address, or the IPv4 address."""
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Network((parsed, IPV6_PREFIX), strict=False))
    return str(parsed or address)


@dataclass(frozen=True)
class Login:
    """An attempt to log in with a name and a password."""

    address: str
    name: str

    @property
    def keys(self) -> dict[str, int]:
        """Return the keys of the counts of the attempt with their limits, the one of the address first."""
        return {
            digest(self.address): settings.MOST_FAILED_LOGINS_OF_ADDRESS,
            digest(f"{self.address}\n{self.name}"): settings.MOST_FAILED_LOGINS,
        }

    def require_allowed(self) -> None:
        """Count the attempt and raise `LoginsLimited` if a limit is reached."""
        counts = FailedLogins.objects.filter(key__in=self.keys, began_at__gt=window_start(), number__gte=F("most"))
        if beyond := list(counts):
            for count in beyond:
                FailedLogins.objects.filter(pk=count.pk).update(number=F("number") + 1)
            raise LoginsLimited(max(end_of(count) for count in beyond))

    def record_failure(self) -> None:
        """Count a failed login, and record it in history if it is the last one before a limit."""
        record_summaries()
        account = get_user_model().objects.filter(username=self.name).values_list("username", flat=True).first()
        with transaction.atomic():
            for (key, most), name in zip(self.keys.items(), ("", account or ""), strict=True):
                values = {"address": self.address, "name": name, "most": most, "began_at": timezone.now()}
                count, _ = FailedLogins.objects.select_for_update().get_or_create(key=key, defaults=values)
                count.number += 1
                count.save(update_fields=["number"])
                if count.number == most:
                    record_count(count, until=end_of(count))

    def record_success(self) -> None:
        """Delete the count of failed logins of this account at the address, but not the count of the address."""
        *_, key = self.keys
        FailedLogins.objects.filter(key=key).delete()


def digest(text: str) -> str:
    return salted_hmac("watcher_site.login_limits", text, algorithm="sha256").hexdigest()


def window_start() -> datetime:
    return timezone.now() - settings.FAILED_LOGIN_WINDOW


def end_of(count: FailedLogins) -> datetime:
    return count.began_at + settings.FAILED_LOGIN_WINDOW


def login_of(request: Any, name: str | None) -> Login | None:
    """Return the login attempt of a request, or None outside of requests, where no limits apply."""
    address = request.META.get("REMOTE_ADDR", "") if request is not None else ""
    return Login(limited_address(address), name) if address and name else None


def record_summaries() -> None:
    """Record in history the failed logins beyond the limits in windows that are over, and delete their counts."""
    over = FailedLogins.objects.filter(began_at__lte=window_start())
    if not over.exists():
        return
    with transaction.atomic():
        counts = list(over.select_for_update(skip_locked=True).order_by("pk")[:MOST_SUMMARIES])
        for count in counts:
            if count.number > count.most:
                record_count(count)
        FailedLogins.objects.filter(pk__in=[count.pk for count in counts]).delete()


@transaction.atomic
def reset_failed_logins(user: Any) -> None:
    """Delete the counts of failed logins of an account, from all addresses, but not the counts of the addresses.

    History records a reset that permits logins again.
    """
    counts = list(FailedLogins.objects.select_for_update().filter(name=user.get_username()).order_by("pk"))
    FailedLogins.objects.filter(pk__in=[count.pk for count in counts]).delete()
    if number := sum(count.number for count in counts if count.number >= count.most):
        record("user.enable", user, message=FAILED_LOGINS_RESET.text, details={"failed_logins": number})


def record_count(count: FailedLogins, until: datetime | None = None) -> None:
    """Record the failed logins of a window, and until when further ones are refused."""
    passed = min(timezone.now() - count.began_at, settings.FAILED_LOGIN_WINDOW) / timedelta(seconds=1)
    summary = messages.LOGINS_OF_ACCOUNT_FAILED if count.name else messages.LOGINS_FAILED
    message = summary.fill(
        number=f"{count.number:,}",
        name=count.name,
        address=count.address,
        duration=format_duration(max(1, passed)),
    )
    if until:
        message = messages.FURTHER_LOGINS_REFUSED.fill(summary=message, time=f"{until:%H:%M:%S}")
    details = {"address": count.address, "failed_logins": count.number}
    record("user.login", count.name, caller=CallingContext(), outcome=REFUSED, message=message, details=details)


class Verifications:
    """The password verifications of this process: one at a time, with a bounded number of threads that wait."""

    def __init__(self, threads: int) -> None:
        self.places, self.lock = BoundedSemaphore(max(1, threads // 2)), Lock()

    @contextmanager
    def wait_for_turn(self) -> Iterator[None]:
        """Wait until no other thread verifies a password.

        Raises:
            LoginsBusy: too many threads wait already.
        """
        if not self.places.acquire(blocking=False):
            raise LoginsBusy
        try:
            with self.lock:
                yield
        finally:
            self.places.release()


verifications = Verifications(settings.WEB_THREADS)
