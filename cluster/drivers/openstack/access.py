"""Access to an OpenStack cloud: one connection for each process, and the conversion of errors to `CloudError`."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from keystoneauth1 import exceptions as keystone
from openstack import exceptions as sdk
from openstack.config import OpenStackConfig
from openstack.connection import Connection
from openstack.utils import supports_microversion
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from cluster.drivers import openstack_messages as messages
from cluster.drivers.base import (
    AnswerLost,
    CloudBusy,
    CloudError,
    CloudMisconfigured,
    CloudUnavailable,
    OperationRefused,
)
from cluster.drivers.openstack.session import CloudSession

T = TypeVar("T")


class ListChanged(CloudUnavailable):
    """A list must be read again from its beginning, because the marker of its next page was deleted."""


CloudRequest = Callable[[Connection], T]

# The statuses of a proxy without a response from the service behind it.
PROXY_FAILURES = {502, 504}
# The beginning of Nova's messages about quotas, which have the same status as missing rights.
QUOTA_EXCEEDED = "Quota exceeded"
# Nova's message about a marker that was deleted meanwhile.
MARKER_GONE = re.compile(r"marker \[.*\] not found", re.IGNORECASE)
# The first microversion with UUIDs of hypervisors and services, and with destinations of cold migrations.
OLDEST_COMPUTE = "2.56"
APP_NAME = "watcher-site"


class Access:
    """The connection to the cloud of ``clouds.yaml`` and `settings.OPENSTACK_CLOUD`, made on first use.

    Threads share it, because sessions of keystoneauth renew their token under a lock.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.connection: Connection | None = None

    def read(self, request: CloudRequest[T], missing: CloudError | None = None) -> T:
        """Send a request without side effects, and repeat it if the cloud does not respond.

        Raises:
            CloudError: the request failed; ``missing`` if the cloud returns 404.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(CloudUnavailable),
            stop=stop_after_attempt(settings.OPENSTACK_ATTEMPTS),
            wait=wait_exponential(multiplier=settings.OPENSTACK_WAIT, max=30),
            reraise=True,
        )
        response: T = retrying(self.send, request, missing)
        return response

    def send(self, request: CloudRequest[T], missing: CloudError | None = None) -> T:
        """Send a request once. Raises: `CloudError`; ``missing`` if the cloud returns 404."""
        with translated(missing):
            return request(self.connect())

    def has(self, service_type: str) -> bool:
        """Return whether the catalog has an endpoint of a service."""
        return self.read(lambda cloud: cloud.endpoint_for(service_type)) is not None

    def require(self, service_type: str, name: str) -> None:
        if not self.has(service_type):
            raise CloudError(messages.SERVICE_MISSING.fill(service=name, type=service_type))

    @property
    def project(self) -> str:
        """The id of the login's project, which owns the servers that the login creates."""
        return str(self.read(lambda cloud: cloud.current_project_id))

    @property
    def user(self) -> str:
        """The id of the user of the login."""
        return str(self.read(lambda cloud: cloud.current_user_id))

    def connect(self) -> Connection:
        with self.lock:
            if self.connection is None:
                self.connection = self.make_connection()
            return self.connection

    def make_connection(self) -> Connection:
        return make_connection()


def connect(timeout: float | None = None, name: str = "") -> Connection:
    """Return a connection to the cloud ``name`` of ``clouds.yaml``, by default `settings.OPENSTACK_CLOUD`.

    ``timeout`` is the number of seconds to wait for each response, by default `settings.OPENSTACK_TIMEOUT`.
    """
    config = OpenStackConfig(session_constructor=CloudSession, app_name=APP_NAME)
    region = config.get_one(
        cloud=name or settings.OPENSTACK_CLOUD or None, api_timeout=timeout or settings.OPENSTACK_TIMEOUT
    )
    return Connection(config=region)


