"""Validation of Keystone tokens by keystonemiddleware, which also caches Keystone's responses."""

import re
from collections.abc import Iterable
from functools import cache
from threading import BoundedSemaphore
from typing import Any

import structlog
from django.conf import settings
from django.core.cache import caches

from watcher_site.configuration.keystone import CACHE, make_middleware
from watcher_site.keystone.users import KeystoneUser
from watcher_site.refusals import Refused

# The format of tokens. Keystone is not queried about other texts.
TOKEN = re.compile(r"[\x21-\x7e]+")
# Tokens of the site. Keystone's tokens have other lengths and characters.
LOCAL_TOKEN = re.compile(r"[0-9a-f]{64}")
# The headers with tokens, and those in which the middleware states whether they are valid. It always overwrites these.
TOKEN_HEADERS = {
    "HTTP_X_AUTH_TOKEN": "HTTP_X_IDENTITY_STATUS",
    "HTTP_X_SERVICE_TOKEN": "HTTP_X_SERVICE_IDENTITY_STATUS",
}
VALID = "Confirmed"
CONFIRMED, REFUSED = "200 OK", "401 Unauthorized"
# In seconds: the longest wait of a request for its turn while Keystone does not respond to earlier ones.
TURN_SECONDS = 2
log = structlog.get_logger(__name__)


class BadToken(Exception):
    """A token that Keystone does not confirm, or that has no scope."""


class KeystoneLost(Refused):
    """Keystone does not respond, and the token is not cached."""

    status = 503
    retry_after = 5

    def __init__(self) -> None:
        super().__init__("Keystone does not answer, so that the token cannot be validated. Try again later.")


def confirm(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Respond 200 if the tokens of a request are valid, else 401: the application behind the middleware."""
    is_valid = all(environ.get(status) == VALID for token, status in TOKEN_HEADERS.items() if token in environ)
    start_response(CONFIRMED if is_valid else REFUSED, [])
    return ()


class ProcessCache:
    """The cache of the process, with the interface that the middleware expects in the environment of a request.

    The middleware's own cache has no limit, is scanned completely at each request, and differs between threads.
    """

    def get(self, key: str) -> Any:
        return caches["keystone"].get(key)

    def set(self, key: str, value: bytes, time: int) -> None:
        caches["keystone"].set(key, value, time)


process_cache = ProcessCache()
# The number of threads that may wait for Keystone. If it hangs, the other threads serve requests with cached tokens,
# sessions and passwords.
turns = BoundedSemaphore(max(1, settings.WEB_THREADS // 2))


@cache
def middleware(file: str) -> Any:
    """Return keystonemiddleware with the options of a file, once in each process."""
    return make_middleware(file, confirm, make_protocol())


@cache
def make_protocol() -> Any:
    """Return the class of the middleware, which checks its cache first and takes turns to query Keystone."""
    from keystonemiddleware.auth_token import AuthProtocol

    class CacheFirst(AuthProtocol):
        def process_request(self, request: Any) -> Any:
            """Validate the tokens of a request, as the base class of AuthProtocol does.

            AuthProtocol also sets the catalog and thirty other headers for the application behind it, which takes
            longer than everything else.
            """
            self._token_cache.initialize(request.environ)
            return super(AuthProtocol, self).process_request(request)

        def fetch_token(self, token: str, **options: Any) -> Any:
            """Return Keystone's data of a token.

            The middleware has no public access to its cache, and would read it only during a turn.
            """
            if cached := self._token_cache.get(token):
                return cached
            if not turns.acquire(timeout=TURN_SECONDS):
                raise KeystoneLost
            try:
                return super().fetch_token(token, **options)
            finally:
                turns.release()

    return CacheFirst


def identify_user(request: Any) -> KeystoneUser:
    """Return the user of the token in the header X-Auth-Token of a request.

    Raises:
        BadToken: the token or the service token is forged, expired, of another Keystone, or has no scope.
        KeystoneLost: Keystone does not respond.
    """
    environ = {**request.META, CACHE: process_cache}
    if not all(TOKEN.fullmatch(environ.get(name, "-")) for name in TOKEN_HEADERS):
        raise BadToken
    status = call(environ)
    if status.startswith("503"):
        raise KeystoneLost
    if status != CONFIRMED:
        raise BadToken
    user = KeystoneUser.of_token(environ["keystone.token_info"]["token"])
    if not user.scope:
        log.warning("A token without a scope was refused.", user=user.name)
        raise BadToken
    return user


def call(environ: dict[str, Any]) -> str:
    """Return the status of keystonemiddleware for a request. It adds its results to the environment."""
    from keystoneauth1.exceptions import ClientException

    statuses = []
    try:
        middleware(settings.KEYSTONE_CONFIG)(environ, lambda status, *_: statuses.append(status))
    except ClientException as problem:
        # The middleware handles refused connections and timeouts, but not TLS errors or a missing endpoint.
        log.warning("Keystone does not answer.", reason=f"{type(problem).__name__}: {problem}")
        raise KeystoneLost from problem
    except KeyError as problem:
        # It reads the catalog in the token of an application credential with access rules without a check.
        log.warning("A token with access rules needs include_service_catalog = true.", missing=str(problem))
        raise BadToken from problem
    return str(statuses[0])


def challenge() -> str:
    """Return the value of WWW-Authenticate, as keystonemiddleware formats it."""
    return f'Keystone uri="{middleware(settings.KEYSTONE_CONFIG).www_authenticate_uri}"'
