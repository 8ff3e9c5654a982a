"""Why an operation was not done: one exception for the API, the console and the commands to put into their words."""

from watcher_site.messages import cut

# A quoted part of a request may be as long as its body.
LONGEST_MESSAGE = 2000


class Refused(Exception):
    """An operation that was asked for and not done; the message says why, to the person who asked.

    The API answers `status`, the console shows the message, a command prints it and exits with 2.
    """

    status = 400

    def __init__(self, message: str = "") -> None:
        super().__init__(cut(str(message), LONGEST_MESSAGE))


class Invalid(Refused):
    """What was asked for makes no sense: the message names the field and the rule."""

    status = 400


class WrongState(Invalid):
    """What was asked for cannot be done in the state that things are in; clients of the API know it as a 400."""


class Conflict(Refused):
    """What was asked for cannot be done in the state that things are in."""

    status = 409


class NotFound(Refused):
    """What was asked for, or asked with, is not there."""

    status = 404
