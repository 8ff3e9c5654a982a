"""The rights that groups of accounts and Keystone roles grant."""

CLOUD_ADMIN = "cloud-admin"
READER = "reader"
MEMBER = "member"
# The right to read, but not to change, the objects of the project: only for Keystone roles.
PROJECT_READER = "project-reader"
# Reading these requires a permission that readers do not have by default.
NOT_FOR_READERS = ("view_event_details",)


def is_for_readers(codename: str) -> bool:
    """Return whether readers have the permission with this code name."""
    return codename.startswith("view_") and codename not in NOT_FOR_READERS
