"""MAAS over HTTP for tests: machines that are powered on and off, as documented for its API."""

import re
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import orjson
from werkzeug import Request, Response
from werkzeug.exceptions import Conflict, Forbidden, HTTPException, NotFound, Unauthorized
from werkzeug.serving import WSGIRequestHandler, make_server

CONSUMER, TOKEN, SECRET = "Wx7dPtVJ5YvZdWTzdG", "x6Q3zWDq8kFbYVnGGT", "p5qQSM7BqNvfVhkUHWxnfRqgXnSe8gZk"


class Quiet(WSGIRequestHandler):
    """Logs nothing, so that the output has only lines of the tests."""

    def log(self, *args: Any) -> None:
        pass


@dataclass
class EmulatedMaas:
    """A MAAS on loopback.

    Attributes:
        requests: the method and the path of each request, in order.
        fault: a pattern of ``METHOD op``, the status of the responses to matching requests, and their number.
    """

    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    fault: tuple[str, int, int] = ("", 0, 0)
    readings: int = 2

    def start(self) -> None:
        self.server = make_server("127.0.0.1", 0, self.answer, threaded=True, request_handler=Quiet)
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/MAAS"

    def add(self, hostname: str, domain: str = "maas", power_state: str = "on") -> dict[str, Any]:
        """Add a machine with the values that the driver reads."""
        key = f"key{len(self.machines)}"
        self.machines[key] = {
            "system_id": key,
            "hostname": hostname,
            "fqdn": f"{hostname}.{domain}",
            "domain": {"name": domain, "id": 0},
            "power_type": "ipmi",
            "power_state": power_state,
            "status_name": "Deployed",
            "next_state": "",
            "left": 0,
            "error": "",
        }
        return self.machines[key]

    def answer(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        try:
            response = self.dispatch(request)
        except HTTPException as problem:
            response = Response(problem.description, problem.code, content_type="text/plain")
        return response(environ, start_response)

    def dispatch(self, request: Request) -> Response:
        operation = request.args.get("op", "")
        self.requests.append((request.method, f"{request.path}?{request.query_string.decode()}".rstrip("?")))
        pattern, status, times = self.fault
        if times and re.fullmatch(pattern, f"{request.method} {operation}"):
            self.fault = pattern, status, times - 1
            return Response("The power controller is busy.", status, content_type="text/plain")
        self.verify(request.headers.get("Authorization", ""))
        found = re.fullmatch(r"/MAAS/api/2\.0/machines/(?:(\w+)/)?", request.path)
        if found is None:
            raise NotFound("Unknown API endpoint")
        if found[1] is None:
            return json(self.list(request.args.getlist("hostname")))
        if found[1] not in self.machines:
            raise NotFound("No Machine matches the given query.")
        return json(self.operate(self.machines[found[1]], request.method, operation))

    def verify(self, header: str) -> None:
        sent = dict(re.findall(r'(\w+)="([^"]*)"', header))
        expected = {
            "oauth_consumer_key": CONSUMER,
            "oauth_token": TOKEN,
            "oauth_signature_method": "PLAINTEXT",
            "oauth_signature": f"%26{SECRET}",
        }
        if expected.items() - sent.items():
            raise Unauthorized("Authorization Error: Invalid API key.")

    def list(self, names: list[str]) -> list[dict[str, Any]]:
        return [one for one in self.machines.values() if not names or one["hostname"] in names]

    def operate(self, machine: dict[str, Any], method: str, operation: str) -> dict[str, Any]:
        if (method, operation) == ("GET", "query_power_state"):
            machine["left"] -= 1
            if machine["next_state"] and machine["left"] <= 0:
                machine["power_state"], machine["next_state"] = machine["error"] or machine["next_state"], ""
            return {"state": machine["power_state"]}
        if machine["status_name"] == "Ready":
            raise Conflict("Can't start node: it hasn't been allocated.")
        if machine["status_name"] == "Locked":
            raise Forbidden("Forbidden")
        machine["next_state"], machine["left"] = operation.removeprefix("power_"), self.readings
        return machine


def json(found: Any) -> Response:
    return Response(orjson.dumps(found), content_type="application/json")
