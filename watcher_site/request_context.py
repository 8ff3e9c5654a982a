"""The calling context: the user and request that caused an operation, stored encrypted for later work on their behalf.

It may contain secrets, and is encrypted with keys derived from ``SECRET_KEY`` and ``SECRET_KEY_FALLBACKS``.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import orjson
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from structlog.contextvars import bound_contextvars, get_contextvars

from watcher_site.keystone.users import KeystoneUser
from watcher_site.monitoring.tracing import tracing
from watcher_site.refusals import Invalid

PURPOSE = "watcher_site.calling"


class CallingContext(dict[str, Any]):
    """Names and values, such as ``user`` and ``request_id``. Logs and tracebacks do not show them.

    Attributes:
        identity: Keystone's id of the user, or the name of the account.
    """

    @property
    def identity(self) -> str:
        return str(self.get("user_id") or self.get("user", ""))

    def __repr__(self) -> str:
        return "<calling context>"

    __str__ = __repr__


def caller_of(request: HttpRequest | Any, project: str | None = None) -> CallingContext:
    """Return the calling context of a request of the API or the console.

    Args:
        project: the user's project to which the request applies, if it is known. A Keystone user has at most one.
    """
    user = request.user
    caller = CallingContext(user=user.get_username(), request_id=get_contextvars().get("request_id"))
    if tracing.is_on:
        caller |= tracing.context()
    if isinstance(user, KeystoneUser):
        caller["user_id"] = user.user_id
        project = user.project_id if project is None else project
    if project is not None:
        caller["project"] = project
    return caller


def current_request_id() -> str:
    """Return the id of the request that caused the work of this thread, or an empty text if none did."""
    return str(get_contextvars().get("request_id") or "")


def within_request(request_id: str) -> AbstractContextManager[None]:
    """Return a context in which log events, requests to the cloud and notifications have the id of a request."""
    return bound_contextvars(request_id=request_id) if request_id else nullcontext()


acting: ContextVar[Callable[[], CallingContext] | None] = ContextVar("acting", default=None)


@contextmanager
def on_behalf_of(find: Callable[[], CallingContext] | None) -> Iterator[None]:
    """Set the user for whom the code in the block acts; None for the work of a service itself.

    Args:
        find: returns the calling context. It is called on first use, because the sender of a request is identified
            while the request is processed.
    """
    token = acting.set(find)
    try:
        yield
    finally:
        acting.reset(token)


def current_caller() -> CallingContext | None:
    """Return the calling context of this thread, or None if no user caused its work."""
    find = acting.get()
    return find() if find else None


def seal(context: Mapping[str, Any]) -> str:
    """Encrypt a calling context for storage."""
    return cipher().encrypt(orjson.dumps(dict(context))).decode()


def unseal(text: str) -> CallingContext:
    """Decrypt a stored calling context.

    Raises:
        Invalid: it was encrypted with a key that is no longer in the settings.
    """
    try:
        return CallingContext(orjson.loads(cipher().decrypt(text)))
    except InvalidToken:
        raise Invalid(
            "The calling context cannot be read: SECRET_KEY was changed, and SECRET_KEY_FALLBACKS does not name the"
            " old key."
        ) from None


def cipher() -> MultiFernet:
    return cipher_of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(1)
def cipher_of(secrets: Sequence[str]) -> MultiFernet:
    """Return the cipher that encrypts with the first of these keys, and decrypts with any."""
    keys = [salted_hmac(PURPOSE, "", secret=secret, algorithm="sha256").digest() for secret in secrets]
    return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in keys])
