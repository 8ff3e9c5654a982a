"""Models of accounts: failed logins, project members, identities of OpenID providers, and details of tokens."""

from django.conf import settings
from django.db import models


class FailedLogins(models.Model):
    """The failed logins of a client address in one window of time, for one account name or for all names.

    ``key`` is a digest: users type passwords into the field for the name, and such texts are not stored. ``name`` is
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
    """The membership of a user in a project, with the project's id in the cloud."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="project_memberships")
    project_id = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint("user", "project_id", name="project_member")]

    def __str__(self) -> str:
        return f"{self.user} in {self.project_id}"


class ExternalIdentity(models.Model):
    """The identity at an OpenID provider of an account's owner; a local account has none."""

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
    """The name, limits and last use of an API token.

    Tokens of an earlier release have no row until their first use, and no limits. ``group`` is the name of a group and
    not a reference, so that a token whose group was deleted has no rights.
    """

    # Processes of the previous release delete tokens without their details, so there is no constraint.
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
