"""An OpenID provider on loopback: discovery, signed ID tokens, proof keys, UserInfo, and invalid responses."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import time
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from django.core.cache import cache

CLIENT, SECRET = "watcher", "the client's secret"


@lru_cache
def make_key(name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Provider(ThreadingHTTPServer):
    """A provider with one user who is always logged in.

    Attributes:
        claims: claims of the ID token in addition to the required claims; a value of None removes a claim.
        shifted: the seconds that are added to times in the ID token.
        userinfo: the content of UserInfo.
        key: the name of the key that signs.
        nonce: a nonce in place of the nonce of the request.
        configuration: the content of discovery in addition to the endpoints.
        paths: the paths of the requests, in order.
        is_failing: whether it answers 500 to all requests.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ProviderRequest)
        self.claims: dict[str, Any] = {"preferred_username": "rosa", "groups": ["cloud-team"]}
        self.shifted: dict[str, int] = {}
        self.userinfo: dict[str, Any] = {}
        self.configuration: dict[str, Any] = {}
        self.key, self.nonce, self.is_failing = "own", "", False
        self.paths: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/realms/staff"

    def describe(self) -> dict[str, Any]:
        names = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "keys"}
        endpoints = {name: f"{self.url}/{path}" for name, path in names.items()}
        others = {"userinfo_endpoint": f"{self.url}/userinfo", "end_session_endpoint": f"{self.url}/logout"}
        return {"issuer": self.url, **endpoints, **others, **self.configuration}

    def make_id_token(self, nonce: str) -> str:
        now = int(time())
        own = {"iss": self.url, "sub": "subject-of-rosa", "aud": CLIENT, "iat": now, "exp": now + 300}
        claims = {**own, "nonce": self.nonce or nonce, **self.claims}
        for name, seconds in self.shifted.items():
            claims[name] += seconds
        sent = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(sent, make_key(self.key), algorithm="RS256", headers={"kid": "one"})


class ProviderRequest(BaseHTTPRequestHandler):
    """A request to the provider."""

    server: Provider

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        name = address.path.rpartition("/")[2]
        self.server.paths.append(name)
        if name == "openid-configuration":
            return self.answer(200, self.server.describe())
        if name == "keys":
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(make_key("own").public_key()))
            return self.answer(200, {"keys": [{**public, "kid": "one", "alg": "RS256", "use": "sig"}]})
        if name == "userinfo":
            return self.answer(200, {"sub": "subject-of-rosa", **self.server.userinfo})
        if name == "auth":
            return self.authorize({key: value for key, [value] in parse_qs(address.query).items()})
        return self.redirect_to(parse_qs(address.query)["post_logout_redirect_uri"][0])

    def authorize(self, fields: dict[str, str]) -> None:
        code = uuid4().hex
        self.server.codes[code] = fields
        self.redirect_to(f"{fields['redirect_uri']}?{urlencode({'code': code, 'state': fields['state']})}")

    def redirect_to(self, address: str) -> None:
        self.send_response(302)
        self.send_header("Location", address)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.paths.append("token")
        fields = {key: value for key, [value] in parse_qs(sent).items()}
        _, _, basic = self.headers.get("Authorization", "").partition("Basic ")
        client = tuple(map(unquote, base64.b64decode(basic).decode().split(":", 1)))
        wanted = self.server.codes.pop(fields["code"], {})
        digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        known = client == (CLIENT, SECRET) and wanted.get("redirect_uri") == fields["redirect_uri"]
        if not known or wanted["code_challenge_method"] != "S256" or wanted["code_challenge"] != proof:
            return self.answer(400, {"error": "invalid_grant"})
        token = self.server.make_id_token(wanted["nonce"])
        return self.answer(200, {"access_token": "access", "token_type": "Bearer", "id_token": token})

    def answer(self, status: int, body: Any) -> None:
        sent = json.dumps(body).encode()
        self.send_response(500 if self.server.is_failing else status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def serve_provider(settings: Any) -> Iterator[Provider]:
    """Run a provider, and configure the site to use it for logins."""
    server = Provider()
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    settings.OIDC_ISSUER, settings.OIDC_NAME = server.url, "Staff"
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT, SECRET
    settings.OIDC_GROUPS = {"cloud-team": "cloud-admin", "staff": "reader"}
    cache.clear()
    try:
        yield server
    finally:
        cache.clear()
        server.shutdown()
        server.server_close()
