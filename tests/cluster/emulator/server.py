"""An OpenStack cloud over HTTP for tests: Keystone, Nova, Neutron, Glance, Placement, Cinder, Ironic and
Octavia, and the data sources of metrics.

It implements the requests of the driver, and keeps state. An operation ends after `Emulator.readings` reads of its
object. Each `Fault` of a test applies to the requests that match its pattern.
"""

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import uuid4

from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.cluster.emulator.cinder import Cinder
from tests.cluster.emulator.glance import Glance
from tests.cluster.emulator.ironic import Ironic
from tests.cluster.emulator.neutron import Neutron
from tests.cluster.emulator.nova import Nova
from tests.cluster.emulator.octavia import Octavia
from tests.cluster.emulator.placement import Placement
from tests.cluster.emulator.telemetry import OpenPrometheus, Telemetry

USER, PASSWORD, PROJECT = "watcher", "a password of the emulator", "0f5b6a1c7d3e4f2a9b8c7d6e5f4a3b2c"
SITE = "u1"
# The path of each service, by its type in the catalog.
SERVICES = {
    "identity": "/identity/v3",
    "compute": "/compute/v2.1",
    "placement": "/placement",
    "block-storage": f"/volume/v3/{PROJECT}",
    "baremetal": "/baremetal",
    "network": "/network",
    "image": "/image/v2",
    "load-balancer": "/load-balancer",
    "metric": "/metric",
    "metric-storage": "/prometheus",
}


CONTINUE = 100


@dataclass
class Fault:
    """A fault of the requests whose ``METHOD /path`` matches the pattern.

    ``status`` 0 drops the connection, 200 responds with a body that is not JSON, and 100 only calls ``callback``. A
    ``body`` is sent instead of the error of Nova with the ``message``. With ``after`` the request is executed before,
    and its response is lost.
    """

    pattern: str
    status: int = 0
    times: float = 1
    seconds: float = 0
    message: str = "It was ordered to fail."
    body: Any = None
    after: bool = False
    callback: Callable[[], object] | None = None


class Dropped(Exception):
    """The connection is closed without a response."""


