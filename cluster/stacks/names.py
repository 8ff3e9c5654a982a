"""Names of group members, nested stacks and servers."""

from django.utils.crypto import get_random_string

from cluster.models import StackResource
from cluster.models.stacks import NAME_LENGTH

LENGTH = 12
NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyz234567"


def random_name() -> str:
    """Return a short name that no other member, or nested stack, has: of the kind that Heat makes."""
    return get_random_string(LENGTH, NAME_CHARACTERS)


def server_name(resource: StackResource) -> str:
    """Return what the server of a resource is called in the cloud."""
    return f"{resource.stack.name}-{resource.name}"[:NAME_LENGTH]
