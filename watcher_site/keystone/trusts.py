"""Keystone trusts, by which a user delegates roles in a project to the user of the site."""

from typing import Any

import structlog
from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from watcher_site.configuration.keystone import read_identity_address
from watcher_site.keystone.login import KeystoneUnavailable, keystone_session
from watcher_site.keystone.users import KeystoneUser
from watcher_site.refusals import Conflict

CREATED = 201
log = structlog.get_logger(__name__)


def identity_address() -> str:
    """Return the address of Keystone's API: that of the console's login, or else that of the API's tokens."""
    return str(settings.KEYSTONE_URL or read_identity_address(settings.KEYSTONE_CONFIG))


@sensitive_variables("token")
def create_trust(token: str, user: KeystoneUser, trustee: str) -> tuple[str, list[str]]:
    """Create a trust by which a user delegates roles in the project of their token; return its id and the roles.

    The site acts as that user in the project (impersonation), and cannot delegate further.

    Raises:
        Conflict: the token has none of the roles, or Keystone refuses the trust.
        KeystoneUnavailable: Keystone does not respond.
    """
    roles = [role for role in settings.KEYSTONE_TRUST_ROLES if role.lower() in user.roles]
    if not roles:
        raise Conflict(
            "project_id: your token has none of the roles that the site needs to create servers in the project: "
            f"{', '.join(settings.KEYSTONE_TRUST_ROLES)}."
        )
    trust = {
        "trustor_user_id": user.user_id,
        "trustee_user_id": trustee,
        "project_id": user.project_id,
        "roles": [{"name": role} for role in roles],
        "impersonation": True,
        "allow_redelegation": False,
    }
    with keystone_session() as session:
        response = session.post(
            f"{identity_address()}/OS-TRUST/trusts",
            json={"trust": trust},
            headers={"X-Auth-Token": token},
            authenticated=False,
            raise_exc=False,
        )
    if response.status_code != CREATED:
        reason = read_refusal(response)
        raise Conflict(
            f"project_id: Keystone refuses that the site creates servers as {user} in the project: {reason}"
        )
    return str(response.json()["trust"]["id"]), roles


@sensitive_variables("token")
def delete_trust(token: str, trust: str) -> None:
    """Delete a trust as its trustor. If Keystone does not respond, log a warning."""
    address = f"{identity_address()}/OS-TRUST/trusts/{trust}"
    try:
        with keystone_session() as session:
            response = session.delete(address, headers={"X-Auth-Token": token}, authenticated=False, raise_exc=False)
    except KeystoneUnavailable as problem:
        log.warning("A trust could not be deleted.", reason=str(problem))
        return
    if response.status_code >= 300:
        log.warning("A trust could not be deleted.", reason=read_refusal(response))


def read_refusal(response: Any) -> str:
    """Return the message in Keystone's error response."""
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return f"status {response.status_code}"