class QuietHandler(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        pass


@dataclass
class Emulator:
    """The cloud and its HTTP server, from `start` to `stop`."""

    readings: float = 2
    page_size: int = 1000
    offered: set[str] = field(default_factory=lambda: set(SERVICES))
    requests: list[str] = field(default_factory=list)
    request_ids: list[tuple[str, str | None]] = field(default_factory=list)
    traceparents: list[tuple[str, str | None]] = field(default_factory=list)
    """The requests, each with its trace header; ``request_ids`` has the same with the request ID."""
    faults: list[Fault] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    password: str = PASSWORD
    project: str = PROJECT
    trusts: dict[str, dict[str, Any]] = field(default_factory=dict)
    owners: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The project and the user of each token of a trust."""
    people: dict[str, str] = field(default_factory=dict)
    """The user of each token that a test adds."""

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self.nova, self.placement, self.cinder, self.ironic = Nova(self), Placement(self), Cinder(self), Ironic(self)
        self.neutron, self.octavia, self.glance = Neutron(self), Octavia(self), Glance(self)
        self.telemetry = Telemetry(self)
        open_prometheus = OpenPrometheus(self.telemetry)
        self.parts = (self, self.nova, self.placement, self.cinder, self.ironic, self.neutron, self.octavia)
        self.parts += (self.telemetry, open_prometheus, self.glance)

    def start(self, port: int = 0) -> "Emulator":
        self.server = make_server("127.0.0.1", port, self, threaded=True, request_handler=QuietHandler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        return self

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def clouds_yaml(self) -> str:
        """Return the configuration of this cloud for openstacksdk, with the name ``emulated``."""
        auth = {
            "auth_url": f"{self.url}{SERVICES['identity']}",
            "username": USER,
            "password": PASSWORD,
            "project_id": PROJECT,
            "user_domain_id": "default",
        }
        return json.dumps({"clouds": {"emulated": {"auth": auth, "region_name": "RegionOne"}}})

    def fail(self, pattern: str, status: int = 0, **columns: Any) -> None:
        self.faults.append(Fault(pattern, status, **columns))

    def count(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, request)) for request in self.requests)

    # Requests.

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        request = Request(environ)
        try:
            response = self.answer(request)
        except Dropped:
            # The server still has open files of the socket: without the shutdown the client would wait.
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError from None
        return response(environ, start_response)

    def answer(self, request: Request) -> Response:
        line = f"{request.method} {request.path}"
        with self.lock:
            self.requests.append(line)
            self.request_ids.append((line, request.headers.get("X-OpenStack-Request-ID")))
            self.traceparents.append((line, request.headers.get("traceparent")))
            fault = next((fault for fault in self.faults if fault.times > 0 and re.search(fault.pattern, line)), None)
            if fault:
                fault.times -= 1
        if fault and not fault.after and (response := apply_fault(fault)):
            return response
        with self.lock:
            response = self.dispatch(request)
        return (apply_fault(fault) if fault and fault.after else None) or response

    def dispatch(self, request: Request) -> Response:
        try:
            (number, name), values = routes().bind_to_environ(request.environ).match()
            part = self.parts[number]
            is_open = getattr(part, "is_open", part is self)
            if not is_open and request.headers.get("X-Auth-Token") not in self.tokens:
                return error(401, "The request you have made requires authentication.")
            answer = getattr(part, name)(request, **values)
        except HTTPException as problem:
            return error(problem.code or 500, str(problem.description))
        return answer if isinstance(answer, Response) else reply(answer)

    # Keystone, and the discovery of each service.

    def rules(self) -> list[Rule]:
        return [
            Rule("/identity/v3", endpoint=self.discover_identity),
            Rule("/identity/v3/auth/tokens", methods=["POST"], endpoint=self.create_token),
            Rule("/identity/v3/OS-TRUST/trusts", methods=["POST"], endpoint=self.create_trust),
            Rule("/identity/v3/OS-TRUST/trusts/<trust>", methods=["DELETE"], endpoint=self.delete_trust),
            Rule("/compute/v2.1", endpoint=self.discover_compute),
            Rule("/placement", endpoint=self.discover_placement),
            Rule("/volume/v3", endpoint=self.discover_storage),
            Rule("/image/v2", endpoint=self.discover_images),
            Rule("/baremetal", endpoint=self.discover_baremetal),
            Rule("/baremetal/v1", endpoint=self.discover_baremetal),
        ]

    def discover_identity(self, request: Request) -> Any:
        return {"version": self.version("v3.14", "/identity/v3")}

    def discover_compute(self, request: Request) -> Any:
        return {"version": self.version("v2.1", "/compute/v2.1", version=self.nova.newest, min_version="2.1")}

    def discover_placement(self, request: Request) -> Any:
        return {"versions": [self.version("v1.0", "/placement", max_version="1.39", min_version="1.0")]}

    def discover_storage(self, request: Request) -> Any:
        return {"versions": [self.version("v3.0", "/volume/v3/", version="3.70", min_version="3.0")]}

    def discover_images(self, request: Request) -> Any:
        return {"versions": [self.version("v2.16", "/image/v2/")]}

    def discover_baremetal(self, request: Request) -> Any:
        version = self.version("v1", "/baremetal/v1", version="1.90", min_version="1.1")
        return {"versions": [version], "version": version, "id": "v1"}

    def version(self, name: str, path: str, **numbers: str) -> dict[str, Any]:
        links = [{"rel": "self", "href": f"{self.url}{path}"}]
        return {"id": name, "status": "CURRENT", "links": links, **numbers}

    def create_token(self, request: Request) -> Response:
        user = request.get_json()["auth"]["identity"]["password"]["user"]
        if (user["name"], user["password"]) != (USER, self.password):
            return error(401, "The request you have made requires authentication.")
        scope = request.get_json()["auth"].get("scope", {}).get("OS-TRUST:trust")
        trust = self.trusts.get(scope["id"]) if scope else None
        if scope and trust is None:
            return error(404, f"Could not find trust: {scope['id']}.")
        token = uuid4().hex
        self.tokens.add(token)
        if trust:
            self.owners[token] = (trust["project_id"], trust["trustor_user_id"])
        project, owner = self.owner_of(token)
        catalog = [
            {"type": kind, "name": kind, "endpoints": [self.endpoint(path)]}
            for kind, path in SERVICES.items()
            if kind in self.offered
        ]
        body = {
            "methods": ["password"],
            "user": {"id": owner, "name": owner, "domain": {"id": "default", "name": "Default"}},
            "project": {"id": project, "name": "admin", "domain": {"id": "default", "name": "Default"}},
            "expires_at": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() + 3600)),
            "issued_at": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()),
            "roles": [{"id": "r1", "name": "admin"}],
            "catalog": catalog,
        }
        return reply({"token": body}, 201, {"X-Subject-Token": token})

    def owner_of(self, token: str | None) -> tuple[str, str]:
        """Return the project and the user of a token. The default is those of the site."""
        return self.owners.get(token or "", (self.project, SITE))

    def create_trust(self, request: Request) -> Response:
        trust = request.get_json()["trust"]
        if self.people.get(request.headers.get("X-Auth-Token", "")) != trust["trustor_user_id"]:
            return error(403, "You are not authorized to perform the requested action.")
        key = uuid4().hex
        self.trusts[key] = trust
        return reply({"trust": {**trust, "id": key}}, 201)

    def delete_trust(self, request: Request, trust: str) -> Response:
        if self.trusts.pop(trust, None) is None:
            return error(404, f"Could not find trust: {trust}.")
        return Response(status=204)

    def endpoint(self, path: str) -> dict[str, Any]:
        where = {"region": "RegionOne", "region_id": "RegionOne", "interface": "public"}
        return {"id": uuid4().hex, "url": f"{self.url}{path}", **where}


@cache
def routes() -> Map:
    """Return the URL map, whose endpoints are the number of a part and the name of its method."""
    rules = []
    for number, part in enumerate(Emulator().parts):
        for rule in part.rules():
            rule.endpoint = (number, rule.endpoint.__name__)
            rules.append(rule)
    return Map(rules, merge_slashes=False, strict_slashes=False)


def apply_fault(fault: Fault) -> Response | None:
    time.sleep(fault.seconds)
    if fault.callback:
        fault.callback()
    if fault.status == CONTINUE:
        return None
    if not fault.status:
        raise Dropped
    if fault.body is not None:
        return Response(fault.body, fault.status, content_type="application/json")
    if fault.status == 200:
        return Response("<p>It works!</p>", content_type="text/html")
    return error(fault.status, fault.message)


def reply(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(body), status, headers, content_type="application/json")


def error(status: int, message: str) -> Response:
    """Return an error in the format of Nova and Cinder."""
    return reply({"error": {"code": status, "message": message}}, status)
