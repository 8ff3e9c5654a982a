"""The admission of jobs that share a process and of jobs that run alone in it."""

from threading import Condition


class Isolation:
    """Admit any number of shared jobs at once, or one job alone.

    A job that waits to be alone keeps further shared jobs from beginning.
    """

    def __init__(self) -> None:
        self.changed = Condition()
        self.shared = self.waiting = 0
        self.is_occupied = False

    def enter(self, alone: bool) -> None:
        """Wait until a job may begin."""
        with self.changed:
            if not alone:
                self.changed.wait_for(lambda: not (self.is_occupied or self.waiting))
                self.shared += 1
                return
            self.waiting += 1
            self.changed.wait_for(lambda: not (self.is_occupied or self.shared))
            self.waiting -= 1
            self.is_occupied = True

    def leave(self, alone: bool) -> None:
        with self.changed:
            if alone:
                self.is_occupied = False
            else:
                self.shared -= 1
            self.changed.notify_all()
