"""Power control of compute nodes through the API 2.0 of MAAS (https://maas.io/docs/api)."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import requests
from django.conf import settings
from requests_oauthlib import OAuth1
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from cluster.drivers import openstack_messages as messages
from cluster.drivers.base import (
    AnswerLost,
    Checkpoint,
    CloudError,
    CloudMisconfigured,
    CloudUnavailable,
    NodeNotFound,
    OperationFailed,
    OperationRefused,
)
from cluster.drivers.openstack.items import host_of
from cluster.drivers.openstack.operations import wait_until
from cluster.models import ComputeNode
from watcher_site.messages import cut, without_places

TOO_MANY_REQUESTS = 429
# The name of MAAS's default domain.
DEFAULT_DOMAIN = "maas"
Machine = Mapping[str, Any]


class Maas:
    """The power service of clouds with MAAS, at `settings.MAAS_URL`.

    A machine is found by the host name of its hypervisor: by the whole name (``fqdn``); or by the first part
    (``hostname``) if the hypervisor's name has no domain, or the machine is in MAAS's default domain.
    """

    name = "MAAS"

    def read_machines(self) -> list[Machine]:
        """Return all machines. Raises: `CloudError`."""
        return require_list(self.read("machines/"))

    def find_known_state(self, hypervisor: Any, machines: Iterable[Machine]) -> str | None:
        """Return the last known state of a hypervisor's machine among these, or None if it is unknown.

        Raises:
            OperationRefused: several machines match.
        """
        machine = choose_machine(hypervisor, machines)
        return power_state_of(machine.get("power_state")) if machine else None

    def find_state(self, hypervisor: Any) -> str:
        """Return the current state of a hypervisor's machine, which MAAS queries from the power controller."""
        return self.query_state(self.find_machine(hypervisor))

    def switch(self, hypervisor: Any, state: str, checkpoint: Checkpoint) -> None:
        """Switch a machine on or off, and wait for the end.

        Raises:
            OperationFailed: its power controller reports an error.
        """
        machine, host = self.find_machine(hypervisor), host_of(hypervisor)
        self.request("POST", path_of(machine), op=f"power_{state}")
        power_state = wait_until(
            lambda: self.query_state(machine),
            lambda power_state: power_state in (state, "error"),
            messages.SWITCHING.fill(node=host, power=state),
            checkpoint,
        )
        if power_state != state:
            reason = messages.MAAS_POWER_ERROR.text
            raise OperationFailed(messages.NOT_SWITCHED.fill(node=host, power=state, reason=reason))

    def find_machine(self, hypervisor: Any) -> Machine:
        """Return the machine of a hypervisor. Raises: `NodeNotFound`, or `OperationRefused` if several match."""
        names = {first_part(name) for name in names_of(hypervisor)}
        machine = choose_machine(hypervisor, require_list(self.read("machines/", hostname=sorted(names))))
        if machine is None:
            raise NodeNotFound(f"{hypervisor.name} in MAAS")
        return machine

    def query_state(self, machine: Machine) -> str:
        response = self.read(path_of(machine), op="query_power_state")
        if not isinstance(response, dict) or not isinstance(response.get("state"), str):
            raise CloudError(messages.MAAS_UNEXPECTED_ANSWER.fill(expected=messages.POWER_STATE.text))
        return power_state_of(response["state"]) or str(response["state"])

    def read(self, path: str, **query: Any) -> Any:
        """Send a query, and repeat it if MAAS does not respond. Raises: `CloudError`."""
        retrying = Retrying(
            retry=retry_if_exception_type(CloudUnavailable),
            stop=stop_after_attempt(settings.OPENSTACK_ATTEMPTS),
            wait=wait_exponential(multiplier=settings.OPENSTACK_WAIT, max=30),
            reraise=True,
        )
        return retrying(self.request, "GET", path, **query)

    def request(self, method: str, path: str, **query: Any) -> Any:
        """Send a request once, and return the decoded response. Raises: `CloudError`."""
        try:
            # Following a redirect would send the credentials to another address.
            response = requests.request(
                method,
                f"{settings.MAAS_URL.rstrip('/')}/api/2.0/{path}",
                params=query,
                auth=make_signature(),
                verify=settings.MAAS_CAFILE or True,
                timeout=settings.OPENSTACK_TIMEOUT,
                allow_redirects=False,
            )
        except requests.exceptions.SSLError as problem:
            raise CloudMisconfigured(messages.MAAS_UNTRUSTED.text) from problem
        except requests.RequestException as problem:
            raise AnswerLost(messages.MAAS_NO_ANSWER.fill(reason=type(problem).__name__)) from problem
        except OSError as problem:
            raise CloudMisconfigured(f"WATCHER_MAAS_CAFILE: {problem}") from problem
        if not response.ok or response.is_redirect:
            raise make_error(response.status_code, format_reason(response.text))
        try:
            return orjson.loads(response.content) if response.content else None
        except ValueError as problem:
            raise CloudError(messages.MAAS_UNEXPECTED_ANSWER.fill(expected="JSON")) from problem


