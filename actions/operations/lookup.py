"""The lookup of the action that a path names (docs/compatibility.md, "Lookup and lists of actions")."""

from collections.abc import Callable
from typing import Any

from cluster.operations.lookup import is_uuid
from watcher_site.api.serializers import Row
from watcher_site.api.versions import EXTENDED, used_by
from watcher_site.api.views import ComposedLookup
from watcher_site.refusals import NotFound


class ActionLookup(ComposedLookup):
    def find(self: Any, identifier: str) -> list[Row]:
        rows: list[Row] = self.by_any_name(super().find, identifier)
        return rows

    def find_present(self: Any, identifier: str) -> Any:
        return self.by_any_name(super().find_present, identifier)

    def by_any_name(self: Any, find: Callable[[str], Any], identifier: str) -> Any:
        """Find by UUID what looks like one, then by name, then by the beginning of the UUID.

        Raises:
            Invalid: there are several.
        """
        if used_by(self.request) < EXTENDED:
            return find(identifier)
        found = find(identifier) if is_uuid(identifier) else None
        if found:
            return found
        uuid = self.get_queryset().identified_by(identifier)
        if uuid is None:
            raise NotFound(self.missing(identifier))
        return find(str(uuid))
