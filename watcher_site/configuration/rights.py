"""The rights that groups of accounts and roles of Keystone give."""

CLOUD_ADMIN = "cloud-admin"
READER = "reader"
MEMBER = "member"
# To see, and not to change, what belongs to the project: for roles of Keystone alone.
PROJECT_READER = "project-reader"
# To look at these takes a right of its own, which readers do not have by themselves.
NOT_FOR_READERS = ("view_event_details",)


def is_for_readers(codename: str) -> bool:
    """Return whether readers have the permission with this code name."""
    return codename.startswith("view_") and codename not in NOT_FOR_READERS
