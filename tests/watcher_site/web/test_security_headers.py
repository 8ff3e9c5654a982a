"""Every response has the security headers for browsers."""

import pytest
from django.test import Client


@pytest.mark.parametrize("path", ["/healthz", "/v1/no-such-resource"])
@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-Frame-Options", "DENY"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
    ],
)
def test_response_has_security_headers(client: Client, path: str, header: str, value: str) -> None:
    assert client.get(path).headers[header] == value


@pytest.mark.parametrize(
    "directive", ["default-src 'self'", "frame-ancestors 'none'", "object-src 'none'", "form-action 'self'"]
)
def test_content_security_policy_allows_only_the_site(client: Client, directive: str) -> None:
    assert directive in client.get("/healthz").headers["Content-Security-Policy"].split("; ")


def test_content_security_policy_forbids_inline_scripts(client: Client) -> None:
    assert "unsafe" not in client.get("/healthz").headers["Content-Security-Policy"]
