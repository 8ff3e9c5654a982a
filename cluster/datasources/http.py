"""The base of data sources that are queried over HTTP: retries, a time limit, and a limit of the size of an answer."""

import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from http import HTTPStatus

import requests
import structlog
from django.conf import settings
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed
from urllib3.exceptions import HTTPError

from cluster.datasources.base import Datasource, DatasourceError
from cluster.models import Server
from watcher_site.messages import cut, without_places

log = structlog.get_logger(__name__)
TOO_MANY_REQUESTS = 429
CHUNK = 64 * 1024
# More than the answer for a hundred thousand servers, in bytes.
LARGEST = 64 * 1024 * 1024

Send = Callable[[], requests.Response]


class Unavailable(Exception):
    """The server did not answer, or with an error of its own: it may answer the next time."""


class HTTPDatasource(Datasource):
    """A data source that answers over HTTP. A request is repeated where that may help, within a time limit."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The address of the server, for the log."""

    def request(self, send: Send) -> tuple[int, bytes]:
        """Send a request, with retries, and return the status and the body of an answer that a retry would not change.

        Raises:
            DatasourceError: there was no such answer.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(Unavailable),
            stop=stop_after_attempt(settings.DATASOURCE_ATTEMPTS),
            wait=wait_fixed(settings.DATASOURCE_WAIT),
            reraise=True,
        )
        try:
            found: tuple[int, bytes] = retrying(self.request_once, send)
            return found
        except Unavailable as problem:
            log.warning("the data source is not available", place=self.place, problem=str(problem))
            raise self.error(f"is not available: {problem}") from problem

    def request_once(self, send: Send) -> tuple[int, bytes]:
        """Send a request once.

        Raises:
            Unavailable: there is no answer, or the server reports a temporary problem.
            DatasourceError: the server could not be trusted, or a file that is needed for that could not be read.
        """
        deadline = time.monotonic() + settings.DATASOURCE_TIMEOUT
        try:
            with send() as answer:
                if answer.status_code >= 500 or answer.status_code == TOO_MANY_REQUESTS:
                    raise Unavailable(f"status {answer.status_code}")
                return answer.status_code, self.read_body(answer, deadline)
        except requests.exceptions.SSLError as problem:
            raise self.error(f"is not trusted: {find_root_cause(problem)}") from problem
        except (requests.RequestException, HTTPError) as problem:
            raise Unavailable(type(problem).__name__) from problem
        except OSError as problem:
            raise DatasourceError(f"The data source {self.name} cannot be queried: {problem}") from problem

    def read_body(self, answer: requests.Response, deadline: float) -> bytes:
        """Read an answer, which may come in drops: the timeout of a connection is only that between two of them."""
        body = bytearray()
        while chunk := answer.raw.read1(CHUNK, decode_content=True):
            body += chunk
            if time.monotonic() > deadline:
                raise Unavailable(f"no whole answer within {settings.DATASOURCE_TIMEOUT:g} seconds")
            if len(body) > LARGEST:
                raise DatasourceError(f"The answer of the data source {self.name} is larger than {LARGEST} bytes.")
        return bytes(body)

    def refusal(self, status: int, reason: str) -> DatasourceError:
        """Return the error for an answer that is none, with its reason, if it gives one."""
        verb = "answered" if status < 300 else "refused the query"
        if reason:
            return self.error(f"{verb} with status {status}: {reason}")
        is_other_server = status < 300 or status == HTTPStatus.NOT_FOUND
        unlike = f", and not as {self.name.capitalize()} does" if is_other_server else ""
        return self.error(f"{verb} with status {status}{unlike}.")

    def error(self, problem: str) -> DatasourceError:
        return DatasourceError(cut(without_places(f"The data source {self.name} {problem}")))


def find_root_cause(problem: BaseException) -> BaseException:
    """Return the innermost of the exceptions that urllib3 packs into each other."""
    inner = next((part for part in problem.args if isinstance(part, BaseException)), None)
    inner = inner or getattr(problem, "reason", None)
    return find_root_cause(inner) if isinstance(inner, BaseException) else problem


def shared_by_vcpus(found: Mapping[str, float]) -> dict[str, float]:
    """Return percentages of all vcpus of each server for percentages of one. Servers that we do not know are left out.

    Samples are not of exactly equal distance, so that a busy server may come out a little above 100 %.
    """
    vcpus = {str(uuid): number for uuid, number in Server.objects.present().values_list("uuid", "vcpus")}
    return {uuid: min(value / max(vcpus[uuid], 1), 100) for uuid, value in found.items() if uuid in vcpus}


def with_short_names(found: Mapping[str, float]) -> dict[str, float]:
    """Add each value under the first part of its name, where that names one node: clouds may know it by that."""
    times = Counter(name.partition(".")[0] for name in found)
    return {short: value for name, value in found.items() if times[short := name.partition(".")[0]] == 1} | dict(found)
