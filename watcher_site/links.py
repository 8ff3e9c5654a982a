"""UUIDs in the messages that people read, as links with the names of what they stand for."""

import re
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.apps import apps
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

# The models that have pages, the likeliest first: each lookup costs a query.
PAGES = {
    "actions.Action": "actions:detail",
    "plans.ActionPlan": "plans:detail",
    "audits.Audit": "audits:detail",
    "cluster.Server": "cluster:server",
    "cluster.ComputeNode": "cluster:node",
    "cluster.Node": "cluster:member",
    "cluster.Cluster": "clusters:detail",
    "cluster.Policy": "cluster:policy",
    "cluster.Profile": "cluster:profile",
}
IDENTIFIER = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def linked(text: str) -> SafeString:
    """Return the text with a link for each UUID of something that is there; one that has no page stays as it is."""
    links = find_links({UUID(identifier) for identifier in IDENTIFIER.findall(text)})
    parts: list[Any] = []
    end = 0
    for match in IDENTIFIER.finditer(text):
        parts += [conditional_escape(text[end : match.start()]), links.get(UUID(match[0]), match[0])]
        end = match.end()
    return mark_safe("".join([*parts, conditional_escape(text[end:])]))  # noqa: S308 (each part was escaped)


def shortened(text: str) -> str:
    """Return the text with the beginning of each UUID only: for lists, where links would cost queries."""
    return IDENTIFIER.sub(lambda match: match[0][:8], text)


def find_links(identifiers: set[UUID]) -> dict[UUID, SafeString]:
    links: dict[UUID, SafeString] = {}
    for label, page in PAGES.items():
        wanted = identifiers - links.keys()
        if not wanted:
            break
        found: Iterable[Any] = apps.get_model(label)._default_manager.filter(uuid__in=wanted, deleted_at=None)
        links |= {record.uuid: link(record, page) for record in found}
    return links


def link(record: Any, page: str) -> SafeString:
    name = getattr(record, "called", None) or str(record)
    short = name[:8] if name == str(record.uuid) else name
    return format_html('<a href="{}" title="{}">{}</a>', reverse(page, args=[record.uuid]), record.uuid, short)