def make_connection() -> Connection:
    connection = connect()
    if connection.endpoint_for("compute") is None:
        raise CloudMisconfigured(messages.SERVICE_MISSING.fill(service="Nova", type="compute"))
    if not supports_microversion(connection.compute, OLDEST_COMPUTE) and not is_recent(connection.compute):
        raise CloudMisconfigured(messages.NOVA_TOO_OLD.fill(version=OLDEST_COMPUTE))
    return connection


def is_recent(compute: Any) -> bool:
    """Return whether Nova is recent enough. Unlike openstacksdk, raise an error if Nova does not respond."""
    response = compute.get("/")
    sdk.raise_from_response(response)
    newest = str(response.json()["version"].get("version") or "2.0")
    return [int(part) for part in newest.split(".")] >= [int(part) for part in OLDEST_COMPUTE.split(".")]


@contextmanager
def translated(missing: CloudError | None = None) -> Iterator[None]:
    """Convert exceptions of openstacksdk and keystoneauth to `CloudError`."""
    try:
        yield
    except sdk.NotFoundException as problem:
        raise missing or OperationRefused(messages.UNKNOWN_TO_CLOUD.fill(reason=explain(problem))) from problem
    except sdk.HttpException as problem:
        raise translate_http_error(problem) from problem
    except (keystone.Unauthorized, keystone.Forbidden, keystone.AuthorizationFailure) as problem:
        raise CloudMisconfigured(messages.CREDENTIALS_REJECTED.fill(reason=explain(problem))) from problem
    except keystone.ConnectionError as problem:
        raise AnswerLost(messages.NO_ANSWER.fill(reason=explain(problem))) from problem
    except (keystone.HttpServerError, keystone.DiscoveryFailure) as problem:
        raise CloudUnavailable(messages.NO_ANSWER.fill(reason=explain(problem))) from problem
    except (sdk.ConfigException, keystone.AuthPluginException) as problem:
        raise CloudMisconfigured(messages.UNUSABLE_CONFIGURATION.fill(reason=explain(problem))) from problem
    except (sdk.SDKException, keystone.ClientException) as problem:
        raise CloudError(messages.NOT_QUERIED.fill(reason=explain(problem))) from problem
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        # openstacksdk raises these for responses that are not JSON or have an unexpected structure.
        raise CloudError(messages.INVALID_RESPONSE.fill(reason=type(problem).__name__)) from problem


def translate_http_error(problem: sdk.HttpException) -> CloudError:
    """Return the `CloudError` for an HTTP error."""
    status = problem.status_code or 0
    reason = join_lines(problem.details or "") or explain(problem)
    if status == 401:
        return CloudMisconfigured(messages.CREDENTIALS_REJECTED.fill(reason=reason))
    if status == 403 and reason.startswith(QUOTA_EXCEEDED):
        return OperationRefused(messages.QUOTA_FORBIDS.fill(reason=reason))
    if status == 403:
        return CloudMisconfigured(messages.PERMISSION_DENIED.fill(reason=reason))
    if status == 429 or status >= 500:
        place = urlsplit(str(problem.url or "")).netloc
        kind = AnswerLost if status in PROXY_FAILURES else CloudUnavailable
        return kind(messages.ANSWERED_WITH_STATUS.fill(number=status, place=place, reason=reason))
    if status == 400 and MARKER_GONE.match(reason):
        return ListChanged(messages.LIST_CHANGED_BECAUSE.fill(reason=reason))
    if status == 409:
        return CloudBusy(messages.REFUSED_BY_CLOUD.fill(reason=reason))
    return OperationRefused(messages.REFUSED_BY_CLOUD.fill(reason=reason))


def join_lines(text: object) -> str:
    return " ".join(str(text).split())


def explain(problem: Exception) -> str:
    """Return the first part of an error's message, without the details that the libraries add."""
    return join_lines(problem).split(": HTTPConnectionPool")[0].split(" (Request-ID")[0]
