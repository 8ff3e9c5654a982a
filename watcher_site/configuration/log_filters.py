"""Filters that remove tracebacks from the logs."""

import logging


class TracebackOfFaults(logging.Filter):
    """Leaves out where a refusal comes from: only what is our own fault needs to be looked for in the code."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


class WithoutTraceback(logging.Filter):
    """Leaves out where a message comes from, for those that say all there is to know."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        return True
