"""The projects in which servers can be created: any on the embedded cloud, the site's own on OpenStack."""

from cluster.drivers.base import load_driver
from cluster.models import Synchronization
from watcher_site.refusals import Conflict


def explain_foreign(project: str, own: str) -> str:
    """Return why no server can be created in a project, if the site logs in to its ``own``, or nothing."""
    if project == own:
        return ""
    return f"This cloud creates servers only in the site's own project {own}, not in project {project}"


def explain_refusal(project: str) -> str:
    """Return why the cloud can create no server in a project, or nothing, from the last reading of the cloud.

    An empty project means the one that the cloud chooses.
    """
    if not project or not load_driver().is_mirrored:
        return ""
    own = Synchronization.current().project
    return explain_foreign(project, own) if own else "The cloud has not been read yet: run sync_cluster"


def require_creatable(project: str) -> None:
    """Raise `Conflict` if the cloud can create no server in this project."""
    if reason := explain_refusal(project):
        raise Conflict(f"project_id: {reason}.")
