"""An identity service on loopback that responds like Keystone: versions, tokens, and a catalog with the site.

Its tokens are tokens of the site, so that the site accepts them. It has one account and one project.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

REGION = "RegionOne"
DOMAIN = {"id": "default", "name": "Default"}
PROJECT = "conformance"


@dataclass(frozen=True)
class Account:
    """An account of the site, with a token that `create_token` printed."""

    name: str
    password: str
    token: str


def identifier(name: str) -> str:
    return uuid5(NAMESPACE_DNS, name).hex


class Identity(ThreadingHTTPServer):
    """The server of the identity service; ``site`` is the URL of the site."""

    daemon_threads = True

    def __init__(self, account: Account, site: str) -> None:
        super().__init__(("127.0.0.1", 0), IdentityRequest)
        self.account, self.site = account, site

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v3"

    def version(self) -> dict[str, Any]:
        links = [{"rel": "self", "href": f"{self.url}/"}]
        return {"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z", "links": links}

    def is_known(self, body: Any) -> bool:
        """Return whether a body of POST /v3/auth/tokens has the name and password of the account, or its token."""
        identity = body["auth"]["identity"]
        if "token" in identity["methods"]:
            return compare_digest(identity["token"]["id"], self.account.token)
        user = identity["password"]["user"]
        names = {self.account.name, identifier(self.account.name)}
        known = user.get("name", user.get("id")) in names
        return known and compare_digest(user["password"], self.account.password)

    def token(self) -> dict[str, Any]:
        now = datetime.now(UTC)
        return {
            "token": {
                "methods": ["password"],
                "issued_at": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
                "expires_at": f"{now + timedelta(hours=12):%Y-%m-%dT%H:%M:%S.%fZ}",
                "user": {"id": identifier(self.account.name), "name": self.account.name, "domain": DOMAIN},
                "project": {"id": identifier(PROJECT), "name": PROJECT, "domain": DOMAIN},
                "roles": [{"id": identifier("admin"), "name": "admin"}],
                "catalog": [
                    catalog_entry("identity", "keystone", self.url),
                    catalog_entry("infra-optim", "watcher", self.site),
                ],
            }
        }


def catalog_entry(service_type: str, name: str, url: str) -> dict[str, Any]:
    endpoints = [
        {"id": identifier(f"{name}-{interface}"), "interface": interface, "region": REGION, "region_id": REGION}
        | {"url": url}
        for interface in ("public", "internal", "admin")
    ]
    return {"id": identifier(name), "type": service_type, "name": name, "endpoints": endpoints}


class IdentityRequest(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Identity

    def do_GET(self) -> None:
        path = self.path.rstrip("/")
        if path == "":
            self.answer(300, {"versions": {"values": [self.server.version()]}})
        elif path == "/v3":
            self.answer(200, {"version": self.server.version()})
        else:
            self.refuse(404, "Not Found")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.rstrip("/") != "/v3/auth/tokens":
            self.refuse(404, "Not Found")
        elif self.server.is_known(json.loads(body)):
            self.answer(201, self.server.token(), {"X-Subject-Token": self.server.account.token})
        else:
            self.refuse(401, "Unauthorized")

    def refuse(self, status: int, title: str) -> None:
        self.answer(status, {"error": {"code": status, "title": title, "message": title}})

    def answer(self, status: int, document: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print no message, since the responses contain all details."""


@contextmanager
def serving(account: Account, site: str) -> Iterator[str]:
    """Serve until the end of the context; yield the URL at which clients authenticate."""
    identity = Identity(account, site)
    Thread(target=identity.serve_forever, daemon=True).start()
    try:
        yield identity.url
    finally:
        identity.shutdown()
        identity.server_close()
