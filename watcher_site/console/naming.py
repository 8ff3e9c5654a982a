"""Replacement of UUIDs in messages of lists by names, which are links to the pages of the objects in the console.

Stored messages, and those of the API, keep the UUIDs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.apps import apps
from django.utils.safestring import SafeString

from watcher_site.messages import UUIDS
from watcher_site.templatetags.console import PAGES, link, linked, short

# The models of objects in messages, the most frequent first. Each takes a query while names are missing.
MENTIONED = ("actions.Action", "cluster.Server", "cluster.ComputeNode", "cluster.Node", "cluster.Cluster")
# Names of plans are not unique: only links, which have the beginning of the UUID, replace their UUIDs.
LINKED = ("actions.Action", "plans.ActionPlan", *MENTIONED[1:])

Names = Mapping[str, str]


def find_names(texts: Iterable[str], known: Names) -> dict[str, str]:
    """Return the known names, and links to other objects whose UUIDs are in the texts, in at most six queries.

    A deleted object has no page: its name is returned without a link.
    """
    return find_shown_names(texts, known, linked_name, LINKED)


def find_plain_names(texts: Iterable[str], known: Names) -> dict[str, str]:
    """Return the known names, and those of other objects whose UUIDs are in the texts, in at most five queries."""
    return find_shown_names(texts, known, plain_name, MENTIONED)


def find_shown_names(
    texts: Iterable[str], known: Names, show: Callable[[Any], str], models: Iterable[str]
) -> dict[str, str]:
    """Return the known names, and those of other objects of the models in the texts.

    If an object has no record any more, an action in the same texts may know its name.
    """
    names = dict(known)
    recorded: dict[str, str] = {}
    unknown = {identifier for text in texts for identifier in UUIDS.findall(text)} - names.keys()
    for label in models:
        if not unknown:
            break
        manager = apps.get_model(label)._default_manager
        for record in (manager.with_names() if hasattr(manager, "with_names") else manager).filter(uuid__in=unknown):
            names[str(record.uuid)] = show(record)
            recorded |= getattr(record, "known_names", {})
        unknown -= names.keys()
    return recorded | names


def linked_name(record: Any) -> str:
    return plain_name(record) if record.deleted_at else link(record, PAGES[record._meta.label])


def plain_name(record: Any) -> str:
    return getattr(record, "called", None) or str(record)


def name_objects(text: str, names: Names) -> SafeString:
    """Return a text with names in place of UUIDs. UUIDs without a name are shortened, truncated UUIDs are removed."""
    return linked(text, {UUID(one): names.get(one, short(one)) for one in UUIDS.findall(text)})


def name_objects_plainly(text: str, names: Names) -> str:
    """Return a text with names in place of UUIDs, for terminals. UUIDs without a name are kept."""
    return UUIDS.sub(lambda match: names.get(match[0], match[0]), text)


def add_names(texts: Sequence[str], known: Names) -> list[str]:
    """Return texts for terminals with the names of objects before their UUIDs: ``web-1 (353c1445-…)``.

    Objects without a known name are looked up in at most five queries.
    """
    names = {uuid: f"{name} ({uuid})" for uuid, name in find_plain_names(texts, known).items() if name != uuid}
    return [name_objects_plainly(text, names) for text in texts]
