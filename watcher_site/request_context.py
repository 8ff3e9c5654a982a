"""The calling context: the person and the request behind an operation, kept encrypted for later work on their behalf.

It may hold secrets, and is encrypted with keys that are derived from ``SECRET_KEY`` and ``SECRET_KEY_FALLBACKS``.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import orjson
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from structlog.contextvars import get_contextvars

from watcher_site.keystone.users import KeystoneUser
from watcher_site.monitoring.tracing import tracing
from watcher_site.refusals import Invalid

PURPOSE = "watcher_site.calling"


class CallingContext(dict[str, Any]):
    """Names and values, such as ``user`` and ``request_id``. No log and no traceback shows what is in it.

    Attributes:
        identity: the id that Keystone has for the person, or the name of their account.
    """

    @property
    def identity(self) -> str:
        return str(self.get("user_id") or self.get("user", ""))

    def __repr__(self) -> str:
        return "<calling context>"

    __str__ = __repr__


def caller_of(request: HttpRequest | Any, project: str | None = None) -> CallingContext:
    """Return the calling context of a request, of the API or of the console.

    Args:
        project: the one of the person's in which they ask, where that is known. A user of Keystone has at most one.
    """
    user = request.user
    request_id = get_contextvars().get("request_id")
    caller = CallingContext(user=user.get_username(), request_id=request_id)
    if tracing.is_on:
        caller |= tracing.context()
    if isinstance(user, KeystoneUser):
        caller["user_id"] = user.user_id
        project = user.project_id if project is None else project
    if project is not None:
        caller["project"] = project
    return caller


acting: ContextVar[Callable[[], CallingContext] | None] = ContextVar("acting", default=None)


@contextmanager
def on_behalf_of(find: Callable[[], CallingContext] | None) -> Iterator[None]:
    """Set the person for whom the code in the block acts; None stands for a service that acts for nobody.

    Args:
        find: returns the calling context. It is called on first use, as the sender of a request is identified
            while the request is answered.
    """
    token = acting.set(find)
    try:
        yield
    finally:
        acting.reset(token)


def current_caller() -> CallingContext | None:
    """Return the calling context of this thread, or None if no person caused its work."""
    find = acting.get()
    return find() if find else None


def seal(context: Mapping[str, Any]) -> str:
    """Return a calling context as it is stored."""
    return cipher().encrypt(orjson.dumps(dict(context))).decode()


def unseal(text: str) -> CallingContext:
    """Return the calling context that was stored so.

    Raises:
        Invalid: it was sealed with a key that is no longer known.
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
    """Return what encrypts with the first of these, and decrypts with any."""
    keys = [salted_hmac(PURPOSE, "", secret=secret, algorithm="sha256").digest() for secret in secrets]
    return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in keys])
