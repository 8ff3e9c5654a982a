"""History of logins, logouts and failed logins: receivers of Django's signals.

Requests with a password or token are not logins: only their failures are recorded. The name in a failed login is
stored only if an account has it, because users type passwords into that field.
"""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest
from django.utils.translation import gettext_noop as _

from watcher_site.history.recording import REFUSED, RateLimit, record
from watcher_site.messages import StoredMessage, translate_message
from watcher_site.web.middleware import SlidingSession

failure_limit = RateLimit(60)
AND_FURTHER = StoredMessage(_("%(reason)s Further ones of the same minute are not listed."), reason=translate_message)
WRONG_PASSWORD = StoredMessage(_("Wrong name or password."))
KEYSTONE_REFUSED_BECAUSE = StoredMessage(_("Keystone refused the login. %(reason)s"))
KEYSTONE_REFUSED = StoredMessage(_("Keystone refused the login."))
UNKNOWN_TOKEN = StoredMessage(_("The token is unknown or has expired."))


def connect_login_signals() -> None:
    user_logged_in.connect(record_login, dispatch_uid="watcher_site.history.login")
    user_logged_out.connect(record_logout, dispatch_uid="watcher_site.history.logout")
    user_login_failed.connect(record_failed_login, dispatch_uid="watcher_site.history.failure")


def record_login(sender: Any, request: HttpRequest | None, user: Any, **_: Any) -> None:
    if (session := getattr(request, "session", None)) is not None:
        SlidingSession.note(session)
    record("user.login", user, details=place_of(request))


def record_logout(sender: Any, request: HttpRequest | None, user: Any, **_: Any) -> None:
    if user is not None:
        record("user.logout", user, details=place_of(request))


def record_failed_login(sender: Any, credentials: dict[str, Any], request: Any = None, **_: Any) -> None:
    name = str(credentials.get("username") or "").replace("\0", "")
    record_refused_login(find_known_name, name, request, WRONG_PASSWORD.text)


def record_bad_token(request: Any) -> None:
    """Record the use of an unknown or expired token."""
    record_refused_login(str, "", request, UNKNOWN_TOKEN.text)


def record_refused_login(find_name: Any, name: str, request: Any, reason: str) -> None:
    place = place_of(request)
    if not failure_limit.allows((name[:150], place.get("address"), reason)):
        return
    message = AND_FURTHER.fill(reason=reason) if failure_limit.is_full else reason
    record("user.login", find_name(name), outcome=REFUSED, message=message, details=place)


def find_known_name(name: str) -> str:
    """Return the name if an account has it, else an empty text."""
    found = get_user_model().objects.filter(username=name).values_list("username", flat=True)
    return found.first() or ""


def place_of(request: Any) -> dict[str, str]:
    return {"address": request.META["REMOTE_ADDR"]} if request is not None and request.META.get("REMOTE_ADDR") else {}
