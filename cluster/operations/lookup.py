"""The lookup of the cluster or node that a path names: by UUID, by name, or by the beginning of the UUID."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from watcher_site.refusals import Invalid


def only_one(records: Any, identifier: str) -> QuerySet[Any]:
    """Return the queryset of the one record that a path names; several may have one name.

    Raises:
        Invalid: several records have the name, or a UUID that begins so.
    """
    named: QuerySet[Any] = records.named(identifier)
    if is_uuid(identifier):
        return named
    for candidates in (named, records.beginning_with(identifier)):
        keys = list(candidates.order_by().values_list("pk", flat=True)[:2])
        if len(keys) > 1:
            raise Invalid(
                f"Multiple results found matching the query criteria '{identifier}'. Please be more specific."
            )
        if keys:
            found: QuerySet[Any] = records.filter(pk=keys[0])
            return found
    nothing: QuerySet[Any] = records.none()
    return nothing


def is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
