"""Sessions of Keystone users, which store the user and the encrypted tokens, because these users have no account.

A session ends with its token. Every five minutes the token is validated: the session ends if it was revoked or the
user was disabled, and otherwise gets the current roles. While Keystone does not respond, it continues unchanged.
"""

from functools import partial
from time import time
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.middleware import AuthenticationMiddleware, get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.middleware.csrf import rotate_token
from django.utils.functional import SimpleLazyObject

from watcher_site.keystone.login import Granted, KeystoneUnavailable, LoginFailed, Scope, read_token
from watcher_site.keystone.users import KeystoneUser
from watcher_site.refusals import Invalid
from watcher_site.request_context import seal, unseal
from watcher_site.web.middleware import KEYSTONE_KEY as KEY

# The seconds for which a token is considered valid before Keystone is queried again.
CHECK_SECONDS = 300


class SessionAuthentication(AuthenticationMiddleware):
    """Django's authentication middleware, extended by Keystone users."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(partial(get_session_user, request))  # type: ignore[assignment]


def get_session_user(request: Any) -> Any:
    """Return the account or Keystone user of a session, or an anonymous user."""
    session = request.session
    if SESSION_KEY in session or KEY not in session:
        return get_user(request)
    user = find_keystone_user(session)
    if user is None:
        session.flush()
        return AnonymousUser()
    return user


def find_keystone_user(session: Any) -> KeystoneUser | None:
    """Return the Keystone user of a session, or None if the token is no longer valid."""
    stored, now = session[KEY], time()
    if not settings.KEYSTONE_URL or stored["expires_at"] <= now:
        return None
    user = KeystoneUser(**{**stored["user"], "roles": frozenset(stored["user"]["roles"])})
    if now - stored["checked_at"] < CHECK_SECONDS:
        return user
    try:
        user = read_token(tokens_of(session)["scoped"]).user
    except (Invalid, LoginFailed):  # Invalid: SECRET_KEY was changed.
        return None
    except KeystoneUnavailable:
        pass  # The session continues unchanged.
    session[KEY] = {**stored, "user": user_as_json(user), "checked_at": now}
    return user


def user_as_json(user: KeystoneUser) -> dict[str, Any]:
    return {
        "user_id": user.user_id,
        "name": user.name,
        "scope": user.scope,
        "project_id": user.project_id,
        "roles": sorted(user.roles),
    }


def begin_session(request: Any, unscoped: str, granted: Granted) -> None:
    """Start a session of a Keystone user, with a new key and without the data of an earlier session.

    Args:
        unscoped: the token that is exchanged for one of another scope later.
        granted: the token that determines the rights of the session.
    """
    request.session.flush()
    request.session[KEY] = {
        "user": user_as_json(granted.user),
        "domain": granted.domain,
        "project": granted.project,
        "expires_at": granted.expires_at,
        "checked_at": time(),
        "tokens": seal({"unscoped": unscoped, "scoped": granted.token}),
    }
    request.user = granted.user
    rotate_token(request)


def tokens_of(session: Any) -> dict[str, str]:
    """Return the tokens of the session of a Keystone user.

    Raises:
        Invalid: they were encrypted with a key that is no longer in the settings.
    """
    return unseal(session[KEY]["tokens"])


def find_token(request: Any) -> str:
    """Return the token of a Keystone user's request: that of the API, or of the session.

    Raises:
        Invalid: those of the session were encrypted with a key that is no longer in the settings.
    """
    if not isinstance(request.user, KeystoneUser):
        return ""
    return request.META.get("HTTP_X_AUTH_TOKEN") or tokens_of(request.session)["scoped"]


def tokens_to_revoke(request: Any) -> list[str]:
    """Return the tokens of the session of a Keystone user, the scoped one first; none for other sessions."""
    try:
        tokens = tokens_of(request.session) if isinstance(request.user, KeystoneUser) else {}
    except Invalid:
        return []
    return [tokens["scoped"], tokens["unscoped"]] if tokens else []


def scope_in_session(request: Any) -> str:
    """Return the scope of the session as a text."""
    stored = request.session[KEY]
    user = stored["user"]
    return str(Scope(user["scope"], user["project_id"] or "", stored["project"]))
