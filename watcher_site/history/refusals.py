"""Record refusals: written in a transaction of their own after that of the change was rolled back.

Repeated requests cannot fill the table: each process records the same refusal once a minute, and all refusals beyond a
limit as one.
"""

from threading import Lock
from time import monotonic
from typing import Any

from django_fsm import ConcurrentTransition, TransitionNotAllowed

from watcher_site.history.recording import REFUSED, record
from watcher_site.refusals import Conflict, Refused, WrongState
from watcher_site.request_context import current_caller

MOST_A_MINUTE = 120
MINUTE = 60.0
BEYOND = "Further ones of the same minute are not listed."


class Restraint:
    """Lets the first of its kind pass in each minute, and of all kinds together only so many. Safe for threads."""

    def __init__(self, most: int = MOST_A_MINUTE) -> None:
        self.most, self.lock = most, Lock()
        self.forget()

    def forget(self) -> None:
        self.began, self.seen = monotonic(), set[Any]()

    def lets_pass(self, kind: Any) -> bool:
        with self.lock:
            if monotonic() - self.began >= MINUTE:
                self.forget()
            if kind in self.seen or len(self.seen) >= self.most:
                return False
            self.seen.add(kind)
            return True

    @property
    def is_full(self) -> bool:
        return len(self.seen) >= self.most


restraint = Restraint()
# A limit of its own: someone who tries to read many objects cannot crowd out the refusals of changes.
reading_restraint = Restraint()
READING = ".view"


def is_recorded(problem: BaseException) -> bool:
    """Return whether history records a refusal: one because of an object's state, not one of bad input."""
    return isinstance(problem, Conflict | WrongState | ConcurrentTransition | TransitionNotAllowed)


def record_refusal(event: str, target: Any, message: str, within: Any = None) -> None:
    """Write down that a person was refused something. Outside of the transaction of what was refused."""
    who = current_caller()
    about = tuple(str(getattr(one, "uuid", one)) for one in (target, within))
    limit = reading_restraint if event.endswith(READING) else restraint
    if who is None or not limit.lets_pass((who.get("user"), event, about, message)):
        return
    record(event, target, caller=who, outcome=REFUSED, message=message, within=within)


def describe_refusal(problem: BaseException) -> str:
    """Return why something was not done, without what only clients make sense of."""
    if isinstance(problem, Refused):
        return str(problem)
    if isinstance(problem, ConcurrentTransition):
        return "Its state was changed by someone else at the same time."
    return "Its state does not allow it."
