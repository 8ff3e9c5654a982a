"""Log filters that remove tracebacks and add the ids of requests."""

import logging

# The fields. The WSGI environment has their values under these names with the prefix "watcher_site.".
REQUEST_IDS = ("request_id", "trace_id")


class TracebackOfFaults(logging.Filter):
    """Removes the traceback of refusals. Only that of an internal error is useful."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


class WithoutTraceback(logging.Filter):
    """Removes the traceback of messages that are sufficient without it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        return True


class RequestIds(logging.Filter):
    """Adds the ids of a request and its trace to records that Django logs after the middleware has returned."""

    def filter(self, record: logging.LogRecord) -> bool:
        values = getattr(getattr(record, "request", None), "META", {})
        for name in REQUEST_IDS:
            if value := values.get(f"watcher_site.{name}"):
                setattr(record, name, value)
        return True
