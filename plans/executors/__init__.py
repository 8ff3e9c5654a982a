"""Executors, which run the jobs of an applier in threads of its process or in workers on other machines."""

from plans.executors.base import Executor, HungJob, Job, JobStarted, Report, Work, WorkerError
from plans.executors.threads import ThreadExecutor

__all__ = ["Executor", "HungJob", "Job", "JobStarted", "Report", "ThreadExecutor", "Work", "WorkerError"]
