"""`ActionType`, the interface of action types, and the outcomes and errors of its methods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Model

from actions.graph.proposals import ProposedAction
from actions.messages import NOT_FORESEEN, OUTCOME_UNKNOWN
from actions.types import messages
from cluster.drivers.base import CloudError, proceed
from watcher_site import plugins
from watcher_site.database.text import make_storable
from watcher_site.messages import without_controls, without_places
from watcher_site.refusals import Refused
from watcher_site.request_context import CallingContext
from watcher_site.validation import Draft202012Validator, compile_check, find_violation, with_defaults

Data = dict[str, Any]
"""The data of an action, which is stored between its runs."""


class ActionFailed(Exception):
    """The action failed; the message gives the reason to users."""


class ActionSkipException(ActionFailed):
    """Raised by a pre_condition if nothing is left to do: the action becomes SKIPPED instead of FAILED."""


class CannotBeForeseen(Exception):
    """Raised by foresee if the result of the action cannot be predicted; the message gives the reason."""


class Interruption(BaseException):
    """Raised by a checkpoint if the action must stop. No action type catches it."""


class AbortRequested(Interruption):
    """The action, or its whole plan, is being cancelled."""


class LeaseLost(Interruption):
    """The plan has another owner, so the worker must not write any more."""


class TimedOut(Interruption):
    """The action exceeded its timeout."""


OWN_EXCEPTIONS = (ActionFailed, CloudError, Refused)


def explain(error: BaseException, *, is_for_log: bool = False) -> str:
    """Return the text of an error for users: the message of an exception of the site, else the name of its class.

    The name is also returned if the exception has no message, or if its message cannot be formatted. Addresses and
    files, which messages of libraries contain, are removed unless the text is for the log. See
    docs/compatibility.md, "Event details".
    """
    name = type(error).__name__
    if not isinstance(error, OWN_EXCEPTIONS):
        return name
    try:
        text = without_controls(make_storable(str(error)))
        return (text if is_for_log else without_places(text)) or name
    except Exception:  # This error is not reported: the original fault is.
        return name


class Answer(Enum):
    """The result of an action's `execute`, `go_on` or `foresee` (docs/compatibility.md, "Results of an execution")."""

    OK = "ok"
    ERROR = "error"
    RETRY = "retry"
    """Another operation is in progress; the action is retried later."""
    CANCEL = "cancel"
    """The action cancelled itself, and nothing of it remains."""
    TIMEOUT = "timeout"
    WAIT = "wait"
    """The action derived other actions, and continues when they have ended."""


@dataclass(frozen=True)
class Outcome:
    """The result of `execute`, `go_on` and `foresee`: an answer, a reason for users, and the derived actions."""

    answer: Answer
    reason: str = ""
    derived: Sequence[ProposedAction] = ()
    delay: float = 0
    """The seconds before the planned derived actions may begin."""
    until: datetime | None = None
    """The latest time at which the obstacle ends: a RETRY before that time does not count as an attempt."""
    lock_holder: UUID | None = None
    """The action that holds a required lock: a RETRY because of it does not count until the action's timeout."""

    @property
    def pause(self) -> float:
        """Return the seconds after which all derived actions may begin."""
        return max([self.delay, *(action.delay for action in self.derived)])


DONE = Outcome(Answer.OK)


class Recovery(Enum):
    """The result of a recovery: how to proceed with an action whose worker is lost."""

    DONE = "done"
    AGAIN = "again"


@dataclass(frozen=True)
class DerivedAction:
    """The result of a derived action."""

    uuid: UUID
    name: str
    action_type: str
    state: str
    status_message: str | None
    outputs: Mapping[str, Any]
    target: str | None = None


@dataclass(frozen=True)
class Affected:
    """The resources that an action affects, as far as its parameters name them."""

    target: str | None = None
    """The UUID, or another identifier, of the resource that it acts on, if it acts on one."""
    operations: Mapping[str, str] = field(default_factory=dict)
    """Nova's name of the operation on each server, such as ``live-migration``, by the server's UUID."""
    compute_nodes: Sequence[str] = ()
    """The host names or the UUIDs of further compute nodes."""
    clusters: Sequence[str] = ()
    """The UUIDs of further clusters."""


