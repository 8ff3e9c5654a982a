"""The broker's queue from which workers take an action."""

from django.conf import settings

from actions.checks import ZONE
from actions.models import Action
from cluster.operations.named_records import find_zone


def queue_of(action: Action) -> str:
    """Return the queue of an action in `settings.CELERY_QUEUES`, by its type, or else by the zone of its object."""
    queues: dict[str, str] = settings.CELERY_QUEUES
    if action.action_type in queues:
        return queues[action.action_type]
    if any(subject.startswith(ZONE) for subject in queues):
        return queues.get(f"{ZONE}{find_zone(action.target)}", settings.CELERY_QUEUE)
    return str(settings.CELERY_QUEUE)
