"""MAAS: the machines under compute nodes, by its API 2.0 (https://maas.io/docs/api), where it switches them."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import requests
from django.conf import settings
from requests_oauthlib import OAuth1
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

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
    """The machines of MAAS at `settings.MAAS_URL`.

    A machine is found by the host name of its hypervisor: by the whole name (``fqdn``), or by its first part
    (``hostname``) if the hypervisor's name has no domain, or the machine is in the domain that MAAS gives by default.
    """

    name = "MAAS"

    def read_machines(self) -> list[Machine]:
        """Return all machines. Raises: `CloudError`."""
        return require_list(self.read("machines/"))

    def choose_state(self, hypervisor: Any, machines: Iterable[Machine]) -> str | None:
        """Return the state of a hypervisor's machine when MAAS last looked, or None if it does not know it.

        Raises:
            OperationRefused: several machines may be meant.
        """
        machine = choose_machine(hypervisor, machines)
        return power_state_of(machine.get("power_state")) if machine else None

    def find_state(self, hypervisor: Any) -> str:
        """Return the present state of a hypervisor's machine, which MAAS queries from its power controller."""
        return self.query_state(self.find_machine(hypervisor))

    def switch(self, hypervisor: Any, state: str, checkpoint: Checkpoint) -> None:
        """Switch a machine on or off, and wait until it is.

        Raises:
            OperationFailed: its power controller reports a fault.
        """
        machine, host = self.find_machine(hypervisor), host_of(hypervisor)
        self.request("POST", path_of(machine), op=f"power_{state}")
        found = wait_until(
            lambda: self.query_state(machine),
            lambda found: found in (state, "error"),
            f"Switching compute node {host} {state}",
            checkpoint,
        )
        if found != state:
            raise OperationFailed(f"Compute node {host} did not go {state}: MAAS reports an error of its power")

    def find_machine(self, hypervisor: Any) -> Machine:
        """Raises: `NodeNotFound`, or `OperationRefused` if several machines may be meant."""
        names = {first_part(name) for name in names_of(hypervisor)}
        machine = choose_machine(hypervisor, require_list(self.read("machines/", hostname=sorted(names))))
        if machine is None:
            raise NodeNotFound(f"{hypervisor.name} in MAAS")
        return machine

    def query_state(self, machine: Machine) -> str:
        answer = self.read(path_of(machine), op="query_power_state")
        if not isinstance(answer, dict) or not isinstance(answer.get("state"), str):
            raise CloudError("MAAS does not answer as its API does: a power state is expected.")
        return power_state_of(answer["state"]) or str(answer["state"])

    def read(self, path: str, **query: Any) -> Any:
        """Send a query, which is repeated if it is not answered. Raises: `CloudError`."""
        retrying = Retrying(
            retry=retry_if_exception_type(CloudUnavailable),
            stop=stop_after_attempt(settings.OPENSTACK_ATTEMPTS),
            wait=wait_exponential(multiplier=settings.OPENSTACK_WAIT, max=30),
            reraise=True,
        )
        return retrying(self.request, "GET", path, **query)

    def request(self, method: str, path: str, **query: Any) -> Any:
        """Send a request once, and return its answer. Raises: `CloudError`."""
        try:
            # A redirect is not followed: it would carry the credentials along.
            answer = requests.request(
                method,
                f"{settings.MAAS_URL.rstrip('/')}/api/2.0/{path}",
                params=query,
                auth=signature(),
                verify=settings.MAAS_CAFILE or True,
                timeout=settings.OPENSTACK_TIMEOUT,
                allow_redirects=False,
            )
        except requests.exceptions.SSLError as problem:
            raise CloudMisconfigured("MAAS is not trusted: set WATCHER_MAAS_CAFILE") from problem
        except requests.RequestException as problem:
            raise AnswerLost(f"MAAS does not answer: {type(problem).__name__}") from problem
        except OSError as problem:
            raise CloudMisconfigured(f"WATCHER_MAAS_CAFILE: {problem}") from problem
        if not answer.ok or answer.is_redirect:
            raise judge_status(answer.status_code, reason_in(answer.text))
        try:
            return orjson.loads(answer.content) if answer.content else None
        except ValueError as problem:
            raise CloudError("MAAS does not answer as its API does: JSON is expected.") from problem


def signature() -> OAuth1:
    """Return the signature of requests: an API key has a consumer, a token and its secret."""
    consumer, token, secret = settings.MAAS_API_KEY.split(":")
    return OAuth1(consumer, "", resource_owner_key=token, resource_owner_secret=secret, signature_method="PLAINTEXT")


def judge_status(status: int, reason: str) -> CloudError:
    """Return the meaning of a status, with the reason, if MAAS gives one."""
    if status == 401:
        return CloudMisconfigured(f"MAAS refuses WATCHER_MAAS_API_KEY{reason}")
    if status == 403:
        return CloudMisconfigured(f"MAAS does not give us the right to do it{reason}")
    if status == TOO_MANY_REQUESTS or status >= 500:
        return CloudUnavailable(f"MAAS answered with status {status}{reason}")
    if status in (404, 410) or status < 400:
        return CloudMisconfigured(
            f"WATCHER_MAAS_URL does not lead to MAAS, or the machine is gone: status {status}{reason}"
        )
    return OperationRefused(f"MAAS refused it{reason}")


def reason_in(text: str) -> str:
    """Return the reason of a refusal, which MAAS gives as a line of text, for the end of a message."""
    words = " ".join(text.split())
    return f": {cut(without_places(words))}" if words and not words.startswith("<") else ""


def require_list(answer: Any) -> list[Machine]:
    if not isinstance(answer, list) or not all(isinstance(one, dict) and "system_id" in one for one in answer):
        raise CloudError("MAAS does not answer as its API does: a list of machines is expected.")
    return answer


def path_of(machine: Machine) -> str:
    return f"machines/{machine['system_id']}/"


def power_state_of(state: Any) -> str | None:
    """Return a state as we have it: MAAS also has ``unknown`` and ``error``."""
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
    whole = [one for one in machines if str(one.get("fqdn")).lower() in names]
    if not whole:
        parts = {first_part(name) for name in names}
        has_domain = any("." in name for name in names)
        whole = [
            one
            for one in machines
            if str(one.get("hostname")).lower() in parts
            and (not has_domain or str(one.get("fqdn")).lower().partition(".")[2] == DEFAULT_DOMAIN)
        ]
        hosts = ComputeNode.objects.present().exclude(uuid=hypervisor.id).values_list("hostname", flat=True)
        if whole and (others := sorted(host for host in hosts if first_part(host.lower()) in parts)):
            both = f"{host_of(hypervisor)} and {others[0]}"
            raise OperationRefused(f"Compute nodes {both} may both be the machine {whole[0].get('fqdn')} of MAAS")
    if len(whole) > 1:
        found = ", ".join(sorted(str(one.get("fqdn")) for one in whole))
        raise OperationRefused(f"Several machines of MAAS may be compute node {host_of(hypervisor)}: {found}")
    return whole[0] if whole else None
