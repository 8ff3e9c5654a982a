"""Asks a Prometheus server: again where it may answer the next time, and never longer than was allowed."""

import time
from typing import Any
from urllib.parse import urlsplit

import orjson
import requests
import structlog
from django.conf import settings
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed
from urllib3.exceptions import HTTPError

from cluster.datasources.base import DatasourceError
from watcher_site.messages import cut, without_places

log = structlog.get_logger(__name__)
TOO_MANY_REQUESTS = 429
CHUNK = 64 * 1024
# More than the answer for a hundred thousand servers, in bytes.
LARGEST = 64 * 1024 * 1024


class Unavailable(Exception):
    """The server did not answer, or with an error of its own: it may answer the next time."""


def query(expression: str) -> list[dict[str, Any]]:
    """Run an instant query that gives a vector, with retries, and return its samples.

    Raises:
        DatasourceError: the query was not answered.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(Unavailable),
        stop=stop_after_attempt(settings.DATASOURCE_ATTEMPTS),
        wait=wait_fixed(settings.DATASOURCE_WAIT),
        reraise=True,
    )
    try:
        return vector_of(*retrying(ask, expression))
    except Unavailable as problem:
        log.warning("the data source is not available", place=server_address(), problem=str(problem))
        raise DatasourceError(f"The data source prometheus is not available: {problem}") from problem


def server_address() -> str:
    """Return the host and the port of the server, for the log, without the secrets that its URL may have."""
    parts = urlsplit(settings.PROMETHEUS_URL)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def ask(expression: str) -> tuple[int, bytes]:
    """Send a query once, and return the status and the body of an answer that a retry would not change.

    Raises:
        Unavailable: there is no answer, or the server reports a temporary problem.
        DatasourceError: the server could not be trusted, or a file that is needed for that could not be read.
    """
    address = settings.PROMETHEUS_URL.rstrip("/") + "/api/v1/query"
    deadline = time.monotonic() + settings.DATASOURCE_TIMEOUT
    try:
        # A redirect is not followed: it leads from the API to a page, and would carry the credentials along.
        with requests.post(
            address,
            data={"query": expression},
            timeout=settings.DATASOURCE_TIMEOUT,
            stream=True,
            allow_redirects=False,
            **credentials(),
        ) as answer:
            if answer.status_code >= 500 or answer.status_code == TOO_MANY_REQUESTS:
                raise Unavailable(f"status {answer.status_code}")
            return answer.status_code, body_of(answer, deadline)
    except requests.exceptions.SSLError as problem:
        reason = without_places(str(find_root_cause(problem)))
        raise DatasourceError(cut(f"The data source prometheus is not trusted: {reason}")) from problem
    except (requests.RequestException, HTTPError) as problem:
        raise Unavailable(type(problem).__name__) from problem
    except OSError as problem:
        raise DatasourceError(f"The data source prometheus can not be asked: {problem}") from problem


def credentials() -> dict[str, Any]:
    """Return who we are and whom we trust, where the settings say so."""
    known: dict[str, Any] = {"verify": settings.PROMETHEUS_CAFILE or True}
    if settings.PROMETHEUS_USERNAME:
        known["auth"] = (settings.PROMETHEUS_USERNAME, settings.PROMETHEUS_PASSWORD)
    if settings.PROMETHEUS_CERTFILE:
        known["cert"] = (settings.PROMETHEUS_CERTFILE, settings.PROMETHEUS_KEYFILE or settings.PROMETHEUS_CERTFILE)
    return known


def body_of(answer: requests.Response, deadline: float) -> bytes:
    """Read an answer, which may come in drops: the timeout of a connection is only that between two of them."""
    body = bytearray()
    while chunk := answer.raw.read1(CHUNK, decode_content=True):
        body += chunk
        if time.monotonic() > deadline:
            raise Unavailable(f"no whole answer within {settings.DATASOURCE_TIMEOUT:g} seconds")
        if len(body) > LARGEST:
            raise DatasourceError(f"The answer of the data source prometheus is larger than {LARGEST} bytes.")
    return bytes(body)


def find_root_cause(problem: BaseException) -> BaseException:
    """Return the innermost of the exceptions that urllib3 packs into each other."""
    inner = next((part for part in problem.args if isinstance(part, BaseException)), None)
    inner = inner or getattr(problem, "reason", None)
    return find_root_cause(inner) if isinstance(inner, BaseException) else problem


def vector_of(status: int, body: bytes) -> list[dict[str, Any]]:
    """Return the samples of an answer.

    Raises:
        DatasourceError: the question was refused, or the answer is not Prometheus's.
    """
    try:
        answer = orjson.loads(body)
        if answer["status"] == "success":
            vector: list[dict[str, Any]] = answer["data"]["result"]
            # As each sample is read later: what is no vector ends here.
            [(sample["metric"].items(), float(sample["value"][1])) for sample in vector]
            return vector
        reason = f": {answer['error']}"
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        reason = ", and not as Prometheus does." if status < 300 else "."
    verb = "answered" if status < 300 else "refused the query"
    raise DatasourceError(cut(without_places(f"The data source prometheus {verb} with status {status}{reason}")))
