"""Callers of the API, with a user or a token and a microversion."""

import json
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from rest_framework.test import APIClient


class Caller:
    """A user who calls the API in one microversion; paths are given without ``/v1``."""

    def __init__(self, user: User | None, version: str | None = "1.7") -> None:
        self.client = APIClient()
        if user is not None:
            self.client.force_authenticate(user)
        self.headers = {"OpenStack-API-Version": f"infra-optim {version}"} if version else {}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        options: dict[str, Any] = {"headers": self.headers | headers}
        if body is not None:
            options |= {"data": json.dumps(body), "content_type": "application/json"}
        return self.client.generic(method, f"/v1{path}", **options)

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.call("POST", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.call("PUT", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.call("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> HttpResponse:
        return self.call("DELETE", path, **headers)


class TokenCaller(Caller):
    """A caller of the API with a token, in one microversion."""

    def __init__(self, token: str, version: str | None = "1.14") -> None:
        super().__init__(None, version)
        self.headers["X-Auth-Token"] = token


def fault(response: HttpResponse) -> str:
    """Return the message of an error, parsed as existing clients parse it."""
    return str(json.loads(json.loads(response.content)["error_message"])["faultstring"])
