"""The creation of trusts, by which Keystone users let the site create servers in their project."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from cluster.drivers.base import load_driver
from cluster.models import Synchronization, Trust
from watcher_site.keystone.trusts import create_trust, delete_trust
from watcher_site.keystone.users import KeystoneUser


@sensitive_variables("token")
def obtain_trust(user: object, token: str, project: str, record: Any = None) -> Trust | None:
    """Return the trust by which the site creates servers as a user in a project, and create it if necessary.

    Return None if no trust is needed or possible: in the site's own project and on the embedded cloud, for local
    accounts, for users whose token is of another project, and for a record that has a valid trust.

    Args:
        record: the stack, cluster or node to be changed. As long as its own trust is valid, the user delegates
        nothing.

    Raises:
        Conflict: Keystone refuses the trust.
        KeystoneUnavailable: Keystone does not respond.
    """
    if (
        not isinstance(user, KeystoneUser)
        or not project
        or user.project_id != project
        or not load_driver().is_mirrored
    ):
        return None
    if record is not None and record.trust is not None and record.trust.failed_at is None:
        return None
    site = Synchronization.current()
    if not site.user or project == site.project:
        return None
    trusts = Trust.objects.valid().filter(project_id=project, user_id=user.user_id)
    if trusts.update(used_at=timezone.now()) and (row := trusts.first()):
        return row
    keystone_id, roles = create_trust(token, user, site.user)
    trust = store_trust(user, keystone_id, roles)
    if trust.keystone_id != keystone_id:
        delete_trust(token, keystone_id)
    return trust


@transaction.atomic
def store_trust(user: KeystoneUser, keystone_id: str, roles: list[str]) -> Trust:
    """Store a new trust, or replace one that failed. Of two concurrent requests, the first one's is trust."""
    columns = {"keystone_id": keystone_id, "roles": roles, "user_name": user.name}
    owner = {"project_id": user.project_id, "user_id": user.user_id}
    row, is_new = Trust.objects.get_or_create(**owner, defaults=columns)
    if is_new:
        return row
    row = Trust.objects.select_for_update(no_key=True).get(pk=row.pk)
    if row.failed_at is None:
        return row
    now = timezone.now()
    for name, value in {**columns, "created_at": now, "used_at": now, "failed_at": None}.items():
        setattr(row, name, value)
    row.save()
    return row
