"""Where an applier's work is done: in threads of its own process, or by workers on any machine."""

from plans.executors.base import Beginning, Executor, Job, Overdue, Report, Work, WorkerTrouble
from plans.executors.threads import ThreadExecutor

__all__ = ["Beginning", "Executor", "Job", "Overdue", "Report", "ThreadExecutor", "Work", "WorkerTrouble"]
