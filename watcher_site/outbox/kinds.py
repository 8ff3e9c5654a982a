"""The base class of notification kinds: the model, its events, and their payloads."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from django.db.models import Model, QuerySet
from django.db.models.functions import JSONObject

from watcher_site.outbox.payloads import DELETED

INFO, WARNING, ERROR = "INFO", "WARN", "ERROR"


@dataclass(frozen=True)
class Event:
    """An event of an object, named without its kind, such as ``execution.start``."""

    name: str
    priority: str = INFO
    fault: Mapping[str, Any] | None = None
    """The fault of an event that reports an error: see `payloads.describe_fault`."""


UPDATE = Event("update")
CREATE = Event("create")
DELETE = Event("delete")


@dataclass(frozen=True)
class Summary:
    """The description of an object for people, from a snapshot."""

    name: str
    state: str | None = None
    message: str | None = None
    """The reason of its state."""


LIFE = ("create", "update", "delete")


def phases_of(*parts: str) -> tuple[str, ...]:
    """Return the names of the start, end and error events of operations."""
    return tuple(f"{part}.{phase}" for part in parts for phase in ("start", "end", "error"))


class Kind(ABC):
    """A kind of objects with notifications, registered in the settings table ``NOTIFICATION_KINDS``.

    The database stores a `snapshot` of the object in the statement or transaction that changes it. A relay generates
    the payload from the snapshot.
    """

    name: ClassVar[str]
    """The prefix of event types, such as ``action_plan``."""
    event_names: ClassVar[Sequence[str]] = (UPDATE.name,)
    """The names of the events, without the name of the kind. Subscriptions to other events are refused."""
    publisher: ClassVar[str] = "infra-optim"
    """The service in the publisher id."""

    label: ClassVar[str] = ""
    """The word for one of these objects in texts for people."""
    page: ClassVar[str | None] = None
    """The name of the console page with the UUID in its address, if there is one."""

    identity: ClassVar[Any] = "uuid"
    """The column or expression of the UUID by which receivers identify an object."""

    @property
    @abstractmethod
    def model(self) -> type[Model]:
        """The model of these objects."""

    @abstractmethod
    def snapshot(self) -> Mapping[str, Any]:
        """Return the expressions, by name, of a query of `model` that form the JSON object of a snapshot."""

    def events(self, instance: Any, old_state: str) -> Sequence[Event]:
        """Return the events of an instance that is about to be saved, in order.

        Args:
            old_state: its previous state in the table.
        """
        return self.between(old_state, instance.state, instance.fault)

    def between(self, old_state: str, state: str, fault: Mapping[str, Any] | None = None) -> Sequence[Event]:
        """Return the events of a change from one state to another."""
        return (UPDATE,)

    @abstractmethod
    def payload(self, notification: Any) -> dict[str, Any]:
        """Return the payload of a `Notification` of one of these objects, as docs/notifications.md describes it."""

    def summary(self, snapshot: Mapping[str, Any]) -> Summary:
        """Return the description of an object in messages for people."""
        state = DELETED if snapshot.get("deleted_at") else snapshot.get("state")
        return Summary(snapshot["name"] or "", state, snapshot.get("status_message"))

    @cached_property
    def rows(self) -> QuerySet[Any]:
        """The query of snapshots, with the columns primary key, UUID and snapshot."""
        manager: Any = self.model._default_manager
        return manager.order_by().values_list("pk", self.identity, JSONObject(**self.snapshot()))
