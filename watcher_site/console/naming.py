"""Replacement of UUIDs in messages of lists by names with links to the pages of the objects.

Stored messages, and those of the API, keep the UUIDs.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.apps import apps
from django.utils.safestring import SafeString

from watcher_site.messages import UUIDS
from watcher_site.templatetags.console import PAGES, link, linked, short

# The models of objects in messages, the most frequent first. Each takes a query while names are missing.
MENTIONED = ("actions.Action", "cluster.Server", "cluster.ComputeNode", "cluster.Node", "cluster.Cluster")

Names = Mapping[str, str]


def find_names(texts: Iterable[str], known: Names) -> dict[str, str]:
    """Return the known names, and links to other objects whose UUIDs are in the texts, in at most five queries.

    A deleted object has no page: its name is returned without a link. If it has no record any more, an action in the
    same texts may know its name.
    """
    names = dict(known)
    recorded: dict[str, str] = {}
    unknown = {identifier for text in texts for identifier in UUIDS.findall(text)} - names.keys()
    for label in MENTIONED:
        if not unknown:
            break
        for record in apps.get_model(label)._default_manager.filter(uuid__in=unknown):
            is_deleted = record.deleted_at is not None
            called = getattr(record, "called", None) or str(record)
            names[str(record.uuid)] = called if is_deleted else link(record, PAGES[label])
            recorded |= getattr(record, "known_names", {})
        unknown -= names.keys()
    return recorded | names


def name_objects(text: str, names: Names) -> SafeString:
    """Return a text with names in place of UUIDs. UUIDs without a name are shortened, truncated UUIDs are removed."""
    return linked(text, {UUID(one): names.get(one, short(one)) for one in UUIDS.findall(text)})
