"""Accounts: creation and changes, rules for names and passwords, and groups with their permissions."""

from collections.abc import Collection, Iterable
from typing import Any

from django.apps import AppConfig
from django.contrib.auth import get_user_model
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils.crypto import get_random_string

from watcher_site.accounts import messages
from watcher_site.accounts.login_limits import reset_failed_logins
from watcher_site.accounts.projects import add_member, find_user
from watcher_site.apps import SiteApp
from watcher_site.configuration.rights import CLOUD_ADMIN, MEMBER, READER, is_for_readers
from watcher_site.database.uniqueness import refuse_taken
from watcher_site.history import record
from watcher_site.models import ExternalIdentity
from watcher_site.refusals import Conflict, Invalid, NotFound

# The permission to administer all accounts and their tokens.
MANAGE = "watcher_site.manage_users"


def generate_password() -> str:
    """Return a random password of letters and digits, which needs no quoting in a shell."""
    return get_random_string(16)


def require_valid_password(password: str, user: Any, source: str) -> None:
    """Raise `Invalid` with the source of the password and the broken rules if a password is too weak."""
    try:
        validate_password(password, user)
    except ValidationError as problem:
        raise Invalid(f"{source}: {' '.join(problem.messages)}") from problem


@transaction.atomic
def create_user(name: str, password: str, source: str, group: str, projects: Iterable[str] = ()) -> Any:
    """Create an account in one of the predefined groups (`watcher_site.accounts.users`).

    Args:
        source: where the password was read, for the error message.
        projects: the projects of which the account becomes a member.

    Raises:
        Invalid: the name, the password or a project breaks a rule.
        Conflict: the name is taken.
        NotFound: the group does not exist, because the database was not migrated.
    """
    model = get_user_model()
    user = model(username=model.normalize_username(name))
    require_valid_password(password, user, source)
    user.set_password(password)
    require_name(user)
    rights = Group.objects.filter(name=group).first()
    if rights is None:
        raise NotFound(messages.GROUP_NOT_MIGRATED.fill(group=group))
    with refuse_taken(model, model.USERNAME_FIELD, taken(name)):
        user.save(force_insert=True)
    user.groups.add(rights)
    for project in projects:
        add_member(name, project)
    record("user.create", user, details={"group": group})
    return user


@transaction.atomic
def change_password(name: str, password: str, source: str) -> None:
    """Change the password of an account, which ends its sessions and tokens.

    Raises:
        Invalid: the password breaks a rule.
        NotFound: there is no such account.
        Conflict: the user logs in at an identity provider.
    """
    user = find_user(name)
    require_valid_password(password, user, source)
    store_password(user, password)


@transaction.atomic
def store_password(user: Any, password: str) -> None:
    """Store a valid password, which ends the sessions and tokens of the account.

    Raises:
        Conflict: the user logs in at an identity provider.
    """
    if identity := ExternalIdentity.objects.filter(user=user).first():
        raise Conflict(messages.EXTERNAL_PASSWORD.fill(name=user.get_username(), issuer=identity.issuer))
    user.set_password(password)
    user.save(update_fields=["password"])
    record("user.change_password", user)


@transaction.atomic
def set_groups(name: str, groups: Collection[str]) -> None:
    """Set the groups of an account.

    Raises:
        NotFound: there is no such account, or no such group.
    """
    user = get_user_model().objects.select_for_update().get(pk=find_user(name).pk)
    found = list(Group.objects.filter(name__in=groups))
    if missing := set(groups) - {group.name for group in found}:
        raise NotFound(f"group: there is no group {min(missing)}.")
    before, after = sorted(user.groups.values_list("name", flat=True)), sorted(groups)
    if before != after:
        user.groups.set(found)
        record("user.set_groups", user, details={"groups": {"from": before, "to": after}})


def require_authority(actor: Any, user: Any = None, groups: Iterable[Group] = ()) -> None:
    """Require that an administrator of accounts has all rights of an account, and of the groups that it gets.

    This prevents administrators from gaining rights. They cannot administer their own account. The rights of a
    disabled account count too, because it may be enabled.

    Raises:
        Conflict: the account is the administrator's own, or has a right that the administrator does not have.
    """
    if user is not None and user.pk == actor.pk:
        raise Conflict(messages.OWN_ACCOUNT.text)
    rights = Permission.objects.filter(Q(user=user) | Q(group__user=user) if user else Q(pk__in=()))
    rights = rights | Permission.objects.filter(group__in=list(groups))
    names = rights.distinct().values_list("content_type__app_label", "codename")
    is_above = user is not None and user.is_superuser and not actor.is_superuser
    if is_above or not all(actor.has_perm(f"{app}.{codename}") for app, codename in names):
        raise Conflict(messages.MISSING_RIGHTS.text)


@transaction.atomic
def set_active(name: str, active: bool) -> bool:
    """Enable or disable an account, and return whether its state changed.

    Disabling it deletes its tokens. Enabling it resets its failed logins, also if it is enabled already.

    Raises:
        NotFound: there is no such account.
    """
    user = get_user_model().objects.select_for_update().filter(pk=find_user(name).pk).get()
    if active:
        reset_failed_logins(user)
    if user.is_active == active:
        return False
    user.is_active = active
    user.save(update_fields=["is_active"])
    record("user.enable" if active else "user.disable", user)
    return True


def describe_account(user: Any) -> list[str]:
    """Return the state, the groups and the projects of an account, as commands print them."""
    groups = sorted(group.name for group in user.groups.all())
    projects = sorted(member.project_id for member in user.project_memberships.all())
    return [
        "enabled" if user.is_active else "disabled",
        *(["superuser"] if user.is_superuser else []),
        f"groups {' '.join(groups) or 'none'}",
        f"projects {' '.join(projects) or 'none'}",
    ]


def require_name(user: Any) -> None:
    try:
        user.clean_fields()
    except ValidationError as problem:
        raise Invalid(f"name: {' '.join(problem.messages)}") from problem
    if type(user).objects.filter(username=user.username).exists():
        raise taken(user.username)


def taken(name: str) -> Conflict:
    return Conflict(messages.USER_NAME_TAKEN.fill(name=name))


def grant_permissions(app_config: AppConfig, using: str = "default", **_: Any) -> None:
    """Add the missing permissions on the models of an app to the predefined groups, after each migrate."""
    if not isinstance(app_config, SiteApp):
        return
    create_permissions(app_config, verbosity=0, using=using)
    permissions = list(Permission.objects.using(using).filter(content_type__app_label=app_config.label))
    for name, granted in (
        (CLOUD_ADMIN, permissions),
        (READER, [permission for permission in permissions if is_for_readers(permission.codename)]),
        (MEMBER, ()),
    ):
        group, _created = Group.objects.using(using).get_or_create(name=name)
        group.permissions.add(*granted)
