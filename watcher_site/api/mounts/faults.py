"""The error bodies of other services: the path of a request decides which service's format its answer has."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

Body = dict[str, Any]
# What a body is made of: the status, the message and, where there is one, the exception that was answered.
Fault = Callable[[int, str, Exception | None], Body]

COMPUTE_NAMES = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}


def compute_fault(status: int, message: str, problem: Exception | None = None) -> Body:
    """Return Nova's: one key, which names the kind of fault."""
    return {COMPUTE_NAMES.get(status, "computeFault"): {"code": status, "message": message}}


# What Heat calls a refusal of ours, by its class; others have the name of their status.
ORCHESTRATION_NAMES = {"NotFound": "EntityNotFound", "ActionInProgress": "ActionInProgress"}


def orchestration_fault(status: int, message: str, problem: Exception | None = None) -> Body:
    """Return an error body in Heat's format, always without a traceback."""
    phrase = HTTPStatus(status).phrase
    kind = ORCHESTRATION_NAMES.get(type(problem).__name__) or f"HTTP{phrase.replace(' ', '')}"
    error = {"type": kind, "message": message, "traceback": None}
    return {"code": status, "title": phrase, "explanation": message, "error": error}


FAULTS: Mapping[str, Fault] = {"compute": compute_fault, "orchestration": orchestration_fault}


def find_fault(path: str) -> Fault | None:
    """Return what makes the error bodies below a path; None where the site speaks as itself."""
    return FAULTS.get(path.split("/", 2)[1] if path.startswith("/") else "")
