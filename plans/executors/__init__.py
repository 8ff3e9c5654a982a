"""Executors, which run an applier's jobs: in threads of its own process, or in workers on any machine."""

from plans.executors.base import Beginning, Executor, Job, Overdue, Report, Work, WorkerTrouble
from plans.executors.threads import ThreadExecutor

__all__ = ["Beginning", "Executor", "Job", "Overdue", "Report", "ThreadExecutor", "Work", "WorkerTrouble"]
