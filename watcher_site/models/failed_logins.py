"""Failed logins of the last minutes, which the limits on guessing passwords are based on."""

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
