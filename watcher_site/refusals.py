"""Exceptions for refused operations, shared by the API, the console and the commands."""

from watcher_site.messages import cut

# A quoted part of a request may be as long as its body.
LONGEST_MESSAGE = 2000


class Refused(Exception):
    """An operation was refused; the message gives the reason to the person who requested it.

    The API answers `status`, the console shows the message, a command prints it and exits with 2.
    """

    status = 400

    def __init__(self, message: str = "") -> None:
        super().__init__(cut(str(message), LONGEST_MESSAGE))


class Invalid(Refused):
    """The request makes no sense: the message names the field and the rule."""

    status = 400


class WrongState(Invalid):
    """The state of an object forbids the operation; clients of the API know this as status 400."""


class Conflict(Refused):
    """The state of an object forbids the operation."""

    status = 409


class NotFound(Refused):
    """An object that the request names does not exist."""

    status = 404
