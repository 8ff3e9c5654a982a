"""Where an applier's work is done."""

from plans.executors.base import Executor, Job, Report, Work
from plans.executors.threads import ThreadExecutor

__all__ = ["Executor", "Job", "Report", "ThreadExecutor", "Work"]