def operation_on(input_parameters: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the `Affected.operations` of an action with one operation on the server ``resource_id``."""
    server = input_parameters.get("resource_id")
    return {server: name} if isinstance(server, str) else {}


def nothing_derived() -> Sequence[DerivedAction]:
    return ()


def record_nothing(server: str, operation: str) -> Sequence[Model]:
    return ()


def keep_nothing(data: dict[str, Any]) -> None:
    """Keep no data, for an action without a row."""


@dataclass(frozen=True)
class ActionContext:
    """The environment of an action. ``checkpoint`` raises when the action must stop."""

    action_uuid: str = ""
    checkpoint: Callable[[], None] = field(default=proceed)
    find_derived: Callable[[], Sequence[DerivedAction]] = field(default=nothing_derived)
    outputs: dict[str, Any] = field(default_factory=dict)
    """The results of the action, as JSON values, which are stored when the action ends."""
    data: dict[str, Any] = field(default_factory=dict)
    """The data that the action was proposed with, or that an earlier run stored by `save_data`."""
    find_caller: Callable[[], CallingContext] = field(default=CallingContext)
    keep_data: Callable[[dict[str, Any]], None] = field(default=keep_nothing)
    is_derived: bool = False
    """Whether another action derived it."""
    timeout: int | None = None
    """The timeout in seconds; None for the site's default."""
    new_operation: Callable[[str, str], Sequence[Model]] = field(default=record_nothing)
    """Returns unsaved rows that record an operation, from the UUID of a server and Nova's name of the operation."""

    @property
    def derived(self) -> Sequence[DerivedAction]:
        """Return the current derived actions, in the order of their creation, with one query."""
        return self.find_derived()

    @property
    def calling_context(self) -> CallingContext:
        """Return the ``user`` or the ``audit`` on whose behalf the plan runs, and its ``request_id``, with one query.

        It may contain secrets for the cloud, which must not appear in messages or logs.
        """
        return self.find_caller()

    def save_data(self, data: dict[str, Any]) -> None:
        """Store the data of this action, which the next worker reads after a crash.

        Raises:
            ActionFailed: the data contains values that JSON cannot represent.
        """
        self.keep_data(data)
        new_data = dict(data)
        self.data.clear()
        self.data.update(new_data)


class ActionType(ABC):
    """The base class of action types. An instance is one run of an action with its parameters.

    Methods raise an exception on failure. Users see the message of an `ActionFailed`, a `CloudError` or a `Refused`,
    but only the class name of any other exception, whose traceback is logged. Methods may be called in any thread and
    process, outside of any transaction.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    schema: ClassVar[Mapping[str, Any]]

    only_derives: ClassVar[bool] = False
    """Whether it only derives actions: it has no effect if each action that it derives is excluded."""
    takes_locks: ClassVar[bool] = False
    """Whether an action of this type takes locks, unless another action derived it."""

    inherits_foresight: ClassVar[bool] = False
    """Whether the ``foresee`` of a base class is valid for this type, too."""

    foresees_go_on: ClassVar[bool] = False
    """Whether a preflight calls ``go_on``, too, which then fulfils the conditions of `foresee`."""

    availability: ClassVar[Mapping[str, bool]] = {}
    """Whether the type makes a compute node available to servers (true) or unavailable, by its parameter ``state``.

    The node is that of its ``resource_name``, else of its ``resource_id``. A rollback makes nodes available again
    before it undoes other actions, and unavailable after them.
    """

    validator: ClassVar[Draft202012Validator]
    is_valid: ClassVar[Callable[[Any], bool]]
    """A fast check of parameters. If it fails, the validator decides."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "schema" in vars(cls):
            cls.validator = Draft202012Validator(dict(cls.schema))
            cls.is_valid = staticmethod(compile_check(cls.schema))

    def __init__(self, input_parameters: Mapping[str, Any], context: ActionContext | None = None) -> None:
        """Store parameters that match the schema, with defaults for missing ones."""
        self.input_parameters = with_defaults(self.schema, input_parameters)
        self.context = context or ActionContext()

    @classmethod
    def affected(cls, input_parameters: Mapping[str, Any]) -> Affected:
        """Return the resources that an action with these parameters affects.

        Exclusions, preflights, the API's `target` and the instance actions of servers all read this. By default the
        action acts on its ``resource_id``, and on the compute nodes ``source_node`` and ``destination_node``.

        The method is called when the action is created and whenever exclusions are applied, also with parameters that
        do not match the schema. It must use only the parameters, without queries, requests or exceptions. Derived
        actions declare their own resources.
        """
        hosts = (input_parameters.get(name) for name in ("source_node", "destination_node"))
        return Affected(input_parameters.get("resource_id"), compute_nodes=[host for host in hosts if host])

    @classmethod
    def data_anew(cls, proposed: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
        """Return the initial data of an action that continues an unfinished action of an earlier plan.

        Args:
            proposed: the data with which the earlier action was proposed.
            kept: the final data of the earlier action.
        """
        return proposed

    def require_current(self) -> None:  # noqa: B027
        """Check that the derived actions which were planned with the action still match the current state.

        It is called in the transaction that starts the plan, which has locked the plan's row.

        Raises:
            Conflict: they no longer match; the message names the first difference.
        """

    def pre_condition(self) -> None:  # noqa: B027 (most types have nothing to check)
        """Check that the action is possible and necessary.

        Raises:
            ActionSkipException: nothing is left to do; the action is SKIPPED.
        """

    @abstractmethod
    def execute(self) -> Outcome:
        """Execute the action, calling the context's ``checkpoint`` during long operations, and return the outcome.

        A `CloudBusy` is equivalent to the answer RETRY: a new instance executes the action after a pause, during which
        no worker is occupied. This happens up to `settings.ACTION_RETRIES` times, not counting retries before
        ``until`` of the outcome.

        With WAIT it returns derived actions, which are added to its plan in the same commit. No worker is occupied
        while they are executed; then `go_on` of a new instance is called.
        """

    def foresee(self) -> Outcome:
        """Execute the action on the simulated cloud, with the same outcome or error as `execute` would have.

        A preflight calls it after pre_condition, or after recover if the action has begun, and before post_condition.
        In all of these, `cloud()` returns the simulated cloud. A type may define it only if all of these change
        nothing else, do not query tables and do not wait. Usually it returns ``self.execute()``. It is not inherited,
        since a subclass may do more, unless the type sets ``inherits_foresight``. If it is not defined, none of these
        is called.

        The preflight also simulates derived actions: with WAIT, return the actions that it would derive, or none if
        they were planned.

        Raises:
            CannotBeForeseen: the outcome cannot be predicted.
        """
        raise CannotBeForeseen(NOT_FORESEEN.fill(type=self.name))

    def go_on(self) -> Outcome:
        """Continue after all derived actions have ended, and return the outcome.

        The outcome is as in `execute`, and may contain further derived actions. If a derived action FAILED, this one
        fails with any outcome; else if one was CANCELLED, this one is cancelled. In these cases the method only cleans
        up, and its reason is shown. It may be called twice, if the process is lost.
        """
        return DONE

    def post_condition(self) -> None:  # noqa: B027
        """Check the result; called after a failed pre_condition or execute, too."""

    def abort(self) -> bool:
        """Undo an interrupted execute.

        Return true if it was undone, and false if it had completed; raise an exception otherwise. It is called only
        for types whose execute calls the checkpoint or derives actions. Derived actions have ended before.
        """
        raise ActionFailed(messages.NOT_ABORTABLE.fill(type=self.name))

    def be_given_up(self, reason: str) -> None:  # noqa: B027
        """Clean up after the action when the engine fails or cancels it without calling any other method again.

        This happens if its worker hung or was lost too often, its outcome could not be recorded, or it is cancelled
        without an abort. The method is called in the transaction that ends the action: it writes to tables, and does
        not call the cloud. If it raises an exception, its writes are rolled back, and the action ends nevertheless.
        """

    def clean_up(self) -> None:  # noqa: B027
        """Undo the incomplete changes in the cloud of an execute that is not repeated.

        It is called after recover returned AGAIN for the last time. Operations of the action on servers and volumes
        have been ended before.
        """

    def revert(self) -> bool:
        """Undo a successful execute, and return whether that worked. It may be called twice."""
        raise ActionFailed(messages.NOT_REVERTIBLE.fill(type=self.name))

    def recover(self) -> Recovery:
        """Return whether an action whose process was lost is complete or can be executed again.

        Raises:
            ActionFailed: neither is the case; the message gives the reason.
        """
        raise ActionFailed(OUTCOME_UNKNOWN.text)


def make(name: str, input_parameters: Mapping[str, Any], context: ActionContext) -> ActionType:
    """Return an instance of an action type with validated parameters.

    Raises:
        ActionFailed: there is no such type, or a parameter breaks a rule; the message names the field and the rule.
    """
    action_type = plugins.load("ACTION_TYPES").get(name)
    if action_type is None:
        raise ActionFailed(messages.UNKNOWN_TYPE.fill(name=name))
    if not action_type.is_valid(input_parameters) and (
        violation := find_violation(action_type.validator, input_parameters)
    ):
        raise ActionFailed(messages.INVALID_PARAMETERS.fill(violation=violation))
    instance: ActionType = action_type(input_parameters, context)
    return instance


UUID_SCHEMA = {
    "type": "string",
    "pattern": "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
}
SERVER_SCHEMA = {**UUID_SCHEMA, "description": "The UUID of the server."}
NAME_SCHEMA = {"type": "string", "description": "The name of the resource, shown to users."}
NODE_SCHEMA = {"type": "string", "minLength": 1}
"""The schema of the host name of a compute node."""
