"""A Keystone on loopback: logins, the issue, validation and revocation of tokens, and outages."""

import json
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

DOMAIN = {"id": "default", "name": "Default"}
PROJECT = "9a2f41d3b6"
PASSWORD = "the service's password"


class Keystone(ThreadingHTTPServer):
    """The service at an address of its own.

    Attributes:
        tokens: Keystone's data of each token.
        validations: the tokens that were validated, in order.
        people: the roles of people who may log in, by scope: system, or the id of a project.
        is_failing: whether it answers 500 to all requests.
        answering: cleared, it answers no request until it is set again.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), KeystoneRequest)
        self.tokens: dict[str, dict[str, Any]] = {}
        self.validations: list[str] = []
        self.people: dict[str, dict[str, list[str]]] = {}
        self.is_failing = False
        self.answering = Event()
        self.answering.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def write_options(self, file: Path, **options: object) -> Path:
        """Write a file with the section of keystonemiddleware for this service."""
        every = {
            "auth_type": "password",
            "auth_url": self.url,
            "username": "watcher",
            "password": PASSWORD,
            "project_name": "service",
            "user_domain_id": "default",
            "project_domain_id": "default",
            "www_authenticate_uri": "https://keystone.example.org/v3",
            **options,
        }
        lines = [f"{name} = {value}" for name, value in every.items() if value is not None]
        file.write_text("\n".join(["[keystone_authtoken]", *lines, ""]))
        return file

    def issue(self, name: str = "rosa", *roles: str, project: str | None = PROJECT, **others: Any) -> str:
        """Return a token of a user, in a project unless that is None; ``others`` are further parts of it."""
        expires = datetime.now(UTC) + others.pop("lifetime", timedelta(hours=1))
        token = f"gAAAAA{uuid4().hex}-{uuid4().hex}_"
        self.tokens[token] = {
            "methods": ["password"],
            "audit_ids": [uuid4().hex],
            "issued_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
            "expires_at": f"{expires:%Y-%m-%dT%H:%M:%S.%fZ}",
            "user": {"id": f"id-of-{name}", "name": name, "domain": DOMAIN, "password_expires_at": None},
            **({"roles": [{"id": role, "name": role} for role in roles]} if roles else {}),
            **({"project": {"id": project, "name": "shop", "domain": DOMAIN}} if project else {}),
            "catalog": [],
            **others,
        }
        return token

    def find(self, token: str, allow_expired: bool = False) -> dict[str, Any] | None:
        found = self.tokens.get(token)
        is_expired = found is not None and datetime.fromisoformat(found["expires_at"]) <= datetime.now(UTC)
        return None if is_expired and not allow_expired else found


class KeystoneRequest(BaseHTTPRequestHandler):
    """A request to the Keystone server."""

    server: Keystone
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path.rstrip("/") == "/v3/auth/tokens":
            return self.validate(parse_qs(address.query).get("allow_expired") == ["1"])
        if address.path in ("/v3/auth/system", "/v3/auth/projects"):
            return self.find_scopes(address.path.rpartition("/")[2])
        if address.path == "/v3/auth/OS-FEDERATION/websso/openid":
            return self.send_page(parse_qs(address.query)["origin"][0])
        version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": f"{self.server.url}/v3/"}]}
        if address.path.rstrip("/") == "/v3":
            return self.answer(200, {"version": version})
        return self.answer(300, {"versions": {"values": [version]}})

    def do_DELETE(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.tokens.pop(self.headers["X-Subject-Token"], None) is None:
            return self.answer(404, {"error": {"code": 404, "title": "Not Found", "message": "No such token."}})
        return self.answer(204, None)

    def do_POST(self) -> None:
        auth = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["auth"]
        if auth["identity"]["methods"] == ["token"]:
            found = self.server.find(auth["identity"]["token"]["id"])
            return self.log_in(found and found["user"], auth["scope"])
        user = auth["identity"]["password"]["user"]
        if user["name"] in self.server.people:
            is_right = user["password"] == f"password of {user['name']}" and user["domain"] == {"name": "Default"}
            return self.log_in(is_right and {"id": f"id-of-{user['name']}", "name": user["name"]}, auth["scope"])
        if user["password"] != PASSWORD:
            return self.answer(401, {"error": {"code": 401, "title": "Unauthorized", "message": "Wrong password."}})
        token = self.server.issue(user["name"], "service", "admin", project="service")
        endpoints = [
            {"id": name, "interface": name, "region": "One", "region_id": "One", "url": f"{self.server.url}/v3"}
            for name in ("public", "internal", "admin")
        ]
        self.server.tokens[token]["catalog"] = [
            {"id": "identity", "type": "identity", "name": "keystone", "endpoints": endpoints}
        ]
        return self.answer(201, {"token": self.server.tokens[token]}, token)

    def log_in(self, user: Any, scope: Any) -> None:
        """Issue a token in a scope to a user who has a role in the scope."""
        roles = self.server.people.get(user["name"], {}) if user else {}
        place = "" if scope == "unscoped" else "system" if "system" in scope else scope["project"]["id"]
        if not user or (place and place not in roles):
            return self.answer(401, {"error": {"code": 401, "title": "Unauthorized", "message": "Not allowed."}})
        others: dict[str, Any] = {"system": {"all": True}} if place == "system" else {}
        project = place if place not in ("", "system") else None
        token = self.server.issue(user["name"], *roles.get(place, ()), project=project, **others)
        return self.answer(201, {"token": self.server.tokens[token]}, token)

    def send_page(self, origin: str) -> None:
        """Send the single sign-on page for rosa, who is logged in at the identity provider."""
        form = f'<form action="{origin}" method="post"><input name="token" value="{self.server.issue(project=None)}">'
        page = f"{form}</form><script>document.forms[0].submit()</script>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def find_scopes(self, kind: str) -> None:
        found = self.server.find(self.headers["X-Auth-Token"])
        if found is None:
            return self.answer(401, {"error": {"code": 401, "title": "Unauthorized", "message": "Who are you?"}})
        if kind == "system" and found["methods"] == ["openid"]:
            # As Keystone does for users of an identity provider who have groups.
            return self.answer(500, {"error": {"code": 500, "title": "Internal Server Error", "message": "Oops."}})
        places = self.server.people[found["user"]["name"]]
        systems = [{"all": True}] if "system" in places else []
        projects = [{"id": place, "name": "shop"} for place in places if place != "system"]
        return self.answer(200, {kind: systems if kind == "system" else projects})

    def validate(self, allow_expired: bool) -> None:
        if self.server.find(self.headers.get("X-Auth-Token", "")) is None:
            return self.answer(401, {"error": {"code": 401, "title": "Unauthorized", "message": "Who are you?"}})
        token = self.headers["X-Subject-Token"]
        self.server.validations.append(token)
        found = self.server.find(token, allow_expired)
        if found is None:
            return self.answer(404, {"error": {"code": 404, "title": "Not Found", "message": "No such token."}})
        return self.answer(200, {"token": found}, token)

    def answer(self, status: int, body: Any, token: str = "") -> None:
        self.server.answering.wait()
        sent = b"" if body is None else json.dumps(body).encode()
        self.send_response(500 if self.server.is_failing else status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        if token:
            self.send_header("X-Subject-Token", token)
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
