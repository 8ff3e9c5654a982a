"""The ready groups: ``cloud-admin`` may do all that the site offers, ``reader`` may look at it.

A ``member`` has no rights but those on what belongs to their projects.
"""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission

from watcher_site.apps import SiteApp

CLOUD_ADMIN = "cloud-admin"
READER = "reader"
MEMBER = "member"
# To look at these takes a right of its own, which readers do not have by themselves.
NOT_FOR_READERS = ("view_event_details",)


def grant_permissions(app_config: AppConfig, using: str = "default", **_: Any) -> None:
    """Give the groups the rights on one app's models. Runs after each migrate, and adds only what is missing."""
    if not isinstance(app_config, SiteApp):
        return
    create_permissions(app_config, verbosity=0, using=using)
    permissions = Permission.objects.using(using).filter(content_type__app_label=app_config.label)
    for name, granted in (
        (CLOUD_ADMIN, permissions),
        (READER, permissions.filter(codename__startswith="view_").exclude(codename__in=NOT_FOR_READERS)),
        (MEMBER, ()),
    ):
        group, _created = Group.objects.using(using).get_or_create(name=name)
        group.permissions.add(*granted)
