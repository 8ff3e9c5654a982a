"""Who is told why something failed (seed 4): the policy, and the one place where it is asked."""

from typing import Any

from django.conf import settings

from watcher_site.api.versions import Version

# The version that brought them.
DETAILS: Version = (1, 9)
DETAILS_RIGHT = "actions.view_event_details"
# Who may see every action may see on which machines they are executed, as may who sees the services.
HOST_RIGHT = "actions.view_action"


def sees_details(user: Any) -> bool:
    """Say whether somebody is told the faults of events: who has the right, and readers where the site says so."""
    return bool(user.has_perm(DETAILS_RIGHT) or (settings.READERS_SEE_EVENT_DETAILS and user.has_perm(HOST_RIGHT)))


def sees_host(user: Any) -> bool:
    """Say whether somebody is told the names of the machines that executed something."""
    return bool(user.has_perm(HOST_RIGHT))