def make_signature() -> OAuth1:
    """Return the signature of requests; an API key consists of a consumer, a token and its secret."""
    consumer, token, secret = settings.MAAS_API_KEY.split(":")
    return OAuth1(consumer, "", resource_owner_key=token, resource_owner_secret=secret, signature_method="PLAINTEXT")


def make_error(status: int, reason: str) -> CloudError:
    """Return the error for an HTTP status, with the reason of MAAS, which may be empty."""
    if status == 401:
        return CloudMisconfigured(messages.MAAS_REFUSES_KEY.fill(detail=reason))
    if status == 403:
        return CloudMisconfigured(messages.MAAS_DENIES_PERMISSION.fill(detail=reason))
    if status == TOO_MANY_REQUESTS or status >= 500:
        return CloudUnavailable(messages.MAAS_ANSWERED.fill(number=status, detail=reason))
    if status in (404, 410) or status < 400:
        return CloudMisconfigured(messages.NOT_MAAS.fill(number=status, detail=reason))
    return OperationRefused(messages.REFUSED_BY_MAAS.fill(detail=reason))


def format_reason(text: str) -> str:
    """Return the end of a message with the reason in a response, or "" if the response is HTML."""
    reason = " ".join(text.split())
    return f": {cut(without_places(reason))}" if reason and not reason.startswith("<") else ""


def require_list(response: Any) -> list[Machine]:
    if not isinstance(response, list) or not all(
        isinstance(machine, dict) and "system_id" in machine for machine in response
    ):
        raise CloudError(messages.MAAS_UNEXPECTED_ANSWER.fill(expected=messages.MACHINES.text))
    return response


def path_of(machine: Machine) -> str:
    return f"machines/{machine['system_id']}/"


def power_state_of(state: Any) -> str | None:
    """Return the `PowerState` of a state of MAAS, or None for "unknown", "error" and others."""
    return state if state in ComputeNode.PowerState.values else None


def names_of(hypervisor: Any) -> set[str]:
    return {hypervisor.name.lower(), host_of(hypervisor).lower()}


def first_part(name: str) -> str:
    return name.partition(".")[0]


def choose_machine(hypervisor: Any, machines: Iterable[Machine]) -> Machine | None:
    """Return the machine of a hypervisor, or None if there is none.

    Raises:
        OperationRefused: several machines, or several compute nodes, have its name.
    """
    names, machines = names_of(hypervisor), list(machines)
    matches = [machine for machine in machines if str(machine.get("fqdn")).lower() in names]
    if not matches:
        parts = {first_part(name) for name in names}
        has_domain = any("." in name for name in names)
        matches = [
            machine
            for machine in machines
            if str(machine.get("hostname")).lower() in parts
            and (not has_domain or str(machine.get("fqdn")).lower().partition(".")[2] == DEFAULT_DOMAIN)
        ]
        hosts = ComputeNode.objects.present().exclude(uuid=hypervisor.id).values_list("hostname", flat=True)
        if matches and (other_hosts := sorted(host for host in hosts if first_part(host.lower()) in parts)):
            values = {"node": host_of(hypervisor), "other": other_hosts[0], "machine": matches[0].get("fqdn")}
            raise OperationRefused(messages.ONE_MACHINE.fill(**values))
    if len(matches) > 1:
        machine_names = ", ".join(sorted(str(machine.get("fqdn")) for machine in matches))
        message = messages.SEVERAL_MACHINES
        raise OperationRefused(message.fill(node=host_of(hypervisor), machines=machine_names))
    return matches[0] if matches else None
