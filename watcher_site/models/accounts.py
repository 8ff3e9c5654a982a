"""Models of accounts: failed logins, members of projects, people at a provider, and the limits and use of tokens."""

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


class ExternalIdentity(models.Model):
    """The person at an OpenID provider to whom an account belongs; a local account has none."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="external_identity"
    )
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint("issuer", "subject", name="external_identity")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class TokenDetails(models.Model):
    """The name, the limits and the last use of a token of the API.

    A token that an earlier release made has no row until its first use, and no limits. ``group`` is the name of a
    group and not a reference, so that a token whose group was deleted has no rights at all.
    """

    # Processes of the previous release delete tokens without their details, so the database does not check this.
    token = models.OneToOneField(
        "knox.AuthToken", models.CASCADE, primary_key=True, db_constraint=False, related_name="details"
    )
    name = models.CharField(max_length=100, default="")
    read_only = models.BooleanField(default=False)
    group = models.CharField(max_length=150, default="")
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        permissions = [("manage_users", "Can manage users, their groups, projects and tokens")]

    def __str__(self) -> str:
        return self.name or str(self.pk)[:8]
