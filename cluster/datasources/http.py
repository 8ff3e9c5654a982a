"""The base class of data sources over HTTP, with retries, a time limit, and a size limit of responses."""

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
# In bytes; the response for a hundred thousand servers is smaller.
MAX_BYTES = 64 * 1024 * 1024

Send = Callable[[], requests.Response]


class Unavailable(Exception):
    """The server did not respond, or responded with a server error; a later request may succeed."""


class HTTPDatasource(Datasource):
    """A data source over HTTP. Requests are repeated after temporary problems."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The address of the server, for the log."""

    def request(self, send: Send) -> tuple[int, bytes]:
        """Send a request, with retries after temporary problems, and return the status and the body.

        Raises:
            DatasourceError: no attempt got a response.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(Unavailable),
            stop=stop_after_attempt(settings.DATASOURCE_ATTEMPTS),
            wait=wait_fixed(settings.DATASOURCE_WAIT),
            reraise=True,
        )
        try:
            response: tuple[int, bytes] = retrying(self.request_once, send)
            return response
        except Unavailable as problem:
            log.warning("data source not available", place=self.place, problem=str(problem))
            raise self.error(f"is not available: {problem}") from problem

    def request_once(self, send: Send) -> tuple[int, bytes]:
        """Send a request once.

        Raises:
            Unavailable: the server does not respond, or reports a temporary problem.
            DatasourceError: the certificate is not trusted, or a file of certificates cannot be read.
        """
        deadline = time.monotonic() + settings.DATASOURCE_TIMEOUT
        try:
            with send() as response:
                if response.status_code >= 500 or response.status_code == TOO_MANY_REQUESTS:
                    raise Unavailable(f"status {response.status_code}")
                return response.status_code, self.read_body(response, deadline)
        except requests.exceptions.SSLError as problem:
            raise self.error(f"is not trusted: {find_root_cause(problem)}") from problem
        except (requests.RequestException, HTTPError) as problem:
            raise Unavailable(type(problem).__name__) from problem
        except OSError as problem:
            raise DatasourceError(f"The data source {self.name} cannot be queried: {problem}") from problem

    def read_body(self, response: requests.Response, deadline: float) -> bytes:
        """Read a body until a deadline, because the timeout of a connection limits only the wait for each part."""
        body = bytearray()
        while chunk := response.raw.read1(CHUNK, decode_content=True):
            body += chunk
            if time.monotonic() > deadline:
                raise Unavailable(f"no whole answer within {settings.DATASOURCE_TIMEOUT:g} seconds")
            if len(body) > MAX_BYTES:
                raise DatasourceError(f"The answer of the data source {self.name} is larger than {MAX_BYTES} bytes.")
        return bytes(body)

    def refusal(self, status: int, reason: str) -> DatasourceError:
        """Return the error for an unusable response, with its reason, which may be empty."""
        verb = "answered" if status < 300 else "refused the query"
        if reason:
            return self.error(f"{verb} with status {status}: {reason}")
        is_other_server = status < 300 or status == HTTPStatus.NOT_FOUND
        unlike = f", and not as {self.name.capitalize()} does" if is_other_server else ""
        return self.error(f"{verb} with status {status}{unlike}.")

    def error(self, problem: str) -> DatasourceError:
        return DatasourceError(cut(without_places(f"The data source {self.name} {problem}")))


def find_root_cause(problem: BaseException) -> BaseException:
    """Return the innermost of nested exceptions of urllib3."""
    inner = next((part for part in problem.args if isinstance(part, BaseException)), None)
    inner = inner or getattr(problem, "reason", None)
    return find_root_cause(inner) if isinstance(inner, BaseException) else problem


def shared_by_vcpus(values: Mapping[str, float]) -> dict[str, float]:
    """Convert percentages of one vCPU to percentages of all vCPUs of each server, without unknown servers.

    The result is limited to 100, because samples at irregular intervals can give slightly more.
    """
    vcpus = {str(uuid): number for uuid, number in Server.objects.present().values_list("uuid", "vcpus")}
    return {uuid: min(value / max(vcpus[uuid], 1), 100) for uuid, value in values.items() if uuid in vcpus}


def with_short_names(values: Mapping[str, float]) -> dict[str, float]:
    """Add the values by the first part of the host name, if it is unique. The cloud may use this name."""
    times = Counter(name.partition(".")[0] for name in values)
    return {short: value for name, value in values.items() if times[short := name.partition(".")[0]] == 1} | dict(
        values
    )
