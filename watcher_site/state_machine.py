"""State machines of models: transitions change an instance in memory, and a guarded UPDATE saves them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from django_fsm import ConcurrentTransition, ConcurrentTransitionMixin, TransitionNotAllowed

from watcher_site.database.messages import NOT_DELETABLE, RECORD_NOT_FOUND
from watcher_site.database.queries import Bound
from watcher_site.database.records import Record
from watcher_site.database.writes import Change, columns_of, write_together
from watcher_site.monitoring.metrics import state_changes
from watcher_site.outbox import writing
from watcher_site.refusals import NotFound, Refused, WrongState

__all__ = ["ConcurrentTransition", "StatefulModel", "TransitionNotAllowed"]


class StatefulModel(ConcurrentTransitionMixin, Record):
    """A model whose transitions are saved by `save_state`.

    `save_state` raises `ConcurrentTransition` if ``guard_fields`` or the deletion of the row changed since it was
    read. After that, and after a rollback or another error, the instance does not match the row: discard it and read
    it again.
    """

    notified_as: ClassVar[str | None] = None
    """The kind of the notifications about objects of this model, or None."""

    fault: Mapping[str, Any] | None = None
    """The fault of the change, for notifications: see `payloads.describe_fault`."""

    guard_fields: ClassVar[list[str]] = ["state"]
    transition_fields: ClassVar[list[str]] = ["state", "status_message"]

    class Meta:
        abstract = True

    @property
    def state_fields(self) -> Iterable[Any]:
        fields = columns_of(type(self), (*self.guard_fields, "deleted_at"))
        # Django reads few columns of rows for a deletion. Reading a deferred state here would recurse infinitely.
        return [field for field in fields if field.attname in self.__dict__]

    @classmethod
    def sources(cls, *transitions: str) -> set[str]:
        """Return the source states of these transitions, for updates of many rows in one statement."""
        return {str(state) for name in transitions for state in getattr(cls, name)._django_fsm.transitions}

    def save_state(
        self, *records: Model, conditions: Sequence[Bound] = (), guards: Mapping[str, Any] | None = None
    ) -> None:
        """Write the columns that transitions may have changed since the last save.

        Rows of other models that belong to the change, new or changed, are written in the same commit.

        Args:
            records: these rows.
            conditions: queries, each of which must return a row at the same time.
            guards: values by column that the row must still have, in addition to ``guard_fields``.

        Raises:
            ConcurrentTransition: the row has changed since this instance was read, or a condition does not hold.
        """
        self.updated_at = timezone.now()
        read = self.values_read
        change = Change(self, (*self.touched_fields, "updated_at"), {**read, **(guards or {})}, conditions)
        before, state = read[self.guard_fields[0]], getattr(self, self.guard_fields[0])
        if not write_together(change, records, writing.of_change(self, before)):
            raise ConcurrentTransition(f"{self._meta.object_name} {self.uuid} is no longer as it was read.")
        if state != before:
            transaction.on_commit(partial(self.count_change, before, state))
        self._update_initial_state()

    def save_requested_state(self, *records: Model, guards: Mapping[str, Any] | None = None) -> None:
        """Write a transition that a user requested, as `save_state` does.

        Raises:
            NotFound: the row was deleted since this instance was read.
            ConcurrentTransition: the row was changed in another respect.
        """
        try:
            self.save_state(*records, guards=guards)
        except ConcurrentTransition as problem:
            refusal = self.undeletable()
            raise (refusal if isinstance(refusal, NotFound) else problem) from None

    def count_change(self, before: str, state: str) -> None:
        """Count a committed change of the state in the metrics of this process."""
        state_changes.labels(self._meta.model_name, state).inc()

    @property
    def touched_fields(self) -> list[str]:
        """The columns that transitions may have changed since the last save."""
        return self.transition_fields

    @property
    def values_read(self) -> dict[str, Any]:
        """The values of the guarded columns when this instance was read or last saved."""
        values: dict[str, Any] = self._ConcurrentTransitionMixin__initial_states  # type: ignore[attr-defined]
        return values

    def undeletable(self) -> Refused:
        """Return the exception for a guarded deletion that found no row, with the message of the API."""
        current: Any = type(self)._default_manager.filter(pk=self.pk, deleted_at=None).first()
        if current is None:
            return NotFound(RECORD_NOT_FOUND.fill(kind=self._meta.object_name, uuid=self.uuid))
        return WrongState(NOT_DELETABLE.fill(state=current.state))
