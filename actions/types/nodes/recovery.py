"""The operations that recover a server."""

from django.db.models import TextChoices


class Operation(TextChoices):
    REBOOT = "REBOOT", "it is started anew"
    REBUILD = "REBUILD", "it is made anew from its image"
    RECREATE = "RECREATE", "it is deleted, and another one takes its place"


OPERATION = {"type": "string", "enum": Operation.values}
