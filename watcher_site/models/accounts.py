"""Models of accounts: failed logins, on which the limits on guessing passwords are based, and members of projects."""

from django.conf import settings
from django.db import models


class FailedLogins(models.Model):
    """The failed logins of a client address, with one account name or with all, in one window of time.

    ``key`` is a digest: people type passwords into the field for the name, and no such text is stored. ``name`` is
    that of an account, or empty.
    """

    key = models.CharField(max_length=64, unique=True)
    address = models.CharField(max_length=63)
    name = models.CharField(max_length=150, default="")
    most = models.PositiveIntegerField()
    number = models.PositiveIntegerField(default=0)
    began_at = models.DateTimeField(db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.number} from {self.address}"


class ProjectMember(models.Model):
    """The membership of a person in a project, with the project's id in the cloud."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="project_memberships")
    project_id = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint("user", "project_id", name="project_member")]

    def __str__(self) -> str:
        return f"{self.user} in {self.project_id}"
