from watcher_site.models.history import HistoryEntry
from watcher_site.models.projects import ProjectMember
from watcher_site.models.services import Service, ServiceQuerySet

__all__ = ["HistoryEntry", "ProjectMember", "Service", "ServiceQuerySet"]
