"""`Receiver`: whom a relay tells, and how it says that it could not."""

from abc import ABC, abstractmethod

from watcher_site.models import Notification


class Undelivered(Exception):
    """A receiver refused one notification: others may still come to it. The message is for people to read."""

    def __init__(self, message: str, pause: float = 0) -> None:
        super().__init__(message)
        self.pause = pause
        """For how many seconds at least it does not want to be asked again."""


class Unreachable(Exception):
    """A receiver does not answer: nothing comes to it for now."""


class Receiver(ABC):
    """One receiver. Its methods are called in several threads at once."""

    @abstractmethod
    def send(self, notification: Notification) -> None:
        """Deliver a notification, at the latest after the site's timeout.

        Raises:
            Undelivered, Unreachable: it was not delivered.
        """

    def close(self) -> None:  # noqa: B027 (a receiver may hold nothing)
        """Let go of what it holds, such as connections."""
