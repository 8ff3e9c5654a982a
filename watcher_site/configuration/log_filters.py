"""Filters that remove tracebacks from the logs, and add the ids of requests."""

import logging

# The fields, whose values are in the environment of WSGI under their names after "watcher_site.".
REQUEST_IDS = ("request_id", "trace_id")


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


class RequestIds(logging.Filter):
    """Adds the ids of a request and of its trace to lines that Django logs when the middleware has returned."""

    def filter(self, record: logging.LogRecord) -> bool:
        values = getattr(getattr(record, "request", None), "META", {})
        for name in REQUEST_IDS:
            if value := values.get(f"watcher_site.{name}"):
                setattr(record, name, value)
        return True
