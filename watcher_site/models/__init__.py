from watcher_site.models.accounts import ExternalIdentity, FailedLogins, ProjectMember, TokenDetails
from watcher_site.models.exclusive_tasks import ExclusiveTask
from watcher_site.models.history import HistoryEntry
from watcher_site.models.notifications import Delivery, Notification, Subscription
from watcher_site.models.saved_filters import SavedFilter
from watcher_site.models.services import Service, ServiceQuerySet

__all__ = [
    "Delivery",
    "ExclusiveTask",
    "ExternalIdentity",
    "FailedLogins",
    "HistoryEntry",
    "Notification",
    "ProjectMember",
    "SavedFilter",
    "Service",
    "ServiceQuerySet",
    "Subscription",
    "TokenDetails",
]
