"""Exceptions for refused operations, shared by the API, the console and the commands."""

from collections.abc import Callable

from django.utils.functional import Promise, lazy

from watcher_site.messages import Text, cut

# A quoted part of a request may be as long as its body.
LONGEST_MESSAGE = 2000


class Refused(Exception):
    """An operation was refused; the message gives the reason to the user who requested it.

    The API responds with `status`, the console shows the message, and a command prints it and exits with status 2.
    """

    status = 400

    def __init__(self, message: Text = "") -> None:
        """Store the message. A lazy message is translated when it is read, on pages only."""
        super().__init__(message if isinstance(message, Promise) else cut(str(message), LONGEST_MESSAGE))

    def __str__(self) -> str:
        return cut(str(self.args[0]), LONGEST_MESSAGE)


class Invalid(Refused):
    """The request is invalid: the message names the field and the rule."""

    status = 400


class WrongState(Invalid):
    """The state of an object forbids the operation. API clients expect the status 400 here."""


class Conflict(Refused):
    """The state of an object forbids the operation."""

    status = 409


class NotFound(Refused):
    """An object that the request names does not exist."""

    status = 404


def worded(compose: Callable[[], str]) -> Text:
    """Return a message that is composed when it is read, so that history has it in English."""
    return lazy(compose, str)()
