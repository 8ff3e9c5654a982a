"""Logins of users at Keystone for the console: tokens, their scopes, and their revocation.

Requests use keystoneauth without reauthentication: a user's password is used once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import structlog
from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from watcher_site.configuration.keystone import PROJECT, SYSTEM
from watcher_site.keystone import messages
from watcher_site.keystone.tokens import TURN_SECONDS, turns
from watcher_site.keystone.users import KeystoneUser
from watcher_site.refusals import Refused

# The timeout of a request to Keystone, in seconds.
TIMEOUT = 10
PASSWORD_REFUSED = messages.KEYSTONE_REFUSED_PASSWORD.text
TOKEN_REFUSED = messages.KEYSTONE_REFUSED_TOKEN.text
log = structlog.get_logger(__name__)


class LoginFailed(Refused):
    """Keystone refused a login, or the user has no rights on this site. The message is for the form."""

    status = 200


class KeystoneUnavailable(Refused):
    """Keystone does not respond."""

    status = 503
    retry_after = 5

    def __init__(self) -> None:
        super().__init__(messages.KEYSTONE_DOES_NOT_ANSWER.text)


@dataclass(frozen=True)
class Scope:
    """A scope that a token may be limited to.

    Attributes:
        kind: system or project.
        project_id: empty for the system.
    """

    kind: str
    project_id: str
    name: str

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.project_id}" if self.project_id else self.kind

    def __str__(self) -> str:
        return messages.PROJECT_SCOPE.fill(name=self.name) if self.project_id else "System"


@dataclass(frozen=True)
class Granted:
    """A token that Keystone issued, with its user and scope."""

    token: str
    user: KeystoneUser
    domain: str
    project: str
    expires_at: float

    @classmethod
    def of_access(cls, access: Any) -> Self:
        """Return the token in keystoneauth's access data."""
        scope = SYSTEM if access.system_scoped else PROJECT if access.project_id else ""
        user = KeystoneUser(
            user_id=access.user_id,
            name=access.username,
            scope=scope,
            project_id=access.project_id,
            roles=frozenset(name.lower() for name in access.role_names or ()),
        )
        domain, project = access.user_domain_name or "", access.project_name or ""
        return cls(access.auth_token, user, domain, project, access.expires.timestamp())

    def __repr__(self) -> str:
        return f"<token of {self.user}>"


@contextmanager
def keystone_session(refusal: str = TOKEN_REFUSED) -> Iterator[Any]:
    """Yield a session of keystoneauth, while this thread has one of the turns to wait for Keystone.

    Raises:
        LoginFailed: Keystone refused the request; the message is the ``refusal``.
        KeystoneUnavailable: Keystone does not respond, or too many threads wait for it.
    """
    # Their import takes half a second, which a site without Keystone avoids.
    from keystoneauth1 import exceptions
    from keystoneauth1.session import Session

    if not turns.acquire(timeout=TURN_SECONDS):
        raise KeystoneUnavailable
    try:
        yield Session(verify=settings.KEYSTONE_CAFILE or True, timeout=TIMEOUT, user_agent="watcher-site")
    except exceptions.MissingAuthMethods as problem:
        raise LoginFailed(messages.SECOND_FACTOR_REQUIRED.text) from problem
    except (exceptions.Unauthorized, exceptions.Forbidden, exceptions.BadRequest) as problem:
        raise LoginFailed(refusal) from problem
    except exceptions.ClientException as problem:
        log.warning("Keystone does not answer.", reason=f"{type(problem).__name__}: {problem}")
        raise KeystoneUnavailable from problem
    finally:
        turns.release()


@sensitive_variables("password")
def request_token(name: str, domain: str, password: str) -> Granted:
    """Return a token without scope for a name and a password.

    Raises:
        LoginFailed, KeystoneUnavailable: as `keystone_session`.
    """
    from keystoneauth1.identity.v3 import Password

    with keystone_session(PASSWORD_REFUSED) as session:
        identity = Password(
            settings.KEYSTONE_URL, username=name, user_domain_name=domain, password=password, unscoped=True
        )
        return Granted.of_access(identity.get_access(session))


@sensitive_variables("token")
def exchange_token(token: str, scope: Scope) -> Granted:
    """Return a token for the same user in a scope.

    Raises:
        LoginFailed: Keystone refused the token, or the user has no role in the scope.
        KeystoneUnavailable: as `keystone_session`.
    """
    from keystoneauth1.identity.v3 import Token

    options: dict[str, Any] = {"project_id": scope.project_id} if scope.project_id else {"system_scope": "all"}
    with keystone_session() as session:
        identity = Token(settings.KEYSTONE_URL, token=token, include_catalog=False, **options)
        return Granted.of_access(identity.get_access(session))


@sensitive_variables("token")
def find_scopes(token: str) -> list[Scope]:
    """Return the possible scopes of a token, the system first, and the projects by name.

    Raises:
        LoginFailed, KeystoneUnavailable: as `keystone_session`.
    """
    from keystoneauth1.exceptions import InternalServerError

    options: dict[str, Any] = {"headers": {"X-Auth-Token": token}, "authenticated": False}
    with keystone_session() as session:
        projects = session.get(f"{settings.KEYSTONE_URL}/auth/projects", **options).json()["projects"]
        try:
            system = session.get(f"{settings.KEYSTONE_URL}/auth/system", **options).json()["system"]
        except InternalServerError:
            # Keystone fails here for users of an identity provider that belong to groups.
            log.warning("Keystone does not say whether a user has roles in the system.")
            system = []
    found = [Scope(PROJECT, project["id"], project["name"]) for project in projects]
    found.sort(key=lambda scope: (scope.name.casefold(), scope.project_id))
    return [*([Scope(SYSTEM, "", "")] if system else []), *found]


@sensitive_variables("token")
def read_token(token: str) -> Granted:
    """Return a token with its current data in Keystone.

    A token without a scope is not exchanged for another one: Keystone has no such exchange for its single sign-on.

    Raises:
        LoginFailed: the token is unknown, revoked or expired.
        KeystoneUnavailable: as `keystone_session`.
    """
    from keystoneauth1.access import create
    from keystoneauth1.exceptions import NotFound

    address = f"{settings.KEYSTONE_URL}/auth/tokens?nocatalog"
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    with keystone_session() as session:
        try:
            response = session.get(address, headers=headers, authenticated=False)
        except NotFound as problem:
            raise LoginFailed(TOKEN_REFUSED) from problem
        return Granted.of_access(create(resp=response, auth_token=token))


def revoke_tokens(*tokens: str) -> None:
    """Revoke tokens, but not tokens derived from them.

    If Keystone does not respond, they stay valid until they expire.
    """
    address = f"{settings.KEYSTONE_URL}/auth/tokens?cascade=false"
    for token in tokens:
        headers = {"X-Auth-Token": token, "X-Subject-Token": token}
        try:
            with keystone_session() as session:
                # An error means that the token was already revoked or has expired.
                session.delete(address, headers=headers, authenticated=False, raise_exc=False)
        except KeystoneUnavailable:
            return
