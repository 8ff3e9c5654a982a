"""Every answer carries the headers that keep browsers from harm."""

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
def test_an_answer_carries_a_security_header(client: Client, path: str, header: str, value: str) -> None:
    assert client.get(path).headers[header] == value


@pytest.mark.parametrize(
    "directive", ["default-src 'self'", "frame-ancestors 'none'", "object-src 'none'", "form-action 'self'"]
)
def test_pages_load_nothing_from_elsewhere(client: Client, directive: str) -> None:
    assert directive in client.get("/healthz").headers["Content-Security-Policy"].split("; ")


def test_no_page_may_run_a_script_that_is_written_into_it(client: Client) -> None:
    assert "unsafe" not in client.get("/healthz").headers["Content-Security-Policy"]
