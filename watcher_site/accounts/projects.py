"""Projects and their members, who see and manage the servers, stacks and clusters of the project."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from watcher_site.accounts import messages
from watcher_site.database.text import require_storable
from watcher_site.history import record
from watcher_site.keystone.users import KeystoneUser
from watcher_site.models import ProjectMember
from watcher_site.refusals import Invalid, NotFound
from watcher_site.validation import require_visible

PROJECT_LENGTH = 255


def projects_of(user: Any) -> frozenset[str]:
    """Return the projects of a user, with one query for a user of the site, and none for a user of Keystone."""
    if isinstance(user, KeystoneUser):
        return user.projects
    # A token that is limited to a group may have no projects (`watcher_site.accounts.token_limits`).
    if not getattr(user, "uses_projects", True):
        return frozenset()
    return frozenset(ProjectMember.objects.filter(user=user.pk).values_list("project_id", flat=True))


@transaction.atomic
def add_member(name: str, project: str) -> bool:
    """Add a user to a project, and return whether the user was not a member before.

    Raises:
        Invalid: the project id breaks a rule.
        NotFound: there is no such user.
    """
    checked_project(project)
    _, is_new = ProjectMember.objects.get_or_create(user=find_user(name), project_id=project)
    if is_new:
        record("project.add_member", project, details={"user": name})
    return is_new


@transaction.atomic
def remove_member(name: str, project: str) -> None:
    """Remove a user from a project.

    Raises:
        NotFound: there is no such user, or the user is not a member.
    """
    removed, _ = ProjectMember.objects.filter(user=find_user(name), project_id=project).delete()
    if not removed:
        raise NotFound(messages.NOT_A_MEMBER.fill(name=name, project=project))
    record("project.remove_member", project, details={"user": name})


def checked_project(project: str) -> str:
    """Validate the id of a project and return it. Raises: `Invalid`."""
    require_storable("project", project)
    require_visible("project", project)
    if not 0 < len(project) <= PROJECT_LENGTH or project != project.strip():
        raise Invalid(messages.PROJECT_LENGTH.fill(number=PROJECT_LENGTH))
    return project


def find_user(name: str) -> Any:
    """Return the user with a name. Raises: `NotFound`."""
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise NotFound(messages.NO_USER.fill(name=name))
    return user
