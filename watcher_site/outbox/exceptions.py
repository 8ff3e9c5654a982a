"""Describe an error in the format of ``ExceptionPayload``: the place, the exception, and a message without secrets."""

from typing import Any

from watcher_site.database.text import make_storable
from watcher_site.messages import cut


def describe_fault(problem: BaseException, message: str) -> dict[str, Any]:
    """Return the fault of an event.

    Args:
        message: a text for users: never a path, a query or a secret.
    """
    module, function = origin(problem)
    return make(type(problem).__name__, message, module, function)


def make(exception: str, message: str, module: str = "", function: str = "") -> dict[str, Any]:
    return {
        "module_name": module,
        "function_name": function,
        "exception": exception,
        "exception_message": cut(make_storable(message)),
    }


def origin(problem: BaseException) -> tuple[str, str]:
    """Return the names of the module and the function that raised it."""
    trace = problem.__traceback__
    if trace is None:
        return "", ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals.get("__name__", ""), trace.tb_frame.f_code.co_name
